"""A study goes into a store and comes back the same."""

import dataclasses
import json
from typing import Annotated

import pytest
from run_cases import make_study, use

from designopt.plugin import InputFile, Quantity, Use, model
from designopt.problem import Problem
from designopt.run import archive
from designopt.study.expression import Expression
from designopt.study.study import Constraint


@dataclasses.dataclass(frozen=True)
class Bolt:
    width: Annotated[float, Quantity("m")]
    drawing: InputFile | None = None


@model("bolted", version=3, unchecked=True)
def bolted(design, scenario, *, bolts: list[Bolt], table: InputFile, note: str = "none"):
    """A model with structured settings."""
    return {"mass": 0.0}


def test_every_part_of_a_study_comes_back_from_its_json():
    table, drawing = InputFile("a/table.csv", b"1,2\n"), InputFile("bolt.svg", b"<svg/>")
    study = make_study(
        scenarios=({}, {"shift": 1.0, "file": table}),
        constraints=(
            Constraint("c", Expression.parse("height*2 + 1"), use("aggregation", "quantile", level=0.5), 1.0),
        ),
        relations=(Expression.parse("a <= 0.5 * b"), Expression.parse("a <= 1.5*b", "a <= 1500 [mm/m] * b")),
        plots=(use("aggregation", "worst"),),
        seed=7,
        title="T",
        description="D",
        text="study: test",
        plugin_files=(("mine.py", b"x = 1"),),
    )
    settings = {"bolts": [Bolt(0.25, drawing), Bolt(1.0)], "table": table}
    study = dataclasses.replace(study, model=Use(bolted.__designopt__, settings))
    contents = {f.digest: f.content for f in archive.files(study)}
    assert {f.name for f in archive.files(study)} == {"a/table.csv", "bolt.svg", "mine.py"}
    data = json.loads(json.dumps(archive.encode(study)))
    back = archive.decode(data, file=contents.__getitem__, text=study.text, path=study.path)
    assert back.model.settings == {**settings, "note": "none"}
    assert Problem.of(back).digest == Problem.of(study).digest
    for field in dataclasses.fields(study):
        ours, theirs = getattr(study, field.name), getattr(back, field.name)
        if field.name not in ("model", "objectives", "constraints", "relations", "stages", "plots"):
            assert theirs == ours, field.name
    assert json.loads(json.dumps(archive.encode(back))) == data
    assert [r.text for r in back.relations] == ["a <= 0.5 * b", "a <= 1500 [mm/m] * b"]
    assert back.constraints[0].expression.text == "height*2 + 1"


def test_a_store_without_the_texts_of_its_expressions_can_be_read():
    study = make_study(relations=(Expression.parse("a <= 0.5 * b"),))
    data = archive.encode(study)
    del data["relation_texts"], data["objectives"][0]["text"]
    back = archive.decode(data, file={}.__getitem__)
    assert (back.relations, back.objectives) == (study.relations, study.objectives)
    assert back.relations[0].text == "a <= 0.5*b"


def test_a_plugin_of_another_version_is_not_taken_for_the_recorded_one():
    study = make_study()
    data = archive.encode(study)
    data["model"]["version"] = 99
    back = archive.decode(data, file={}.__getitem__)
    assert "the store needs 99" in back.model.plugin.description
    assert back.model.plugin.outputs.keys() == study.model.plugin.outputs.keys()
    with pytest.raises(Exception, match="the store needs 99"):
        back.model.build().evaluate({}, {})
