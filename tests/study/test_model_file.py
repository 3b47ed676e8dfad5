"""Model files and what models declare for their settings: mistakes have file, line and column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest

from designopt.plugin import Array, Declaration, InputFile, PluginError, Quantity, Use, model, with_declared
from designopt.problem import Problem
from designopt.store import archive
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text
from designopt.study.model_file import read_model_file
from designopt.workers.remote.delivery import Delivery


@dataclass(frozen=True)
class Muscle:
    name: str
    force: Annotated[float, Quantity("N", "maximum isometric force", gt=0.0)]
    path: Annotated[list[float], Quantity("m", "attachment")]
    side: Literal["left", "right"] = "right"
    active: bool = True


class Leg(TypedDict, total=False):
    muscle: list[Muscle]
    mass: Annotated[float, Quantity("kg", "mass of the leg", gt=0.0)]


YAML = """\
mass: 7 kg
muscle:
  - {name: soleus, force: 3.5 kN, path: [0, 1 cm, 0.2]}
  - {name: "12", force: 600, path: [1, 2, 3], side: left, active: false}
"""
XML = """\
<?xml version="1.0"?>
<Leg mass="7 kg">
  <!-- two muscles -->
  <muscle name="soleus">
    <force>3.5 kN</force>
    <path>0 0.01 0.2</path>
  </muscle>
  <muscle name="12" side="left" active="false"><force>600</force><path>1 2 3</path></muscle>
</Leg>
"""
MUSCLES = [Muscle("soleus", 3500.0, [0.0, 0.01, 0.2]), Muscle("12", 600.0, [1.0, 2.0, 3.0], "left", False)]


def read(text: str, name: str, model_class: Any = Leg) -> Any:
    return read_model_file(InputFile(name, text.encode()), model_class)


@pytest.mark.parametrize(("text", "name"), [(YAML, "leg.yaml"), (XML, "leg.xml"), (XML, "LEG.OSIM")])
def test_both_forms_give_the_checked_values(text: str, name: str) -> None:
    assert read(text, name) == {"mass": 7.0, "muscle": MUSCLES}


def test_an_element_that_stands_once_is_a_list_where_one_is_wanted() -> None:
    leg = read("<Leg><muscle name='a'><force>1</force><path/></muscle></Leg>", "leg.xml")
    assert leg == {"muscle": [Muscle("a", 1.0, [])]}


MISTAKES = [
    (YAML, "leg.yaml", "3.5 kN", "«3.5 kg»", "muscle.0.force", "'kg' cannot be converted to 'N'"),
    (YAML, "leg.yaml", "side: left", "side: «lft»", "muscle.1.side", "did you mean 'left'?"),
    (YAML, "leg.yaml", "force: 600", "«forc»: 600", "muscle.1", "unknown key 'forc'; did you mean 'force'?"),
    (XML, "leg.xml", "<force>3.5 kN", "«<force»>3.5 kg", "muscle.0.force", "'kg' cannot be converted to 'N'"),
    (XML, "leg.xml", 'side="left"', '«side»="lft"', "muscle.1.side", "did you mean 'left'?"),
    (
        XML,
        "leg.xml",
        "<force>600</force>",
        "«<forc»>600</forc>",
        "muscle.1",
        "unknown key 'forc'; did you mean 'force'?",
    ),
    (XML, "leg.xml", "<path>1 2 3", "«<path»>1 x 3", "muscle.1.path.1", "expected a number in 'm', not the word 'x'"),
    (XML, "leg.xml", 'mass="7 kg"', '«mass»="-7"', "mass", "must be above 0 kg, not -7"),
]


@pytest.mark.parametrize(("text", "name", "find", "replacement", "path", "message"), MISTAKES)
def test_a_mistake_has_file_line_and_column(
    text: str, name: str, find: str, replacement: str, path: str, message: str
) -> None:
    marked = text.replace(find, replacement)
    before = marked.partition("«")[0]
    with pytest.raises(StudyError) as caught:
        read(marked.replace("«", "").replace("»", ""), name)
    (issue,) = caught.value.issues
    assert (issue.file, issue.path) == (name, path)
    assert message in issue.message
    assert (issue.line, issue.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))


REFUSED = [
    ("<a><b></a>", "a.xml", "is not XML: mismatched tag"),
    ("", "a.xml", "is not XML: no element found"),
    ('<!DOCTYPE a [<!ENTITY x "xx">]><a>&x;</a>', "a.xml", "a document type (DOCTYPE) is not allowed"),
    ("<a>" * 100 + "</a>" * 100, "a.xml", "more than 64 levels"),
    ("a: [1", "a.yaml", "this '[' is not closed"),
]


@pytest.mark.parametrize(("text", "name", "message"), REFUSED)
def test_files_without_a_document_are_refused_with_their_place(text: str, name: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        read(text, name)
    assert message in caught.value.issues[0].message
    assert caught.value.issues[0].line is not None


# -------------------------------------------------------------------------------------------------------- declares


class Out(TypedDict):
    total: Annotated[float, Quantity("N", "sum of all forces")]


@model("test_declares", version=1)
class Declares:
    """Inputs, outputs and an array that follow from a file."""

    leg: InputFile
    clash: str = ""

    def declares(self) -> Declaration:
        names = [muscle.name for muscle in read_model_file(self.leg, Leg)["muscle"]]
        inputs = {f"strength_{n}": Quantity("", f"strength of {n}", gt=0.0, le=2.0) for n in names}
        inputs |= {self.clash: Quantity()} if self.clash else {}
        return Declaration(
            inputs=inputs,
            outputs={f"force_{n}": Quantity("N", f"force of {n}", ge=0.0) for n in names},
            arrays={f"path_{n}": Array(("point",), "m") for n in names},
            optional=frozenset({"strength_12"}),
        )

    def evaluate(self, design: Any, scenario: Any, arrays: Any) -> tuple[Out, dict[str, Any]]:
        forces = {"soleus": 3.0 * design["strength_soleus"], "12": 4.0 * design.get("strength_12", 1.0)}
        return {"total": sum(forces.values()), **{f"force_{n}": f for n, f in forces.items()}}, {  # type: ignore[typeddict-item]
            name: [0.0] for name in arrays
        }


STUDY = """\
study: leg
model: {use: test_declares, leg: leg.yaml}
space:
  strength_soleus: {low: 0.5, high: 1.5}
objectives:
  - {name: least, minimize: "force_soleus + total", unit: kN}
solver: {use: sobol, samples: 4}
execution: {executor: serial, arrays: {path_12: all}}
"""


def load(text: str = STUDY, leg: str = YAML) -> Any:
    return study_from_text(text, "leg_study.yaml", files={"leg.yaml": leg.encode()}, problem_of=Problem.from_study)


def test_declared_settings_are_checked() -> None:
    study = load()
    assert study.objectives[0].unit == "kN"
    assert set(study.model.plugin.outputs) == {"total", "force_soleus", "force_12"}
    for find, replacement, message in (
        ("strength_soleus", "strength_solus", "has no design input 'strength_solus'; did you mean 'strength_soleus'?"),
        ("high: 1.5", "high: 3", "must be at most 2"),
        ("force_soleus", "force_solus", "did you mean 'force_soleus'?"),
        ("path_12", "path_13", "has no array 'path_13'; did you mean 'path_12'?"),
    ):
        with pytest.raises(StudyError) as caught:
            load(STUDY.replace(find, replacement))
        assert message in str(caught.value)


def test_a_mistake_in_the_file_is_reported_at_the_setting_that_names_it() -> None:
    with pytest.raises(StudyError) as caught:
        load(leg=YAML.replace("600", "-600"))

    (issue,) = caught.value.issues
    assert (issue.path, issue.line, issue.column) == ("model.leg", 2, 34)
    assert issue.message == "leg.yaml:4:25: muscle.1.force: must be above 0 N, not -600"


def test_workers_and_stores_use_it_without_a_further_call_of_the_model() -> None:
    study = load()
    model_, _ = Delivery.for_problem(study).plugins()
    assert set(model_.plugin.outputs) == {"total", "force_soleus", "force_12"}
    assert set(model_.plugin.arrays) == {"path_soleus", "path_12"}
    files = {file.digest: file for file in archive.files(study)}
    back = archive.decode(archive.encode(study), file=lambda name, digest: InputFile.from_digest(name, digest))
    assert files
    assert back.model.plugin.outputs["force_12"].quantity == Quantity("N", "force of 12", ge=0.0)


@pytest.mark.parametrize(("clash", "message"), [("strength soleus", "letters, digits and underscores")])
def test_a_name_that_is_none_is_refused(clash: str, message: str) -> None:
    leg = InputFile("leg.yaml", YAML.encode())
    with pytest.raises(PluginError, match=message):
        with_declared(Use(Declares.__designopt__, {"leg": leg, "clash": clash}))  # type: ignore[attr-defined]


def test_inputs_that_the_settings_do_not_have_are_left_out() -> None:
    @model("declares_without", version=1)
    class DeclaresWithout:
        """A spring, or none."""

        absent: str = "length"

        def declares(self) -> Declaration:
            """The input that these settings lack."""
            return Declaration(without=frozenset({self.absent}))

        def evaluate(self, design: BareLength, scenario: Mapping[str, Any]) -> BareForce:
            """No force."""
            return {"force": 0.0}

    plugin = DeclaresWithout.__designopt__  # type: ignore[attr-defined]
    assert with_declared(Use(plugin, {})).plugin.inputs == {}
    with pytest.raises(PluginError, match="without 'lenght', which is not annotated"):
        with_declared(Use(plugin, {"absent": "lenght"}))


def test_units_that_depend_on_settings_are_those_of_bare_numbers_too() -> None:
    @model("declares_units", version=1)
    class DeclaresUnits:
        """Numbers without annotations of their own."""

        def declares(self) -> Declaration:
            """Their units."""
            return Declaration(units={"length": "mm", "force": "N"})

        def evaluate(self, design: BareLength, scenario: Mapping[str, Any]) -> BareForce:
            """A spring."""
            return {"force": design["length"]}

    plugin = with_declared(Use(DeclaresUnits.__designopt__, {})).plugin  # type: ignore[attr-defined]
    assert plugin.inputs is not None
    assert plugin.inputs["length"].quantity == Quantity("mm")
    assert plugin.outputs["force"].quantity == Quantity("N")
    study = study_from_text(
        """study: spring
model: {use: declares_units}
space: {length: {low: 0, high: 1}}
objectives: [{name: force, minimize: force}]
solver: {use: sobol, samples: 2}
""",
        "spring.yaml",
    )
    stored = archive.decode(archive.encode(study), file=lambda name, digest: InputFile.from_digest(name, digest))
    assert stored.model.plugin.outputs["force"].quantity == Quantity("N")


class BareLength(TypedDict):
    length: float


class BareForce(TypedDict):
    force: float
