"""Renamed settings, inputs, conditions and outputs: study files, keys and stores with the former names go on."""

from dataclasses import dataclass, field
from typing import Annotated, TypedDict

import pytest

import designopt
from designopt.former import former_arguments
from designopt.plugin import PluginError, Quantity, discovery, model
from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.remarks import remarks

RAN = []


class Mass(TypedDict):
    mass: Annotated[float, Quantity("kg", "of the part")]


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """What is declared here is forgotten with the test."""
    monkeypatch.setattr(discovery, "_declared", dict(discovery._declared))
    RAN.clear()


def declare_before():
    """The model in the version that had the former names."""

    @dataclass(frozen=True)
    class Drive:
        force_limit: Annotated[float, Quantity("N", "of the drive")] = 5.0

    class Design(TypedDict, total=False):
        least_size: Annotated[float, Quantity("m", "of the part")]
        kind: Annotated[str, Quantity("", "of the part")]

    class Conditions(TypedDict, total=False):
        load_limit: Annotated[float, Quantity("N", "on the part")]

    class Outputs(TypedDict):
        error_left: Annotated[float, Quantity("m", "at the end")]
        mass: Annotated[float, Quantity("kg", "of the part")]

    @model("renamed_test", version=1)
    class Part:
        least_margin: Annotated[float, Quantity("", "of safety")] = 1.0
        drive: Drive = field(default_factory=Drive)

        def evaluate(self, design: Design, scenario: Conditions) -> Outputs:
            RAN.append(design)
            error = scenario["load_limit"] / design["least_size"] / self.drive.force_limit
            return {"error_left": self.least_margin * error, "mass": design["least_size"]}

    return Part


def declare_now():
    """The same model with the present names."""

    @former_arguments(force_limit="max_force")
    @dataclass(frozen=True)
    class Drive:
        max_force: Annotated[float, Quantity("N", "of the drive", former="force_limit")] = 5.0

    class Design(TypedDict, total=False):
        min_size: Annotated[float, Quantity("m", "of the part", former="least_size")]
        kind: Annotated[str, Quantity("", "of the part")]

    class Conditions(TypedDict, total=False):
        max_load: Annotated[float, Quantity("N", "on the part", former="load_limit")]

    class Outputs(TypedDict):
        residual_error: Annotated[float, Quantity("m", "at the end", former="error_left")]
        mass: Annotated[float, Quantity("kg", "of the part")]

    @model("renamed_test", version=1)
    class Part:
        min_margin: Annotated[float, Quantity("", "of safety", former="least_margin")] = 1.0
        drive: Drive = field(default_factory=Drive)

        def evaluate(self, design: Design, scenario: Conditions) -> Outputs:
            RAN.append(design)
            error = scenario["max_load"] / design["min_size"] / self.drive.max_force
            return {"residual_error": self.min_margin * error, "mass": design["min_size"]}

    return Part


BEFORE = """\
study: renamed
model: {use: renamed_test, least_margin: 2, drive: {force_limit: 4}}
space:
  least_size: {low: 1, high: 2, tolerance: 1 %}
  kind: {values: [round, square]}
scenarios: [{name: light, load_limit: 1}, {name: heavy, load_limit: 3}]
relations: ["least_size >= 0.5"]
baseline: {least_size: 1.5, kind: round}
objectives: [{minimize: error_left}, {name: weight, minimize: 2 * mass}]
constraints: [{name: settled, of: "error_left / 2", max: 4 m}]
stages: [{name: sample, solver: {use: random, samples: 4}}]
report:
  reference: {error_left: 9, weight: 9}
  validate: {scenarios: [{name: worst, load_limit: 4}]}
  tolerances: {neighbours: 2}
"""
NOW = BEFORE
for former, present in (
    ("least_margin", "min_margin"), ("force_limit", "max_force"), ("least_size", "min_size"),
    ("load_limit", "max_load"), ("error_left", "residual_error"),
):  # fmt: skip
    NOW = NOW.replace(former, present)


def loaded(folder, text):
    (folder / "study.yaml").write_text(text)
    return designopt.load(folder / "study.yaml")


def identity(study):
    problem = Problem.from_study(study.definition)
    X = problem.space.from_search([[1.25, 0.0], [1.75, 1.0]])
    return problem.digest, problem.keys(X)


def test_keys_and_digest_stay_with_the_present_names(tmp_path):
    declare_before()
    before = identity(loaded(tmp_path, BEFORE))
    declare_now()
    assert identity(loaded(tmp_path, NOW)) == before


def test_a_file_with_former_names_is_the_same_study_and_each_has_a_warning_with_its_place(tmp_path):
    declare_now()
    now = loaded(tmp_path, NOW)
    with pytest.warns(FutureWarning) as warned:
        study = loaded(tmp_path, BEFORE)
    assert identity(study) == identity(now)
    texts = [str(warning.message).removeprefix(f"{tmp_path}/") for warning in warned]
    assert "study.yaml:2:28: 'least_margin' is now called 'min_margin'" in texts
    assert "study.yaml:2:53: 'force_limit' is now called 'max_force'" in texts
    assert "study.yaml:4:3: 'least_size' is now called 'min_size'" in texts
    assert "study.yaml:9:25: 'error_left' is now called 'residual_error'" in texts
    assert study.definition.objectives[0].name == "error_left"  # other sections may refer to it


def test_numbers_without_units_are_noted_by_their_present_names(tmp_path):
    declare_now()
    with pytest.warns(FutureWarning):
        study = loaded(tmp_path, BEFORE)
    (note,) = remarks(study.definition)
    assert "setting drive.max_force in N" in note
    assert "condition max_load in N" in note
    assert "min_size in m" in note


def test_tables_with_former_names_in_their_heads_are_taken(tmp_path):
    declare_now()
    (tmp_path / "designs.csv").write_text("least_size [mm],kind\n1200,round\n1300,square\n")
    (tmp_path / "loads.csv").write_text("name,load_limit\nlight,1\nheavy,3\n")
    text = NOW.replace("{use: random, samples: 4}", "{use: evaluate, table: designs.csv}")
    text = text.replace("[{name: light, max_load: 1}, {name: heavy, max_load: 3}]", "[{use: table, file: loads.csv}]")
    with pytest.warns(FutureWarning) as warned:
        study = loaded(tmp_path, text)
    assert {str(warning.message) for warning in warned} == {
        "designs.csv:1:1: 'least_size' is now called 'min_size'",
        "loads.csv:1:6: 'load_limit' is now called 'max_load'",
    }
    assert [s.values for s in study.definition.scenarios] == [{"max_load": 1.0}, {"max_load": 3.0}]
    designs = study.definition.stages[-1].solver.settings["designs"]
    assert [design["min_size"] for design in designs] == pytest.approx([1.2, 1.3])


def test_a_former_name_given_on_the_command_line_works_too(tmp_path):
    declare_now()
    (tmp_path / "study.yaml").write_text(NOW.replace("min_margin: 2, ", ""))
    with pytest.warns(FutureWarning, match="'least_margin' is now called 'min_margin'"):
        with_margin = designopt.load(tmp_path / "study.yaml", overrides=["model.least_margin=3"])
    assert with_margin.definition.model.settings["min_margin"] == 3.0


def test_a_value_under_both_names_is_refused(tmp_path):
    declare_now()
    with (
        pytest.warns(
            FutureWarning, match="yaml:2:43: 'least_margin' is the former name of 'min_margin', which is also given"
        ),
        pytest.raises(StudyError, match="unknown key 'least_margin'; did you mean 'min_margin'"),
    ):
        loaded(tmp_path, NOW.replace("min_margin: 2", "min_margin: 2, least_margin: 2"))


@pytest.mark.parametrize("text", [BEFORE, NOW], ids=["file of former names", "file of present names"])
def test_the_command_line_replaces_what_the_file_has_under_the_other_name(tmp_path, text, recwarn):
    declare_now()
    (tmp_path / "study.yaml").write_text(text)
    given = ["model.least_margin=3", "model.drive.force_limit=5", "space.least_size.low=1.1"]
    given += ["scenarios.light.load_limit=2", "baseline.least_size=1.4"]
    study = designopt.load(tmp_path / "study.yaml", overrides=given).definition
    assert study.model.settings["min_margin"] == 3.0
    assert study.model.settings["drive"].max_force == 5.0
    assert (study.space[0].name, study.space[0].low, study.space[0].high) == ("min_size", 1.1, 2.0)
    assert [scenario.values["max_load"] for scenario in study.scenarios] == [2.0, 3.0]
    assert study.baseline.solver.settings["designs"][0]["min_size"] == 1.4
    assert {str(warning.message).partition("'")[2].partition("'")[0] for warning in recwarn} >= {"least_margin"}


def test_mistakes_in_a_value_with_a_former_name_have_its_place(tmp_path):
    declare_now()
    with (
        pytest.warns(FutureWarning, match="force_limit"),
        pytest.raises(StudyError, match=r"study\.yaml:2:64: error: model\.drive\.max_force: expected a number in 'N'"),
    ):
        loaded(tmp_path, NOW.replace("max_force: 4", "force_limit: strong"))


def test_a_store_with_former_names_is_read_and_continued_without_evaluating_again(tmp_path):
    declare_before()
    first = loaded(tmp_path, BEFORE).run(tmp_path / "store", executor="serial")
    done, figures = len(RAN), first.outcomes.figures["error_left"]
    declare_now()
    found = designopt.open_store(tmp_path / "store")
    assert found.outcomes.figures["residual_error"] == pytest.approx(figures)
    assert found.study.model.settings["min_margin"] == 2.0
    assert found.problem.space.names == ("min_size", "kind")
    assert [s.values for s in found.study.scenarios] == [{"max_load": 1.0}, {"max_load": 3.0}]
    assert str(found.study.objectives[0].expression) == "residual_error"
    assert found.validation is not None
    again = loaded(tmp_path, NOW).run(tmp_path / "store", executor="serial", resume=True)
    assert len(RAN) == done
    assert again.outcomes.figures["residual_error"] == pytest.approx(figures)


def test_a_store_of_present_names_is_the_same_as_one_of_former_names(tmp_path):
    """Byte for byte what another version reads: stores go by the former names."""
    declare_before()
    loaded(tmp_path, BEFORE).run(tmp_path / "before", executor="serial")
    declare_now()
    loaded(tmp_path, NOW).run(tmp_path / "now", executor="serial")
    declare_before()
    texts = []
    for name in ("before", "now"):
        with designopt.open_store(tmp_path / name)._journal() as journal:
            texts.append(journal.dump())
    assert texts[0] == texts[1]
    assert "residual_error" not in texts[1]


def test_a_store_of_a_model_that_is_away_is_read_with_the_names_that_it_had_when_it_was_written(tmp_path):
    declare_now()
    known = loaded(tmp_path, NOW).run(tmp_path / "store", executor="serial")
    del discovery._declared["model", "renamed_test"]
    found = designopt.open_store(tmp_path / "store")
    assert found.outcomes.figures["residual_error"].shape == (5, 2)
    assert found.problem.space.names == ("min_size", "kind")
    assert found.problem.digest == known.problem.digest
    assert [s.values for s in found.study.scenarios] == [{"max_load": 1.0}, {"max_load": 3.0}]
    assert found.study.model.settings["min_margin"] == 2.0
    assert found.study.model.settings["drive"] == {"force_limit": 4.0}  # those within a mapping are not on record
    written = [file.read_text().splitlines()[0] for file in designopt.export(found, tmp_path / "out", ["csv"])]
    assert "residual_error" in written[0]
    assert "error_left" not in "".join(written).replace("residual_error", "")


def test_a_store_from_before_the_rename_is_read_with_the_former_names_where_the_model_is_away(tmp_path):
    declare_before()
    loaded(tmp_path, BEFORE).run(tmp_path / "store", executor="serial")
    del discovery._declared["model", "renamed_test"]
    found = designopt.open_store(tmp_path / "store")
    assert found.outcomes.figures["error_left"].shape == (5, 2)
    assert found.problem.space.names == ("least_size", "kind")


def test_stores_from_before_and_after_a_rename_are_compared_by_the_same_objectives(tmp_path):
    declare_before()
    loaded(tmp_path, BEFORE).run(tmp_path / "before.study", executor="serial")
    declare_now()
    loaded(tmp_path, NOW).run(tmp_path / "now.study", executor="serial")
    page = designopt.compare([tmp_path / "before.study", tmp_path / "now.study"], tmp_path / "page.html").read_text()
    assert "now against before: the same study." in page
    assert "Not compared" not in page
    assert "Reference point: error_left 9 m, weight 9 kg." in page
    assert "before and now have the same hypervolume" in page.replace("now and before", "before and now")


def test_an_objective_keeps_its_store_under_another_name(tmp_path):
    declare_now()
    renamed = NOW.replace("{name: weight, ", "{name: heaviness, former: weight, ").replace("weight: 9", "heaviness: 9")
    assert identity(loaded(tmp_path, renamed)) == identity(loaded(tmp_path, NOW))
    other = NOW.replace("{name: weight, ", "{name: heaviness, ").replace("weight: 9", "heaviness: 9")
    assert identity(loaded(tmp_path, other))[0] != identity(loaded(tmp_path, NOW))[0]


def test_a_class_takes_its_settings_by_former_names_in_python():
    part = declare_now()
    with pytest.warns(DeprecationWarning, match="Part: the argument 'least_margin' is now called 'min_margin'"):
        assert part(least_margin=3.0).min_margin == 3.0


def test_a_former_name_is_no_name_of_something_else():
    class Outputs(TypedDict):
        least: Annotated[float, Quantity("", "")]
        most: Annotated[float, Quantity("", "", former="least")]

    with pytest.raises(PluginError, match="model 'clash_test': the former name 'least' is now the name of another"):

        @model("clash_test", version=1)
        def clash(design, scenario) -> Outputs:
            raise AssertionError("declared to be checked, never to be run")


def test_two_have_no_former_name_in_common():
    with pytest.raises(PluginError, match="model 'twice_test': two have the former name 'z'"):

        @model("twice_test", version=1)
        class Twice:
            k: Annotated[float, Quantity("", "", former="z")] = 1.0
            l: Annotated[float, Quantity("", "", former="z")] = 1.0  # noqa: E741

            def evaluate(self, design, scenario) -> Mass:
                raise AssertionError("declared to be checked, never to be run")


def test_former_names_of_the_members_of_a_setting_are_checked_too():
    @dataclass(frozen=True)
    class Inner:
        a: Annotated[float, Quantity("N", "", former="b")] = 1.0
        b: Annotated[float, Quantity("N", "")] = 1.0

    with pytest.raises(PluginError, match="model 'inner_test': the former name 'b' is now the name of another"):

        @model("inner_test", version=1)
        class Outer:
            drive: Inner | None = None

            def evaluate(self, design, scenario) -> Mass:
                raise AssertionError("declared to be checked, never to be run")


def test_a_figure_has_no_former_name_of_an_output(tmp_path):
    declare_now()
    text = NOW.replace("objectives:", "figures: {error_left: {use: mass}}\nobjectives:")
    with pytest.raises(
        StudyError, match="model 'renamed_test' had an output 'error_left'; give the figure another name"
    ):
        loaded(tmp_path, text)


def test_words_of_the_study_language_are_no_former_names_where_they_stand(tmp_path):
    class Design(TypedDict, total=False):
        size: Annotated[float, Quantity("m", "", former="scale")]

    class Conditions(TypedDict, total=False):
        load: Annotated[float, Quantity("N", "", former="count")]

    @model("words_test", version=1)
    def words(design: Design, scenario: Conditions) -> Mass:
        raise AssertionError("declared to be checked, never to be run")

    text = """\
study: words
model: {use: words_test}
space: {size: {low: 1 m, high: 2 m, scale: log}}
scenarios: {use: sobol, count: 3, vary: {load: {low: 1 N, high: 2 N, scale: log}}}
objectives: [{minimize: mass}]
stages: [{name: sample, solver: {use: random, samples: 4}}]
"""
    study = loaded(tmp_path, text).definition
    assert (study.space[0].name, study.space[0].scale) == ("size", "log")
    assert [set(scenario.values) for scenario in study.scenarios] == [{"load"}] * 3
