"""The model ``dynamic_sharing``: a device and the strength of muscles in, excitations over a recorded motion out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field, replace
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import Array, Diverged, InputFile, InvalidDesign, InvalidSetting, model
from designopt.plugin import Quantity as Q
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.static_sharing import SharingScenario
from designopt_muscle.models.trial import Trial, bundled, read_trial
from designopt_muscle.osim.read import read_model
from designopt_muscle.osim.xml import ModelError
from designopt_muscle.sharing.dynamic.muscles import DynamicMuscles
from designopt_muscle.sharing.dynamic.share import DynamicReserves, DynamicSharing, share_dynamic

Vector = NDArray[np.float64]


class DynamicDesign(TypedDict, total=False):
    """What is varied; what is left out is as in the model's text."""

    strength: Annotated[float, Q("", "factor on the isometric forces of all muscles", gt=0)]
    stiffness: Annotated[float, Q("N m/rad", "of a spring at the assisted coordinate", ge=0)]
    rest: Annotated[float, Q("rad", "coordinate at which the spring is relaxed")]
    assistance: Annotated[float, Q("", "share of the needed moment that a drive gives there", ge=0, le=1)]


class DynamicOutputs(TypedDict):
    """Of the solution over the motion."""

    objective: Annotated[float, Q("s", "integral of squared excitations, reserves and weighted rates of tendon forces")]
    effort: Annotated[float, Q("s", "integral of squared excitations and reserves")]
    mean_squared_activation: Annotated[float, Q("", "over muscles and points")]
    peak_activation: Annotated[float, Q("", "of any muscle")]
    peak_excitation: Annotated[float, Q("", "of any muscle")]
    peak_force: Annotated[float, Q("N", "of any muscle along its tendon")]
    peak_reserve: Annotated[float, Q("", "largest generalised force of a reserve, in N m or N")]
    peak_device: Annotated[float, Q("N m", "largest moment of spring and drive together")]
    worst_residual: Annotated[float, Q("", "largest relative error of an equation")]


ARRAYS = {
    "time": Array(("time",), "s", "mesh points and midpoints"),
    "muscles": Array(("muscle",), "", "names", dtype="str"),
    "coordinates": Array(("row",), "", "names of the balanced coordinates", dtype="str"),
    "activations": Array(("time", "muscle"), "", ""),
    "excitations": Array(("time", "muscle"), "", ""),
    "forces": Array(("time", "muscle"), "N", "along the tendons"),
    "reserves": Array(("time", "row"), "", "in N m or N"),
    "net_moments": Array(("time", "row"), "", "that muscles and reserves balance, in N m or N"),
}

_DESIGN = {"strength": 1.0, "stiffness": 0.0, "rest": 0.0, "assistance": 0.0}


@model("dynamic_sharing", version=1, arrays=ARRAYS)
class DynamicSharingModel:
    """Shares the net moments of a recorded motion among muscles with activation dynamics and elastic tendons.

    One sparse program over the whole motion (Hermite-Simpson collocation): the integral of squared excitations is least
    subject to activation dynamics, equilibrium of fibres and tendons and the balance of moments (De Groote et al.
    2016). Excitations and activations are equal at the beginning. Every row has a reserve.

    Unless design, scenario and settings say otherwise: the right leg of an adult walking, with nine muscles in a plane,
    at full strength without a device. Muscles of other models have the curves of De Groote et al. (2016).
    """

    model: Annotated[InputFile | None, Q("", "OpenSim model (.osim); the bundled planar leg if none")] = None
    window: Annotated[tuple[float, float] | None, Q("s", "first and last time; the whole motion if not given")] = None
    cutoff: Annotated[float | None, Q("Hz", "of a low-pass filter for the coordinates; none if not given", gt=0)] = None
    mesh: Annotated[float, Q("s", "largest length of an interval of the mesh", gt=0, le=0.2)] = 0.025
    tendon: Annotated[
        Literal["compliant", "rigid"], Q("", "compliant where the model does not say rigid, or rigid for all")
    ] = "compliant"
    passive: Annotated[bool, Q("", "count the passive forces of the fibres")] = False
    sharpness: Annotated[float, Q("", "of the switch between activation and deactivation; 0.1 as published", gt=0)] = (
        10.0
    )
    reserve: Annotated[float, Q("N m", "generalised force of a reserve at control 1 (N for translations)", gt=0)] = 10.0
    reserve_weight: Annotated[float, Q("", "of squared controls of reserves", gt=0)] = 10.0
    rate_weight: Annotated[float, Q("s^2", "of squared rates of tendon forces", ge=0)] = 0.01
    assisted: Annotated[str | None, Q("", "coordinate at which a device helps")] = None

    _trials: dict[tuple[str, str], tuple[Trial, DynamicMuscles]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def check(self) -> None:
        """Read the model, so that a file that cannot be used is refused before anything runs."""
        try:
            skeleton = read_model(self._skeleton.content)
        except ModelError as error:
            raise InvalidSetting("model", f"{self._skeleton.name}: {error}") from None
        if self.assisted is not None and self.assisted not in skeleton.free:
            raise InvalidSetting("assisted", f"'{self.assisted}' is no free coordinate ({', '.join(skeleton.free)})")

    def evaluate(
        self, design: DynamicDesign, scenario: SharingScenario, arrays: Set[str] = frozenset()
    ) -> tuple[DynamicOutputs, dict[str, NDArray[Any]]]:
        """Solve the program of the trial."""
        trial, muscles = self._trial(scenario)
        values: dict[str, Any] = {**_DESIGN, **design}
        balance = trial.balance
        device = np.zeros(len(balance.time))
        moments = np.array(balance.moments)
        if self.assisted is None:
            if values["stiffness"] or values["assistance"]:
                raise InvalidDesign("a device needs a coordinate: name it as 'assisted' among the model's settings")
        else:
            if self.assisted not in balance.rows:
                raise InvalidDesign(f"the trial has no net moment about the assisted coordinate '{self.assisted}'")
            row = balance.rows.index(self.assisted)
            spring = values["stiffness"] * (values["rest"] - trial.values[self.assisted])
            device = spring + values["assistance"] * (balance.moments[:, row] - spring)
            moments[:, row] -= device
        needed = replace(balance, moments=moments, status=np.zeros(len(balance.time), dtype=np.int64))
        strong = replace(muscles, force=muscles.force * values["strength"])
        optimal = np.full(len(balance.rows), self.reserve)
        solution = share_dynamic(
            needed,
            strong,
            DynamicReserves(optimal, self.reserve_weight, limit=1e3),
            rate_weight=self.rate_weight,
            sharpness=self.sharpness,
        )
        if not solution.converged:
            raise Diverged(
                f"{solution.message} after {solution.iterations} iterations; largest residual"
                f" {solution.largest_residual:.2g}: {solution.worst}",
                reason=solution.message.lower(),
            )
        made: dict[str, NDArray[Any]] = {
            "time": balance.time,
            "muscles": np.array(balance.columns),
            "coordinates": np.array(balance.rows),
            "activations": solution.activations,
            "excitations": solution.excitations,
            "forces": solution.forces,
            "reserves": optimal * solution.reserves,
            "net_moments": moments,
        }
        return _outputs(solution, optimal, device), {name: made[name] for name in arrays}

    @property
    def _skeleton(self) -> InputFile:
        return self.model if self.model is not None else bundled("planar_leg.osim")

    def _trial(self, scenario: Mapping[str, Any]) -> tuple[Trial, DynamicMuscles]:
        """The trial at mesh points and midpoints, read once in a process. Raises `InvalidDesign`."""
        motion, moments = scenario.get("motion"), scenario.get("moments")
        if motion is None:
            motion = bundled("walking_leg.csv")
        key = motion.digest, moments.digest if moments is not None else ""
        if key not in self._trials:
            try:
                self._trials[key] = self._read(motion, moments)
            except (TrialError, ModelError, ValueError) as error:
                raise InvalidDesign(str(error)) from None
        return self._trials[key]

    def _read(self, motion: InputFile, moments: InputFile | None) -> tuple[Trial, DynamicMuscles]:
        first = read_trial(self._skeleton, motion, moments, window=self.window, cutoff=self.cutoff)
        begin, end = float(first.balance.time[0]), float(first.balance.time[-1])
        intervals = max(1, int(np.ceil((end - begin) / self.mesh - 1e-9)))
        step = (end - begin) / (2 * intervals)
        trial = read_trial(self._skeleton, motion, moments, window=(begin, end), cutoff=self.cutoff, step=step)
        crossed = np.flatnonzero((np.abs(trial.balance.arms) > 0).any(axis=(0, 2)))
        balance = replace(
            trial.balance,
            rows=tuple(trial.balance.rows[i] for i in crossed),
            row_units=tuple(trial.balance.row_units[i] for i in crossed),
            arms=trial.balance.arms[:, crossed],
            moments=trial.balance.moments[:, crossed],
        )
        return replace(trial, balance=balance), self._muscles(trial)

    def _muscles(self, trial: Trial) -> DynamicMuscles:
        geometry = muscle_geometry(trial.model, trial.values)
        rates = np.column_stack(
            [trial.rates.get(name, np.zeros(len(trial.balance.time))) for name in geometry.coordinates]
        )
        muscles = trial.model.muscles

        def shape(*names: str, default: float) -> Vector:
            return np.array([next((m.shape[n] for n in names if n in m.shape), default) for m in muscles])

        strain = shape("passive_fiber_strain_at_one_norm_force", "FmaxMuscleStrain", default=0.6)
        return DynamicMuscles(
            names=tuple(m.name for m in muscles),
            lengths=geometry.lengths,
            speeds=geometry.speeds(rates),
            force=np.array([m.force for m in muscles]),
            fibre=np.array([m.fibre for m in muscles]),
            slack=np.array([m.slack for m in muscles]),
            pennation=np.array([m.pennation for m in muscles]),
            fastest=np.array([m.fastest for m in muscles]),
            rigid=np.array([m.rigid or self.tendon == "rigid" for m in muscles]),
            tendon_strain=shape("tendon_strain_at_one_norm_force", "FmaxTendonStrain", default=0.049),
            width=shape("active_force_width_scale", default=1.0),
            damping=shape("fiber_damping", default=0.01),
            rise=np.array([m.rise for m in muscles]),
            fall=np.array([m.fall for m in muscles]),
            passive_strain=strain if self.passive else np.full(len(muscles), np.inf),
            least=np.array([max(m.least, 1e-3) for m in muscles]),
        )


def _outputs(solution: DynamicSharing, optimal: Vector, device: Vector) -> DynamicOutputs:
    return DynamicOutputs(
        objective=solution.objective,
        effort=solution.effort,
        mean_squared_activation=float((solution.activations**2).mean()),
        peak_activation=float(solution.activations.max()),
        peak_excitation=float(solution.excitations.max()),
        peak_force=float(solution.forces.max()),
        peak_reserve=float(np.abs(optimal * solution.reserves).max()),
        peak_device=float(np.abs(device).max()),
        worst_residual=solution.largest_residual,
    )
