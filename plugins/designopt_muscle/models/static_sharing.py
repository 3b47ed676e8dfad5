"""The model ``muscle_sharing``: muscles, a criterion and a device in, what they make of a recorded motion out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.robot_files.xml import ModelError
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import Reserves, Tracking, criterion_of
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.statement.synergies import command_matrix
from designopt_mechanics.sharing.static.derivatives import activation_slopes, cost_slopes
from designopt_mechanics.sharing.static.diagnose import margins
from designopt_mechanics.sharing.static.share import share
from designopt_mechanics.sharing.static.sharing import Sharing
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.plugin import InputFile, InvalidDesign, InvalidSetting, Unusable, filled, model
from designopt.plugin import Quantity as Q
from designopt_muscle.geometry.drawing import drawing
from designopt_muscle.models.device import DeviceMoments, design_slopes, device_moments
from designopt_muscle.models.emg import MeasuredActivity, read_activity
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.figures import ARRAYS, SharingOutputs, figures
from designopt_muscle.models.ground_fit import ground_fit_notes
from designopt_muscle.models.muscle_names import check_muscles, read_muscle_model
from designopt_muscle.models.reactions import ReactionTerm, joint_reactions
from designopt_muscle.models.sharing_files import Files, SharingData, as_mistakes, files_of, load_notes, refuse
from designopt_muscle.models.sharing_inputs import SharingDesign, StaticScenario
from designopt_muscle.models.trial import (
    Contraction,
    ExternalLoads,
    TrialDynamics,
    TrialFrames,
    bundled_file,
    read_trial,
    read_trial_table,
    trial_notes,
)
from designopt_muscle.osim.read import read_model


@model("muscle_sharing", version=4, arrays=ARRAYS)
class StaticSharing:
    """Shares the net moments of a recorded motion among the muscles of an OpenSim model, frame by frame.

    Each frame is a convex problem: minimum cost of the activations that balance the moments about all rows. Frames that
    no activations can balance come with a proof; they have the activations with the least shortfall. A device (a
    spring, or a drive that delivers a share of the net moment) may assist at one coordinate.

    By default: the right leg of an adult walking, with nine muscles in a plane, without reserves. Passive fibre forces
    are omitted and tendons are rigid, as in OpenSim's StaticOptimization. Net moments come from a table, or from
    masses, motion and external loads. Measured activity, synergies, joint reactions and a rate limit are further terms
    of the problem.
    """

    later_settings: ClassVar[tuple[str, ...]] = ("reserve_warning",)

    model: Annotated[InputFile | None, Q("", "OpenSim model (.osim); the bundled planar leg if none")] = None
    coordinates: Annotated[
        list[str] | None, Q("", "coordinates to balance; by default all that muscles cross and that have moments")
    ] = None
    window: Annotated[tuple[float, float] | None, Q("s", "first and last time; the whole motion if not given")] = None
    cutoff: Annotated[float | None, Q("Hz", "of a low-pass filter for the coordinates; none if not given", gt=0)] = None
    inverse_dynamics: Annotated[
        Literal["table", "compute"], Q("", "net moments from a table, or from masses, motion and external loads")
    ] = "table"
    tendon: Annotated[Literal["rigid", "equilibrium"], Q("", "rigid, or in static equilibrium with the fibre")] = (
        "rigid"
    )
    passive: Annotated[bool, Q("", "count the passive forces of the fibres")] = False
    curves: Annotated[Literal["opensim", "publication"], Q("", "constants of De Groote et al. (2016)")] = "opensim"
    weights: Annotated[
        Literal["none", "volume", "pcsa"] | dict[str, float],
        Q("", "of the muscles in the criterion; by name, 1 for those that are not named", gt=0),
    ] = "none"
    stress: Annotated[bool, Q("", "the criterion takes forces per cross-section instead of activations")] = False
    linear: Annotated[float, Q("", "linear part of the criterion 'quadratic_linear'", ge=0)] = 0.1
    tie_break: Annotated[float, Q("", "share of the squares in the criterion 'minmax'", gt=0, lt=1)] = 1e-4
    reserve: Annotated[
        float | dict[str, float],
        Q("N m", "generalised force of a reserve at control 1 (N for translations); by coordinate, or for all", ge=0),
    ] = 0.0
    reserve_weight: Annotated[float, Q("", "of a reserve's cost", gt=0)] = 1.0
    reserve_exponent: Annotated[float, Q("", "of a reserve's cost: 1, or at least 2", ge=1)] = 2.0
    reserve_warning: Annotated[
        float | None, Q("N m", "reserve that marks a frame; 1, or 5 % of the largest moment, if none", gt=0)
    ] = None
    assisted: Annotated[str | None, Q("", "coordinate at which a device helps")] = None
    emg: Annotated[MeasuredActivity | None, Q("", "measured activity that activations follow")] = None
    synergies: Annotated[
        dict[str, dict[str, float]] | None,
        Q("", "muscles that a common command moves, each with its weight; muscles in none have their own", ge=0),
    ] = None
    joint_reactions: Annotated[list[ReactionTerm], Q("", "joints whose force is penalised, limited or shown")] = field(
        default_factory=list
    )
    rate_limit: Annotated[
        float | None, Q("s", "minimum time in which an activation goes from 0 to 1; unlimited if none", gt=0)
    ] = None

    _cached_data: dict[tuple[str, ...], SharingData] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def check(self) -> None:
        """Read the model before the run. Raises `InvalidSetting` for an unusable file and unknown names."""
        if 1.0 < self.reserve_exponent < 2.0:
            raise InvalidSetting("reserve_exponent", f"{self.reserve_exponent:g}: it must be 1 or at least 2")
        skeleton = read_muscle_model(self._skeleton)
        by_coordinate = self.reserve if isinstance(self.reserve, dict) else {}
        for setting, names in (
            ("coordinates", self.coordinates or ()),
            ("assisted", [self.assisted or ""]),
            ("reserve", by_coordinate),
        ):
            for name in names:
                if name and name not in skeleton.free:
                    raise InvalidSetting(setting, f"'{name}' is not a free coordinate ({', '.join(skeleton.free)})")
        muscles, joints = {m.name for m in skeleton.muscles}, [j.name for j in skeleton.joints]
        check_muscles("emg", self.emg.track if self.emg else (), muscles)
        check_muscles("weights", self.weights if isinstance(self.weights, dict) else (), muscles)
        for command, weights in (self.synergies or {}).items():
            check_muscles("synergies", weights, muscles)
            if not any(weights.values()):
                raise InvalidSetting("synergies", f"'{command}' moves no muscle")
        for i, term in enumerate(self.joint_reactions):
            if term.joint not in joints:
                raise InvalidSetting("joint_reactions", f"'{term.joint}' is not a joint ({', '.join(joints)})")
            if term.joint in [earlier.joint for earlier in self.joint_reactions[:i]]:
                raise InvalidSetting("joint_reactions", f"'{term.joint}' is named twice")

    def check_scenario(self, conditions: Mapping[str, Any]) -> None:
        """Open the files of a scenario. Raises `InvalidSetting` for unusable ones and for misspelt columns."""
        files = files_of(conditions)
        with as_mistakes(files):
            self._refuse(files)
            self._notes(files)

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on what the readers of model and trial left out or assumed."""
        files = files_of(conditions)
        with as_mistakes(files):
            return [*self._notes(files), *self._ground_notes(files)]

    def evaluate(
        self, design: SharingDesign, scenario: StaticScenario, arrays: Set[str] = frozenset()
    ) -> tuple[SharingOutputs, dict[str, NDArray[Any]]]:
        """Share the moments of the trial."""
        data = self._read(scenario)
        trial = data.trial
        sharing, device = self._solution(data, cast(Mapping[str, Any], filled(SharingDesign, design)))
        reactions = data.reaction_forces(sharing.forces)
        outputs = figures(sharing, device, reactions)
        all_arrays: dict[str, NDArray[Any]] = {
            "time": sharing.balance.time,
            "muscles": np.array(sharing.balance.columns),
            "coordinates": np.array(sharing.balance.rows),
            "activations": sharing.activations,
            "forces": sharing.forces,
            "muscle_moments": sharing.moments,
            "net_moments": sharing.balance.moments,
            "device_moment": device.total,
            "reserves": sharing.reserves,
            "shortfall": sharing.shortfall,
            "multipliers": sharing.multipliers,
            "status": sharing.status,
            "signals": np.full(sharing.forces.shape, np.nan) if data.signals is None else data.signals * sharing.scales,
            "joints": np.array([term.joint for term in self.joint_reactions], dtype=str),
            "reactions": reactions,
            "strength_factor": sharing.strength_factor,
            "fibre_lengths": trial.fibres.length,
            "notes": np.array(trial.notes, dtype=str),
        }
        if "margin" in arrays:
            all_arrays["margin"] = margins(sharing)
        if arrays & {"skeleton", "paths"}:
            all_arrays["skeleton"], all_arrays["paths"] = drawing(trial.model, trial.finite_values)
        return outputs, {name: all_arrays[name] for name in arrays}

    def gradient(self, design: SharingDesign, scenario: StaticScenario) -> dict[str, dict[str, float]]:
        """Exact derivatives of the figures of activations, where every frame is balanced and the criterion is a sum."""
        data = self._read(scenario)
        trial, values = data.trial, cast(Mapping[str, Any], filled(SharingDesign, design))
        sharing, _ = self._solution(data, values)
        if not sharing.feasible.all() or not sharing.separable:
            return {}
        a = sharing.activations
        peak = np.zeros(a.shape)
        peak[np.unravel_index(int(a.argmax()), a.shape)] = 1.0
        figure_slopes = {
            "mean_cost": cost_slopes(sharing),
            "mean_squared_activation": activation_slopes(sharing, 2.0 * a / a.size),
            "mean_activation": activation_slopes(sharing, np.full(a.shape, 1.0 / a.size)),
            "peak_activation": activation_slopes(sharing, peak),
        }
        derivatives = {}
        for name, slopes in figure_slopes.items():
            share_of = 1.0 / len(a) if name == "mean_cost" else 1.0
            by = design_slopes(trial, sharing, self.assisted, values, slopes)
            derivatives[name] = {data: share_of * slope for data, slope in by.items() if data in design}
        return derivatives

    # ---------------------------------------------------------------------------------------------------------- parts

    @property
    def _skeleton(self) -> InputFile:
        return self.model if self.model is not None else bundled_file("planar_leg.osim")

    def _read(self, scenario: Mapping[str, Any]) -> SharingData:
        """The files of a scenario, read once in a process. Raises `Unusable` for files that make no trial."""
        files = files_of(scenario)
        key = tuple("" if file is None else file.digest for file in files.values())
        if key not in self._cached_data:
            self._refuse(files)
            try:
                self._cached_data[key] = self._read_files(files)
            except (TrialError, ModelError) as error:
                raise Unusable(str(error), reason="unreadable") from None
        return self._cached_data[key]

    def _refuse(self, files: Files) -> None:
        refuse(
            files,
            computes_moments=self.inverse_dynamics == "compute",
            reactions=bool(self.joint_reactions),
            has_emg=self.emg is not None,
        )

    def _notes(self, files: Files) -> list[str]:
        motion, skeleton = files["motion"], read_model(self._skeleton.content)
        assert motion is not None
        notes = [f"{self._skeleton.name}: {note}" for note in skeleton.notes]
        is_computed = self.inverse_dynamics == "compute"
        notes += trial_notes(skeleton, motion, files["moments"], computes_moments=is_computed, cutoff=self.cutoff)
        notes += load_notes(skeleton, motion, files["external_loads"], files["external_forces"])
        if self.emg is not None and files["emg"] is not None:
            read_activity(
                files["emg"], self.emg, tuple(m.name for m in skeleton.muscles), read_trial_table(motion).time
            )
        return notes

    def _ground_notes(self, files: Files) -> list[str]:
        """Why forces of the ground do not fit the motion; not part of the check, since it takes inverse dynamics."""
        motion, loads, forces = files["motion"], files["external_loads"], files["external_forces"]
        if self.inverse_dynamics != "compute" or motion is None or loads is None or forces is None:
            return []
        skeleton = read_model(self._skeleton.content)
        return ground_fit_notes(skeleton, motion, ExternalLoads(loads, forces), self.cutoff, self.window)

    def _read_files(self, files: Files) -> SharingData:
        loads, forces, motion = files["external_loads"], files["external_forces"], files["motion"]
        assert motion is not None
        external = None if loads is None or forces is None else ExternalLoads(loads, forces)
        is_computed = self.inverse_dynamics == "compute"
        trial = read_trial(
            self._skeleton,
            motion,
            files["moments"],
            frames=TrialFrames(window=self.window, cutoff=self.cutoff),
            contraction=Contraction(self.tendon, self.passive, self.curves),
            dynamics=TrialDynamics(external, is_computed) if is_computed or self.joint_reactions else None,
        )
        if not trial.balance.usable.any():
            raise TrialError(f"{motion.name}: no frame has all the numbers that are needed")
        for name in self.coordinates or ():
            if name not in trial.balance.rows:
                table = files["moments"] or motion
                raise TrialError(f"{table.name}: no net moment about '{name}', which the setting 'coordinates' names")
        signals = None
        if self.emg is not None and files["emg"] is not None:
            signals = read_activity(files["emg"], self.emg, trial.balance.columns, trial.balance.time)
        return SharingData(trial, signals, joint_reactions(trial, self.joint_reactions) if self.joint_reactions else ())

    def _solution(self, data: SharingData, values: Mapping[str, Any]) -> tuple[Sharing, DeviceMoments]:
        trial = data.trial
        balance = trial.balance
        device = device_moments(trial, self.assisted, values)
        moments = np.array(balance.moments)
        if self.assisted is not None:
            moments[:, balance.rows.index(self.assisted)] -= device.total
        keep = [i for i, name in enumerate(balance.rows) if self.coordinates is None or name in self.coordinates]
        sharing_balance = MomentBalance(
            time=balance.time,
            rows=tuple(balance.rows[i] for i in keep),
            columns=balance.columns,
            arms=balance.arms[:, keep],
            moments=moments[:, keep],
            row_units=tuple(balance.row_units[i] for i in keep),
            status=balance.status,
        )
        muscles = trial.muscles.scaled(values["strength"])
        has_muscle = (np.abs(sharing_balance.arms[sharing_balance.status < 100]) > 0).any(axis=(0, 2))
        if isinstance(self.reserve, dict):
            optimal = np.array([self.reserve.get(name, 0.0) for name in sharing_balance.rows])
        else:
            optimal = np.where(has_muscle, self.reserve, 0.0)
        reserves = Reserves(optimal, self.reserve_weight, self.reserve_exponent)
        try:
            terms = Terms(
                criterion_of(values, self.linear, self.tie_break),
                self._weights(muscles),
                self.stress,
                self._tracking(data),
                None if self.synergies is None else command_matrix(self.synergies, muscles.names),
                data.reactions,
                self.rate_limit,
            )
            return share(sharing_balance, muscles, terms, reserves, reserve_warning=self.reserve_warning), device
        except ValueError as error:
            raise InvalidDesign(str(error)) from None

    def _weights(self, muscles: Muscles) -> Floats | None:
        if isinstance(self.weights, dict):
            return np.array([self.weights.get(name, 1.0) for name in muscles.names])
        return {"none": lambda: None, "volume": muscles.volumes, "pcsa": muscles.areas}[self.weights]()

    def _tracking(self, data: SharingData) -> Tracking | None:
        if self.emg is None or data.signals is None:
            return None
        return Tracking(data.signals, self.emg.weight, self.emg.scale == "free", self.emg.band)
