"""The model ``mujoco``: attributes of an MJCF or URDF model are set, it is compiled and simulated."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Set
from dataclasses import field
from typing import Annotated, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import (
    Array,
    Declaration,
    Diverged,
    InputFile,
    InvalidDesign,
    InvalidSetting,
    Quantity,
    closest,
    model,
)
from designopt_external import reductions, signals
from designopt_external.mujoco import measures
from designopt_external.mujoco.measures import AttributeSection, MujocoOutputSection, SignalArraySection
from designopt_external.mujoco.scene import Outlines
from designopt_external.mujoco.specification import STATES, UnusableModel, assign, check_path, specification
from designopt_external.signals import InputSignals

TIME, SCENE = "time", "scene"
#: End of the name of a column with the initial velocity of a joint.
VELOCITY = "_velocity"
#: Maximum number of samples of a simulation.
MOST_SAMPLES = 10_000_000


class Conditions(TypedDict, total=False):
    """Conditions beside those of the settings."""

    signals: Annotated[InputFile, Quantity("", "table (CSV, MOT, STO) of controls over time in this scenario")]
    initial: Annotated[InputFile, Quantity("", "table (CSV, MOT, STO) whose first row is the initial state")]


@model("mujoco", version=1)
class Mujoco:
    """A MuJoCo model, from an MJCF or URDF file: any numeric attribute of a named element is a design input.

    The model is edited as a specification and compiled again for each design; numbers are those of MJCF. Paths are
    ``KIND/NAME/ATTRIBUTE`` with a position from 0 for vectors, ``geom/shank/size/1``; ``control/ACTUATOR`` is a
    constant control, ``initial/JOINT`` and ``initial_velocity/JOINT`` are the initial state. A body whose inertia comes
    from its geoms is scaled to its ``mass``. The array ``scene`` has the outlines of the geoms, for the report.
    """

    file: Annotated[InputFile, Quantity("", "MJCF or URDF file")]
    inputs: Annotated[
        dict[str, AttributeSection], Quantity("", "design inputs by name, with the number that each sets")
    ]
    outputs: Annotated[dict[str, MujocoOutputSection], Quantity("", "results by name: a signal and its reduction")]
    duration: Annotated[float, Quantity("s", "of the simulation", gt=0)]
    files: Annotated[list[InputFile], Quantity("", "files that the model includes or loads: XML, meshes, textures")] = (
        field(default_factory=list)
    )
    conditions: Annotated[dict[str, AttributeSection], Quantity("", "conditions of scenarios, like inputs")] = field(
        default_factory=dict
    )
    arrays: Annotated[dict[str, SignalArraySection], Quantity("", "signals over time by name")] = field(
        default_factory=dict
    )
    step: Annotated[float | None, Quantity("s", "of samples; default: that of the model", gt=0)] = None
    keyframe: Annotated[str, Quantity("", "keyframe of the model as the initial state; default: its own")] = ""
    signals: Annotated[InputFile | None, Quantity("", "table (CSV, MOT, STO) of controls over time; default none")] = (
        None
    )
    initial: Annotated[
        InputFile | None,
        Quantity("", "table (CSV, MOT, STO) whose first row is the initial state: JOINT, JOINT_velocity"),
    ] = None
    columns: Annotated[dict[str, str], Quantity("", "columns of 'signals' by actuator; default: of the same name")] = (
        field(default_factory=dict)
    )

    # ------------------------------------------------------------------------------------------------------- checks

    @functools.cached_property
    def _spec(self) -> Any:
        return specification(self.file, self.files)

    def check(self) -> Iterator[InvalidSetting]:
        """Return the mistakes in the settings and in the model's files."""
        try:
            spec = self._spec
        except UnusableModel as error:
            yield InvalidSetting("file", str(error))
            return
        compiled = spec.copy().compile()
        for setting, sections in (("inputs", self.inputs), ("conditions", self.conditions)):
            for name, section in sections.items():
                at = f"{setting}.{name}"
                if not name.isidentifier() or name in ("signals", "initial"):
                    yield InvalidSetting(at, f"'{name}' cannot be a name here: write letters, digits and underscores")
                yield from measures.check_unit(section, at)
                try:
                    check_path(spec, section["set"])
                except UnusableModel as error:
                    yield InvalidSetting(f"{at}.set", str(error))
        for name in [name for name in self.inputs if name in self.conditions]:
            yield InvalidSetting(f"conditions.{name}", "is an input of the design too; remove one of them")
        yield from self._check_paths()
        if not self.outputs:
            yield InvalidSetting("outputs", "is empty; name a result, as in energy: {energy: total, take: max}")
        for name, output in self.outputs.items():
            yield from measures.check(spec, compiled, output, f"outputs.{name}")
            yield from reductions.check(output, f"outputs.{name}")
        for name, array in self.arrays.items():
            if name in self.outputs or name in (TIME, SCENE):
                yield InvalidSetting(f"arrays.{name}", "is the name of another result; choose another one")
            yield from measures.check(spec, compiled, array, f"arrays.{name}")
        yield from self._check_motion(spec, compiled)

    def _check_paths(self) -> Iterator[InvalidSetting]:
        """Two names that set the same number."""
        names: dict[str, str] = {}
        for setting, sections in (("inputs", self.inputs), ("conditions", self.conditions)):
            for name, section in sections.items():
                if section["set"] in names:
                    yield InvalidSetting(
                        f"{setting}.{name}.set", f"is set by '{names[section['set']]}' too; remove one"
                    )
                names[section["set"]] = name

    def _check_motion(self, spec: Any, compiled: Any) -> Iterator[InvalidSetting]:
        step = self.step or float(compiled.opt.timestep)
        if self.duration / step > MOST_SAMPLES:
            yield InvalidSetting("duration", f"gives {self.duration / step:.3g} samples; at most {MOST_SAMPLES}")
        if self.step is not None:
            ratio = self.step / float(compiled.opt.timestep)
            if round(ratio) < 1 or abs(ratio - round(ratio)) > 1e-6:
                timestep = float(compiled.opt.timestep)
                yield InvalidSetting("step", f"is not a multiple of the model's time step, {timestep:g} s")
        keys = [key.name for key in spec.keys]
        if self.keyframe and self.keyframe not in keys:
            near = closest(self.keyframe, keys)
            hint = f"did you mean '{near}'?" if near else f"there are {', '.join(keys) or 'none'}"
            yield InvalidSetting("keyframe", f"the model has no keyframe '{self.keyframe}'; {hint}")
        actuators = self._actuators
        yield from signals.check_columns(self.columns, actuators)
        for name, file in (("signals", self.signals), ("initial", self.initial)):
            if file is not None:
                yield from self.check_scenario({name: file})

    def check_scenario(self, conditions: Mapping[str, Any]) -> Iterator[InvalidSetting]:
        """Return the mistakes in the tables of a scenario."""
        if "signals" in conditions:
            file = conditions["signals"]
            yield from signals.check("signals", file, self._actuators, self.columns, 0.0, self.duration)
        if "initial" in conditions:
            try:
                signals.read(conditions["initial"], self._joints, {})
            except ValueError as error:
                yield InvalidSetting("initial", str(error))

    @property
    def _actuators(self) -> dict[str, str]:
        return {item.name: "" for item in self._spec.actuators if item.name}

    @property
    def _joints(self) -> dict[str, str]:
        names = [item.name for item in self._spec.joints if item.name]
        return {column: "" for name in names for column in (name, name + VELOCITY)}

    def declares(self) -> Declaration:
        """Inputs, conditions, outputs and arrays of the settings."""

        def quantities(sections: Mapping[str, AttributeSection]) -> dict[str, Quantity]:
            return {n: Quantity(s.get("unit", ""), s.get("meaning", "") or s["set"]) for n, s in sections.items()}

        outputs = {
            name: Quantity(reductions.unit_of(section, measures.unit_of(section)), section.get("meaning", ""))
            for name, section in self.outputs.items()
        }
        arrays = {TIME: Array((TIME,), "s", "", "float"), SCENE: Array((TIME, "vertex", "axis"), "m", "", "float")}
        for name, array in self.arrays.items():
            arrays[name] = Array((TIME,), measures.unit_of(array), array.get("meaning", ""), "float")
        return Declaration(
            inputs=quantities(self.inputs),
            conditions=quantities(self.conditions),
            outputs=outputs,
            arrays=arrays,
            optional=reductions.may_be_missing(self.outputs),
        )

    # ---------------------------------------------------------------------------------------------------- execution

    def prepare(self) -> None:
        """Read the specification, and let warnings of MuJoCo go where they end nothing: the state is checked."""
        import mujoco

        _ = self._spec
        mujoco.set_mju_user_warning(lambda text: None)

    def evaluate(
        self, design: Mapping[str, Any], scenario: Conditions, arrays: Set[str]
    ) -> tuple[Mapping[str, float], Mapping[str, NDArray[Any]]]:
        """The outputs and `arrays` of a simulation; a crossing that does not occur is infinite.

        Raises `InvalidDesign` if MuJoCo refuses the model, `Diverged` if the simulation is unstable.
        """
        import mujoco

        sections = {**self.inputs, **self.conditions}
        values = {**scenario, **design}
        numbers = {section["set"]: float(values[name]) for name, section in sections.items()}
        compiled = self._compile(numbers)
        data = mujoco.MjData(compiled)
        self._start(compiled, data, numbers, scenario)
        controls = scenario.get("signals", self.signals)
        table = None if controls is None else signals.read(controls, self._actuators, self.columns)
        time, trajectories, scene = self._simulate(compiled, data, table, arrays)
        outputs = {name: reductions.reduce(section, time, trajectories[name]) for name, section in self.outputs.items()}
        kept_arrays = {name: trajectories[name] for name in arrays if name in trajectories}
        if TIME in arrays:
            kept_arrays[TIME] = time
        if SCENE in arrays:
            kept_arrays[SCENE] = np.array(scene)
        return outputs, kept_arrays

    def _compile(self, numbers: Mapping[str, float]) -> Any:
        """The compiled model with the attributes of a design; masses of bodies last, as geoms change them."""
        import mujoco

        spec = self._spec.copy()
        try:
            for path in sorted(numbers, key=lambda path: (path.startswith("body/") and path.endswith("/mass"), path)):
                if path.partition("/")[0] not in STATES:
                    assign(spec, path, numbers[path])
            compiled = spec.compile()
        except ValueError as error:
            raise InvalidDesign(f"MuJoCo refuses the model: {' '.join(str(error).split())}") from None
        compiled.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        compiled.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        return compiled

    def _start(self, compiled: Any, data: Any, numbers: Mapping[str, float], scenario: Conditions) -> None:
        """The initial state: the keyframe, the table, the study's own numbers, in this order."""
        import mujoco

        if self.keyframe:
            mujoco.mj_resetDataKeyframe(compiled, data, compiled.key(self.keyframe).id)
        file = scenario.get("initial", self.initial)
        if file is not None:
            table = signals.read(file, self._joints, {})
            for name, value in zip(table.names, table.values[0], strict=True):
                if name.endswith(VELOCITY) and name.removesuffix(VELOCITY) in self._joints:
                    data.joint(name.removesuffix(VELOCITY)).qvel[0] = value
                else:
                    data.joint(name).qpos[0] = value
        for path, value in numbers.items():
            kind, _, name = path.partition("/")
            if kind == "initial":
                data.joint(name).qpos[0] = value
            elif kind == "initial_velocity":
                data.joint(name).qvel[0] = value
            elif kind == "control":
                data.actuator(name).ctrl[0] = value

    def _simulate(
        self, compiled: Any, data: Any, table: InputSignals | None, arrays: Set[str]
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Time, signals and outlines at each sample; controls are constant within a time step."""
        import mujoco

        timestep = float(compiled.opt.timestep)
        stride = max(1, round((self.step or timestep) / timestep))
        steps = max(1, round(self.duration / timestep))
        sections: dict[str, Mapping[str, Any]] = {**self.outputs}
        sections |= {name: section for name, section in self.arrays.items() if name in arrays}
        readers = [measures.reader(compiled, data, section) for section in sections.values()]
        outlines = Outlines(compiled) if SCENE in arrays else None
        at = np.unique([*range(0, steps + 1, stride), steps])
        time, records = timestep * at.astype(np.float64), np.empty((len(at), len(readers)))
        controls = None if table is None else table.at(timestep * np.arange(steps + 1, dtype=np.float64))
        actuators = [] if table is None else [compiled.actuator(name).id for name in table.names]
        scene: list[NDArray[np.float64]] = []
        current = 0
        for row, target in enumerate(at.tolist()):
            if controls is None:
                if target > current:
                    mujoco.mj_step(compiled, data, target - current)
            else:
                for k in range(current, target):
                    data.ctrl[actuators] = controls[k]
                    mujoco.mj_step(compiled, data)
                data.ctrl[actuators] = controls[target]
            current = target
            mujoco.mj_forward(compiled, data)  # sensors and forces at this time; those after a step are of the last one
            records[row] = [read() for read in readers]
            if outlines is not None:
                scene.append(outlines.at(data))
        kinds = mujoco.mjtWarning
        unstable = (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC)
        if any(data.warning[kind].number for kind in unstable) or not np.isfinite(records).all():
            finite = np.isfinite(records).all(axis=1)
            last = float(time[int(finite.argmin())]) if not finite.all() else float(time[-1])
            raise Diverged(f"the simulation is unstable before {last:g} s; try a shorter time step", reason="unstable")
        return time, dict(zip(sections, records.T.copy(), strict=True)), scene
