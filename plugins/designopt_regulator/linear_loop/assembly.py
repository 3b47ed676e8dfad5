"""The controllers of a design: the parts that its values define, and the mistakes in them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from designopt.plugin import InvalidDesign
from designopt_regulator.controllers.nested import leaves, with_structure
from designopt_regulator.controllers.pid import PARAMETERS, Kind, Law, Limits, pid
from designopt_regulator.controllers.predictor import Predictor, plant_with_delayed_output
from designopt_regulator.controllers.sections import SECTIONS, DifferenceEquation, Transfer, transfers
from designopt_regulator.controllers.structure import Structure, StructureName
from designopt_regulator.frequency.structured_loop import StructuredLoop
from designopt_regulator.plants.linear import Plant
from designopt_regulator.plants.sampled_plant import SampledPlant, hold

Settings = dict[str, float]

#: Alternative parameters: a time, or the gain of a parallel controller.
ALTERNATIVES = (("ti", "ki"), ("td", "kd"))
INNER_PARAMETERS = tuple(f"{name}_inner" for name in ("kp", "ti", "td", "tf", "b", "tt"))
#: Parameters that choose the structure, and those of the sections.
CHOICES = ("structure", "sections")
SECTION_PARAMETERS = tuple(name for names in SECTIONS.values() for name in names)


@dataclass(frozen=True)
class Parts:
    """Controllers of a design: kp, ti, td, tf, b, tt of the only or the `outer` one and of the `inner` one.

    The `sections` stand before the command of the plant. kp is below 0 for direct action.
    """

    name: StructureName
    outer: Settings
    inner: Settings | None = None
    sections: tuple[Transfer, ...] = ()

    @property
    def is_pid(self) -> bool:
        """Whether the design is one PID without sections."""
        return self.name == "single" and not self.sections

    @property
    def pattern(self) -> tuple[Any, ...]:
        """The form of a design: designs of the same form are computed together."""
        return self.name, tuple(len(section.denominator) for section in self.sections)


@dataclass(frozen=True)
class Plants:
    """The whole `plant` from the command to the output, and the `inner` one, to the inner output, if there is one."""

    plant: Plant
    inner: Plant | None = None


def structure_of(design: Mapping[str, Any]) -> StructureName:
    """The structure of a design: as set, else a cascade if it has an inner controller."""
    name: StructureName = design.get("structure", "cascade" if "kp_inner" in design else "single")
    return name


def mistakes(
    parameter_names: Collection[str], always: Collection[str], kind: Kind | None, has_limits: bool, cascade: bool
) -> Iterator[tuple[str, str]]:
    """Parameters that do not fit the kind or each other, with reasons; those `always` given are in every design.

    `has_limits`: limits clip the command; `cascade`: there is an inner plant.
    """
    if "kp" not in parameter_names:
        yield "kp", "is missing; every controller needs it"
    for first, second in ALTERNATIVES:
        if first in always and second in always:
            yield second, f"give it or {first}, not both"
    if "tt" in parameter_names and not has_limits:
        yield "tt", "has no effect without 'limit' or 'rate_limit': the command is never clipped"
    for names in SECTIONS.values():
        for name in names:
            if name not in parameter_names and any(second in parameter_names for second in names):
                yield name, f"is missing; the section needs {', '.join(names)}"
    for name in INNER_PARAMETERS:
        if name in parameter_names and not cascade:
            yield name, "belongs to the inner controller of a cascade: give the model an inner_plant"
        elif name in parameter_names and "kp_inner" not in parameter_names:
            yield name, "belongs to an inner controller, which needs kp_inner"
    if kind is None:
        return
    kind_parameters = PARAMETERS[kind]
    kind_parameters = (*kind_parameters, *(second for first, second in ALTERNATIVES if first in kind_parameters))
    for name in parameter_names:
        if name not in (*kind_parameters, *CHOICES, *SECTION_PARAMETERS, *INNER_PARAMETERS):
            yield name, f"{kind} controllers do not have it (they have {', '.join(kind_parameters)})"
    for first, second in ALTERNATIVES:
        if first in kind_parameters and first not in parameter_names and second not in parameter_names:
            yield first, f"is missing; {kind} controllers need it or {second}"


def unconditional(always: Collection[str], values: Mapping[str, Collection[str]]) -> Iterator[tuple[str, str]]:
    """The parameters that are `always` given although some `values` of the choices exclude them."""
    allowed_of = {name: ("sections", kind) for kind, names in SECTIONS.items() for name in names}
    allowed_of |= dict.fromkeys(INNER_PARAMETERS, ("structure", "cascade"))
    for name in always:
        choice, kind = allowed_of.get(name, ("", ""))
        choices_stated = values.get(choice, ())
        if choices_stated and not all(kind in value.split("_") for value in choices_stated):
            fitting_values = [value for value in choices_stated if kind in value.split("_")]
            fix = f"give it 'when: {{{choice}: [{', '.join(fitting_values)}]}}'" if fitting_values else "leave it out"
            yield name, f"is in every design, whatever the {choice}: {fix}"


def contradictions(design: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Contradictions between a design's structure and sections and its other parameters."""
    name = structure_of(design)
    if name == "cascade" and "kp_inner" not in design:
        yield "kp_inner", "is missing; a cascade needs it"
    if name != "cascade" and (inner := [key for key in INNER_PARAMETERS if key in design]):
        yield inner[0], f"belongs to a cascade, but the structure is {name}"
    if (section_text := design.get("sections")) is not None:
        for kind, names in SECTIONS.items():
            if (kind in section_text.split("_")) != (names[0] in design):
                why = "is missing" if kind in section_text.split("_") else "has no effect"
                yield names[0], f"{why}; the sections are {section_text}"


def settings_of(design: Mapping[str, Any], direct: bool, kind: Kind | None = None) -> Settings:
    """kp, ti, td, tf, b, tt of the only or outer controller; absent ones have no effect."""
    kp = design["kp"]
    return {
        "kp": -kp if direct else kp,
        "ti": kp / design["ki"] if "ki" in design else design.get("ti", np.inf),
        "td": design["kd"] / kp if "kd" in design else design.get("td", 0.0),
        "tf": design.get("tf", 0.0),
        "b": 0.0 if kind == "I_PD" else design.get("b", 1.0),
        "tt": design.get("tt", np.nan),
    }


def parts_of(design: Mapping[str, Any], direct: bool, inner_direct: bool, kind: Kind | None) -> Parts:
    """The parts of a valid design; `direct` and `inner_direct`: the controller has a kp below 0."""
    name = structure_of(design)
    inner = None
    if name == "cascade":
        inner_values = {key.removesuffix("_inner"): design[key] for key in INNER_PARAMETERS if key in design}
        inner = settings_of(inner_values, inner_direct)
    return Parts(name, settings_of(design, direct, kind), inner, transfers(design))


def check_sampled(parts: Parts, sample_time: float) -> None:
    """Raise `InvalidDesign` for a section beyond half the sampling rate."""
    for transfer in parts.sections:
        if not transfer.frequency * sample_time < np.pi:
            raise InvalidDesign(
                f"{'notch' if len(transfer.denominator) == 3 else 'lead'}_frequency: {transfer.frequency:g} rad/s "
                f"is not below half the sampling rate, {np.pi / sample_time:.6g} rad/s"
            )


def predictor(plant: Plant, sample_time: float) -> Predictor:
    """The Smith predictor with a model of the nominal `plant`; raises `InvalidDesign`."""
    try:
        return Predictor.of_plant(plant, sample_time)
    except ValueError as error:
        raise InvalidDesign(f"structure: {error}") from None


def assemble(
    rows: Sequence[Parts], sample_time: float, limits: Limits, setpoint_limits: Limits, model: Predictor | None
) -> Structure:
    """The structure of n controllers with parts of one form, its numbers arrays (n,); one `model` for all."""
    sections = tuple(
        DifferenceEquation(
            *(
                tuple(np.array(numbers) for numbers in zip(*(section[part] for section in column), strict=True))
                for part in (0, 1)
            )
        )
        for column in zip(
            *([DifferenceEquation.from_transfer(t, sample_time) for t in parts.sections] for parts in rows), strict=True
        )
    )

    def law(settings: Sequence[Settings], law_sections: tuple[DifferenceEquation, ...]) -> Law:
        settings_of_rows = pid(**{name: [s[name] for s in settings] for name in settings[0]}, sample_time=sample_time)
        return Law.with_settings(replace(settings_of_rows, sections=law_sections), np.zeros(len(settings)))

    inner = [parts.inner for parts in rows if parts.inner is not None]
    if inner:
        return Structure(law([parts.outer for parts in rows], ()), setpoint_limits, None, law(inner, sections), limits)
    return Structure(law([parts.outer for parts in rows], sections), limits, model if rows[0].name == "smith" else None)


@dataclass(frozen=True)
class SampledPlants:
    """The whole plant, sampled, with the inner output if there is one; the inner plant by itself; a model of both."""

    plant: SampledPlant
    inner: SampledPlant | None = None
    model: SampledPlant | None = None


def sampled_plants(plants: Plants, nominal: Plant, sample_time: float, name: StructureName) -> SampledPlants:
    """The sampled plants for the linear loops of a structure; `nominal` is the predictor's model of the plant."""
    if name == "smith":
        return SampledPlants(hold(plants.plant, sample_time), model=plant_with_delayed_output(nominal, sample_time))
    if name == "single" or plants.inner is None:
        return SampledPlants(hold(plants.plant, sample_time))
    C = np.zeros(len(plants.plant.A))
    C[: len(plants.inner.A)] = plants.inner.C
    inner_outputs = [(C, float(plants.inner.D), float(plants.inner.delay))]
    return SampledPlants(hold(plants.plant, sample_time, inner_outputs), hold(plants.inner, sample_time))


def analyse(plants: SampledPlants, parts: Parts, model: Predictor | None, sample_time: float) -> StructuredLoop:
    """The linear loop of one design; `model` is that of a predictor."""
    structures = assemble([parts], sample_time, Limits(), Limits(), model)
    structure = with_structure(
        structures, (float(v[0]) if isinstance(v, np.ndarray) else v for v in leaves(structures))
    )
    return StructuredLoop(plants.plant, structure, plants.model, plants.inner)


def loop_of(plants: Plants, parts: Parts, nominal: Plant, sample_time: float) -> StructuredLoop:
    """The linear loop of one design, from its plants."""
    model = predictor(nominal, sample_time) if parts.name == "smith" else None
    return analyse(sampled_plants(plants, nominal, sample_time, parts.name), parts, model, sample_time)
