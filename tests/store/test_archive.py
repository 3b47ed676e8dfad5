"""A study goes into a store and comes back the same."""

import dataclasses
import json
from typing import Annotated

import pytest
from run_cases import make_study, use

from designopt.plugin import Declaration, InputFile, Quantity, Use, find, model
from designopt.plugin.declared import with_declared
from designopt.problem import Problem
from designopt.store import archive
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import (
    Budget,
    Choice,
    Cluster,
    DesignVariable,
    HypervolumeGain,
    Scenario,
    Stage,
    StartFrom,
    StudyConstraint,
    StudyDefinition,
    Validation,
)


@dataclasses.dataclass(frozen=True)
class Bolt:
    width: Annotated[float, Quantity("m")]
    drawing: InputFile | None = None


@model("bolted", version=3, unchecked=True)
def bolted(design, scenario, *, bolts: list[Bolt], table: InputFile, note: str = "none"):
    """A model with structured settings."""
    return {"mass": 0.0}


def no_file(name: str, digest: str) -> InputFile:
    raise AssertionError("the study has no files")


def test_every_part_of_a_study_comes_back_from_its_json():
    table, drawing = InputFile("a/table.csv", b"1,2\n"), InputFile("bolt.svg", b"<svg/>")
    spare = InputFile("spare.csv", b"3\n")
    study = make_study(
        scenarios=({}, {"shift": 1.0, "file": table}),
        constraints=(
            StudyConstraint("c", Expression.parse("height*2 + 1"), use("aggregation", "quantile", level=0.5), 1.0),
        ),
        relations=(Expression.parse("a <= 0.5 * b"), Expression.parse("a <= 1.5*b", "a <= 1500 [mm/m] * b")),
        plots=(use("report", "front"),),
        seed=7,
        title="T",
        description="D",
        text="study: test",
        plugin_files=(("mine.py", b"x = 1"),),
        execution={
            "executor": "dask",
            "scheduler": "tls://host:8786",
            "cluster": Cluster("slurm", 4, 8, 32_000_000_000, 3600.0, minimum=1, queue="short", account="x"),
            "retries": {"crashed": 0, "lost_worker": 9, "timeout": 1, "error": 2},
            "on_failure": {"diverged": "stop", "error": "infeasible"},
            "arrays": {"bending": "front"},
        },
        stages=(
            Stage("walk", use("solver", "walk"), Budget(9, 2.0, HypervolumeGain((1.0, 2.0), 0.01, 5))),
            Stage("next", use("solver", "walk"), Budget(5), StartFrom("walk", "best", 3)),
            Stage("last", use("solver", "walk"), Budget(5), StartFrom(store="../other.study")),
        ),
        choose=(Choice("knee"), Choice("topsis", {"f0": 2.0}, "minmax"), Choice("nearest_to", target={"f0": 0.5})),
        validate=Validation((Scenario("v0", {"shift": 0.3, "file": spare}), Scenario("v1")), (0.1, 0.9)),
        reference={"f0": 4.0},
        export=(Use(find("export", "csv")),),
    )
    settings = {"bolts": [Bolt(0.25, drawing), Bolt(1.0)], "table": table}
    space = (*study.space, DesignVariable("kind", "choice", values=("x", 1, True), when={"b": (0.5, "y")}))
    study = dataclasses.replace(study, model=Use(bolted.__designopt__, settings), space=space)
    contents = {f.digest: f.content for f in archive.files(study)}
    assert {f.name for f in archive.files(study)} == {"a/table.csv", "spare.csv", "bolt.svg", "mine.py"}
    data = json.loads(json.dumps(archive.encode(study)))
    back = archive.decode(
        data, file=lambda name, digest: InputFile(name, contents[digest]), text=study.text, path=study.path
    )
    assert back.model.settings == {**settings, "note": "none"}
    assert Problem.from_study(back).digest == Problem.from_study(study).digest
    for field in dataclasses.fields(study):
        ours, theirs = getattr(study, field.name), getattr(back, field.name)
        if field.name not in (
            "model",
            "objectives",
            "constraints",
            "relations",
            "stages",
            "plots",
            "export",
        ):  # with plugins
            assert theirs == ours, field.name
    assert [(s.name, s.budget, s.start_from) for s in back.stages] == [
        (s.name, s.budget, s.start_from) for s in study.stages
    ]
    assert json.loads(json.dumps(archive.encode(back))) == data
    assert [r.text for r in back.relations] == ["a <= 0.5 * b", "a <= 1500 [mm/m] * b"]
    assert back.constraints[0].expression.text == "height*2 + 1"


def test_settings_unknown_to_an_older_version_are_at_their_defaults():
    study = make_study()
    data = json.loads(json.dumps(archive.encode(study)))
    for name in ("choose", "validate", "reference", "export"):
        del data[name]
    for parameter in data["space"]:
        del parameter["when"]
    for stage in data["stages"]:
        del stage["budget"]["hypervolume"]
    for name in ("cluster", "on_failure"):
        del data["execution"][name]
    back = archive.decode(data, file=no_file)
    for field in dataclasses.fields(StudyDefinition):
        if field.name not in ("model", "objectives", "stages"):  # plugins have their settings written out
            assert getattr(back, field.name) == getattr(study, field.name), field.name
    assert back.stages[0].budget == Budget()


def test_a_store_without_the_texts_of_its_expressions_can_be_read():
    study = make_study(relations=(Expression.parse("a <= 0.5 * b"),))
    data = archive.encode(study)
    del data["relation_texts"], data["objectives"][0]["text"]
    back = archive.decode(data, file=no_file)
    assert (back.relations, back.objectives) == (study.relations, study.objectives)
    assert back.relations[0].text == "a <= 0.5*b"


def test_inputs_that_a_model_declares_keep_their_meaning_also_in_stores_without_them():
    @model("declaring", version=1)
    class Declaring:
        """Inputs that follow from its settings."""

        def declares(self) -> Declaration:
            return Declaration(inputs={"a": Quantity("m", "length of the crank")})

        def evaluate(self, design, scenario, arrays):
            return {"mass": 0.0}, {}

    study = dataclasses.replace(make_study(), model=with_declared(use("model", "declaring")))
    data = json.loads(json.dumps(archive.encode(study)))
    plugin = archive.decode(data, file=no_file).model.plugin
    assert plugin.inputs["a"].quantity == Quantity("m", "length of the crank")
    del data["model"]["inputs"]
    assert archive.decode(data, file=no_file).model.plugin.inputs is None


def test_a_plugin_of_another_version_does_not_replace_the_recorded_one():
    study = make_study()
    data = archive.encode(study)
    data["model"]["version"] = 99
    back = archive.decode(data, file=no_file)
    assert "the store needs 99" in back.model.plugin.description
    assert back.model.plugin.outputs.keys() == study.model.plugin.outputs.keys()
    with pytest.raises(Exception, match="the store needs 99"):
        back.model.build().evaluate({}, {})


def test_a_setting_that_a_plugin_has_got_since_is_at_its_default_and_others_make_it_another_plugin():
    data = archive.encode(make_study("bowl"))
    settings = dict(data["model"]["settings"])
    data["model"]["settings"] = {}  # as if "pause" had come later
    read = archive.decode(data, file=no_file)
    assert read.model.build().evaluate({"a": 1.0}, {}) == {"height": 1.0, "slope": 2.0}
    assert Problem.from_study(read).canonical()["model"]["settings"] == {}
    data["model"]["settings"] = {**settings, "gone": 3}
    assert "has no setting 'gone' any more" in archive.decode(data, file=no_file).model.plugin.description
