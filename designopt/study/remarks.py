"""What a sound study leaves to the reader to know: numbers that are taken in a unit which its file does not name."""

from __future__ import annotations

from designopt.study.language.checking.values import check
from designopt.study.language.files import NO_FILES
from designopt.study.language.yaml import parse
from designopt.study.sections.context import unit_of
from designopt.study.sections.schema import section_type
from designopt.study.sections.space import is_given_a_unit
from designopt.study.study import StudyDefinition


def units_taken(study: StudyDefinition) -> dict[str, str]:
    """The parameters of the space that are written without a unit, each with the model's, in which they are taken."""
    inputs = study.model.plugin.inputs or {}
    declared = {p.name: unit_of(inputs[p.name]) for p in study.space if p.name in inputs and p.unit}
    if not any(declared.values()):
        return {}
    sections = parse(study.text, "").data().get("space")
    given = {name: check(section_type("space"), section, NO_FILES)[0] for name, section in (sections or {}).items()}
    return {
        name: unit for name, unit in declared.items() if unit and given.get(name) and not is_given_a_unit(given[name])
    }


def remark(study: StudyDefinition) -> str:
    """A note of them in one line; "" where there are none."""
    taken = ", ".join(f"{name} in {unit}" for name, unit in units_taken(study).items())
    return f"note: without a unit in the file, taken as the model's: {taken}" if taken else ""
