"""The model ``muscle_sharing``: muscles, a criterion and a device in, what they make of a recorded motion out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
from designopt_mechanics.moment_balance import MomentBalance
from numpy.typing import NDArray

from designopt.plugin import Array, InputFile, InvalidDesign, InvalidSetting, model
from designopt.plugin import Quantity as Q
from designopt_muscle.models.trial import Trial, TrialError, bundled, read_trial
from designopt_muscle.osim.read import read_model
from designopt_muscle.osim.xml import ModelError
from designopt_muscle.sharing.statement.criteria import (
    Criterion,
    MinMax,
    Power,
    QuadraticLinear,
    Reserves,
    SoftSaturation,
)
from designopt_muscle.sharing.statement.formulation import Terms
from designopt_muscle.sharing.static.derivatives import Slopes, activation_slopes, cost_slopes
from designopt_muscle.sharing.static.share import share
from designopt_muscle.sharing.static.sharing import Sharing
from designopt_muscle.sharing.status import SharingStatus

Vector = NDArray[np.float64]


class SharingDesign(TypedDict, total=False):
    """What is varied; what is left out is as in the model's text."""

    strength: Annotated[float, Q("", "factor on the forces of all muscles", gt=0)]
    criterion: Annotated[
        Literal["power", "minmax", "strict_minmax", "quadratic_linear", "soft_saturation"], Q("", "what is minimised")
    ]
    exponent: Annotated[float, Q("", "of the criterion 'power'", ge=1, le=50)]
    stiffness: Annotated[float, Q("N m/rad", "of a spring at the assisted coordinate", ge=0)]
    rest: Annotated[float, Q("rad", "coordinate at which the spring is relaxed")]
    assistance: Annotated[float, Q("", "share of the needed moment that a drive gives there", ge=0, le=1)]


class SharingScenario(TypedDict, total=False):
    """The trial; the bundled walking leg where none is named."""

    motion: Annotated[InputFile, Q("", "table of coordinates (MOT, STO or CSV), with net moments or without")]
    moments: Annotated[InputFile, Q("", "table of net moments, COORDINATE_moment, if the motion has none")]


class SharingOutputs(TypedDict):
    """Figures over all frames with an answer."""

    mean_cost: Annotated[float, Q("", "of the criterion, mean over the frames")]
    mean_squared_activation: Annotated[float, Q("", "over muscles and frames")]
    mean_activation: Annotated[float, Q("", "over muscles and frames")]
    peak_activation: Annotated[float, Q("", "of any muscle")]
    peak_force: Annotated[float, Q("N", "of any muscle along its tendon")]
    infeasible_frames: Annotated[float, Q("", "frames proved to be beyond the muscles")]
    unanswered_frames: Annotated[float, Q("", "frames with bad input, or not converged")]
    peak_shortfall: Annotated[float, Q("", "largest missing generalised force of a row, in N m or N")]
    strength_needed: Annotated[
        float, Q("", "factor on these muscles' strength that makes all frames feasible, at most 1e6")
    ]
    peak_reserve: Annotated[float, Q("", "largest generalised force of a reserve, in N m or N")]
    device_work: Annotated[float, Q("J", "absolute work of the drive")]
    peak_device: Annotated[float, Q("N m", "largest moment of spring and drive together")]
    worst_residual: Annotated[float, Q("", "largest relative error of a balance")]


ARRAYS = {
    "time": Array(("time",), "s", "of the frames"),
    "muscles": Array(("muscle",), "", "names", dtype="str"),
    "coordinates": Array(("row",), "", "names of the balanced coordinates", dtype="str"),
    "activations": Array(("time", "muscle"), "", "NaN in frames without an answer"),
    "forces": Array(("time", "muscle"), "N", "along the tendon, active and passive"),
    "muscle_moments": Array(("time", "row", "muscle"), "", "of each muscle, in N m or N"),
    "net_moments": Array(("time", "row"), "", "that muscles and reserves balance, in N m or N"),
    "device_moment": Array(("time",), "N m", "of spring and drive at the assisted coordinate"),
    "reserves": Array(("time", "row"), "", "in N m or N"),
    "shortfall": Array(("time", "row"), "", "what is missing in infeasible frames, in N m or N"),
    "multipliers": Array(("time", "row"), "", "change of the cost per unit of the needed moment"),
    "status": Array(("time",), "", "0 to 20 balanced, 100 infeasible, above that no answer"),
    "strength_factor": Array(("time",), "", "on the strength, that makes a frame feasible"),
    "fibre_lengths": Array(("time", "muscle"), "", "in optimal lengths"),
}

_DESIGN = {"strength": 1.0, "criterion": "power", "exponent": 2.0, "stiffness": 0.0, "rest": 0.0, "assistance": 0.0}
_MOST_STRENGTH = 1e6


@model("muscle_sharing", version=1, arrays=ARRAYS)
class StaticSharing:
    """Shares the net moments of a recorded motion among the muscles of an OpenSim model, frame by frame.

    Each frame is a convex problem: the cost of the activations is least among those that balance the moments about all
    rows. Frames that no activations balance are proved to be so; they have the activations that leave the least
    shortfall. A device (a spring, or a drive that gives a share of the needed moment) may help at one coordinate.

    Unless design, scenario and settings say otherwise: the right leg of an adult walking, with nine muscles in a plane;
    squared activations at full strength without reserves; no device. Passive fibre forces are left out and tendons are
    rigid, as in OpenSim's StaticOptimization.
    """

    model: Annotated[InputFile | None, Q("", "OpenSim model (.osim); the bundled planar leg if none")] = None
    coordinates: Annotated[
        list[str] | None, Q("", "rows to balance; all that muscles cross and the moments have, if none are named")
    ] = None
    window: Annotated[tuple[float, float] | None, Q("s", "first and last time; the whole motion if not given")] = None
    cutoff: Annotated[float | None, Q("Hz", "of a low-pass filter for the coordinates; none if not given", gt=0)] = None
    tendon: Annotated[Literal["rigid", "equilibrium"], Q("", "rigid, or in static equilibrium with the fibre")] = (
        "rigid"
    )
    passive: Annotated[bool, Q("", "count the passive forces of the fibres")] = False
    curves: Annotated[Literal["opensim", "publication"], Q("", "constants of De Groote et al. (2016)")] = "opensim"
    weights: Annotated[Literal["none", "volume", "pcsa"], Q("", "of the muscles in the criterion")] = "none"
    stress: Annotated[bool, Q("", "the criterion takes forces per cross-section instead of activations")] = False
    linear: Annotated[float, Q("", "linear part of the criterion 'quadratic_linear'", ge=0)] = 0.1
    tie_break: Annotated[float, Q("", "share of the squares in the criterion 'minmax'", gt=0, lt=1)] = 1e-4
    reserve: Annotated[float, Q("N m", "generalised force of a reserve at control 1 (N for translations)", ge=0)] = 0.0
    reserve_weight: Annotated[float, Q("", "of a reserve's cost", gt=0)] = 1.0
    reserve_exponent: Annotated[float, Q("", "of a reserve's cost: 1, or from 2 on", ge=1)] = 2.0
    assisted: Annotated[str | None, Q("", "coordinate at which a device helps")] = None

    _trials: dict[tuple[str, str], Trial] = field(init=False, repr=False, compare=False, default_factory=dict)

    def check(self) -> None:
        """Read the model, so that a file that cannot be used is refused before anything runs."""
        if 1.0 < self.reserve_exponent < 2.0:
            raise InvalidSetting("reserve_exponent", f"{self.reserve_exponent:g}: it is 1 or from 2 on")
        try:
            skeleton = read_model(self._skeleton.content)
        except ModelError as error:
            raise InvalidSetting("model", f"{self._skeleton.name}: {error}") from None
        if not skeleton.muscles:
            raise InvalidSetting("model", f"{self._skeleton.name}: has no muscle")
        for setting, names in (("coordinates", self.coordinates or ()), ("assisted", [self.assisted or ""])):
            for name in names:
                if name and name not in skeleton.free:
                    raise InvalidSetting(setting, f"'{name}' is no free coordinate ({', '.join(skeleton.free)})")

    def evaluate(
        self, design: SharingDesign, scenario: SharingScenario, arrays: Set[str] = frozenset()
    ) -> tuple[SharingOutputs, dict[str, NDArray[Any]]]:
        """Share the moments of the trial."""
        trial = self._trial(scenario)
        values = {**_DESIGN, **design}
        sharing, device = self._shared(trial, values)
        outputs = _outputs(trial, sharing, device, self._rate(trial))
        made: dict[str, NDArray[Any]] = {
            "time": sharing.balance.time,
            "muscles": np.array(sharing.balance.columns),
            "coordinates": np.array(sharing.balance.rows),
            "activations": sharing.activations,
            "forces": sharing.forces,
            "muscle_moments": sharing.moments,
            "net_moments": sharing.balance.moments,
            "device_moment": device,
            "reserves": sharing.reserves,
            "shortfall": sharing.shortfall,
            "multipliers": sharing.multipliers,
            "status": sharing.status,
            "strength_factor": sharing.strength_factor,
            "fibre_lengths": trial.fibres.length,
        }
        return outputs, {name: made[name] for name in arrays}

    def gradient(self, design: SharingDesign, scenario: SharingScenario) -> dict[str, dict[str, float]]:
        """Exact derivatives of the figures of activations, where every frame is balanced and the criterion is a sum."""
        trial = self._trial(scenario)
        values = {**_DESIGN, **design}
        sharing, _ = self._shared(trial, values)
        if not sharing.feasible.all() or not sharing.formulation.separable:
            return {}
        a = sharing.activations
        peak = np.zeros(a.shape)
        peak[np.unravel_index(int(a.argmax()), a.shape)] = 1.0
        of = {
            "mean_cost": cost_slopes(sharing),
            "mean_squared_activation": activation_slopes(sharing, 2.0 * a / a.size),
            "mean_activation": activation_slopes(sharing, np.full(a.shape, 1.0 / a.size)),
            "peak_activation": activation_slopes(sharing, peak),
        }
        found = {}
        for name, slopes in of.items():
            by = self._chain(trial, sharing, values, slopes, 1.0 / len(a) if name == "mean_cost" else 1.0)
            found[name] = {given: slope for given, slope in by.items() if given in design}
        return found

    # ---------------------------------------------------------------------------------------------------------- parts

    @property
    def _skeleton(self) -> InputFile:
        return self.model if self.model is not None else bundled("planar_leg.osim")

    def _trial(self, scenario: Mapping[str, Any]) -> Trial:
        """The trial of a scenario, read once in a process. Raises `InvalidDesign` for files that make none."""
        motion, moments = scenario.get("motion"), scenario.get("moments")
        if motion is None:
            motion = bundled("walking_leg.csv")
        key = motion.digest, moments.digest if moments is not None else ""
        if key not in self._trials:
            try:
                self._trials[key] = read_trial(
                    self._skeleton,
                    motion,
                    moments,
                    window=self.window,
                    cutoff=self.cutoff,
                    tendon=self.tendon,
                    passive=self.passive,
                    curves=self.curves,
                )
            except (TrialError, ModelError) as error:
                raise InvalidDesign(str(error)) from None
        return self._trials[key]

    def _row(self, trial: Trial) -> int | None:
        """The row of the assisted coordinate."""
        if self.assisted is None:
            return None
        if self.assisted not in trial.balance.rows:
            raise InvalidDesign(f"the trial has no net moment about the assisted coordinate '{self.assisted}'")
        return trial.balance.rows.index(self.assisted)

    def _rate(self, trial: Trial) -> Vector:
        """(n,) rad/s of the assisted coordinate, 0 without one."""
        if self.assisted is None or len(trial.balance.time) < 2:
            return np.zeros(len(trial.balance.time))
        return np.asarray(np.gradient(trial.values[self.assisted], trial.balance.time))

    def _shared(self, trial: Trial, values: Mapping[str, Any]) -> tuple[Sharing, Vector]:
        balance, row = trial.balance, self._row(trial)
        device = np.zeros(len(balance.time))
        moments = np.array(balance.moments)
        if row is None and (values["stiffness"] or values["assistance"]):
            raise InvalidDesign("a device needs a coordinate: name it as 'assisted' among the model's settings")
        if row is not None:
            spring = values["stiffness"] * (values["rest"] - trial.values[balance.rows[row]])
            device = spring + values["assistance"] * (balance.moments[:, row] - spring)
            moments[:, row] -= device
        keep = [i for i, name in enumerate(balance.rows) if self.coordinates is None or name in self.coordinates]
        needed = MomentBalance(
            time=balance.time,
            rows=tuple(balance.rows[i] for i in keep),
            columns=balance.columns,
            arms=balance.arms[:, keep],
            moments=moments[:, keep],
            row_units=tuple(balance.row_units[i] for i in keep),
            status=balance.status,
        )
        muscles = trial.muscles.scaled(values["strength"])
        weights = {"none": lambda: None, "volume": muscles.volumes, "pcsa": muscles.areas}[self.weights]()
        crossed = (np.abs(needed.arms[needed.status < 100]) > 0).any(axis=(0, 2))
        reserves = Reserves(np.where(crossed, self.reserve, 0.0), self.reserve_weight, self.reserve_exponent)
        terms = Terms(_criterion(values, self.linear, self.tie_break), weights, self.stress)
        try:
            return share(needed, muscles, terms, reserves), device
        except ValueError as error:
            raise InvalidDesign(str(error)) from None

    def _chain(
        self, trial: Trial, sharing: Sharing, values: Mapping[str, Any], slopes: Slopes, factor: float
    ) -> dict[str, float]:
        """Derivatives by the design: of strength, and of the device through the needed moment of its row."""
        forces = (slopes.by_strength * trial.muscles.strength).sum() + (slopes.by_passive * trial.muscles.passive).sum()
        found = {"strength": factor * float(forces)}
        if self.assisted is None or self.assisted not in sharing.balance.rows:
            return found
        by_moment = slopes.by_moment[:, sharing.balance.rows.index(self.assisted)]
        needed = trial.balance.moments[:, trial.balance.rows.index(self.assisted)]
        stretch = values["rest"] - trial.values[self.assisted]
        left = 1.0 - values["assistance"]
        found["stiffness"] = -factor * left * float((by_moment * stretch).sum())
        found["rest"] = -factor * left * values["stiffness"] * float(by_moment.sum())
        found["assistance"] = -factor * float((by_moment * (needed - values["stiffness"] * stretch)).sum())
        return found


def _criterion(values: Mapping[str, Any], linear: float, tie_break: float) -> Criterion:
    match values["criterion"]:
        case "minmax":
            return MinMax(tie_break)
        case "strict_minmax":
            return MinMax(tie_break, strict=True)
        case "quadratic_linear":
            return QuadraticLinear(linear)
        case "soft_saturation":
            return SoftSaturation()
    return Power(float(values["exponent"]))


def _outputs(trial: Trial, sharing: Sharing, device: Vector, rate: Vector) -> SharingOutputs:
    answered = np.isfinite(sharing.activations).all(axis=1)
    if not answered.any():
        raise InvalidDesign(f"no frame of the trial has an answer: {sharing.summary()}")
    a = sharing.activations[answered]
    factor = sharing.strength_factor[answered].max()
    time = sharing.balance.time
    power = np.abs(np.where(np.isfinite(device), device, 0.0) * np.where(np.isfinite(rate), rate, 0.0))
    infeasible = sharing.status == SharingStatus.INFEASIBLE
    return SharingOutputs(
        mean_cost=float(sharing.cost[answered].mean()),
        mean_squared_activation=float((a**2).mean()),
        mean_activation=float(a.mean()),
        peak_activation=float(a.max()),
        peak_force=float(sharing.forces[answered].max()),
        infeasible_frames=float(infeasible.sum()),
        unanswered_frames=float((~answered).sum()),
        peak_shortfall=float(np.abs(sharing.shortfall[answered]).max()),
        strength_needed=float(min(factor, _MOST_STRENGTH)),
        peak_reserve=float(np.abs(sharing.reserves[answered]).max()),
        device_work=float(np.trapezoid(power, time)) if len(time) > 1 else 0.0,
        peak_device=float(np.nanmax(np.abs(device))),
        worst_residual=float(sharing.residual[answered].max()),
    )
