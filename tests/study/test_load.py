"""A valid study says what its file says: values, units, defaults, overrides, files, Python values."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from designopt.plugin import InputFile, PluginError, Use, find
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_data, study_from_file, study_from_text
from designopt.study.study import Budget, StartFrom

SMALL = """\
study: small
model: {use: test_wheel, mass: 3}
space: {stiffness: [1, 2]}
objectives: [{name: a, minimize: rho}]
solver: {use: test_search}
budget: {evaluations: 40}
"""


def test_everything_in_the_file_is_in_the_study(load, base_text) -> None:
    study = load(base_text)
    assert (study.name, study.seed, study.text) == ("wheel_damper", 7, base_text)
    assert study.model.settings == {
        "mass": 3.0,
        "road": "paved",
        "curve": InputFile("curve.csv", b"1,2\n"),
        "loop": None,
        "points": [],
        "smooth": False,
    }
    stiffness, damping, offset, kind = study.space
    assert (stiffness.low, stiffness.high, stiffness.unit, stiffness.scale) == (1e4, 3e4, "N/m", "log")
    assert (damping.kind, damping.low, damping.high, damping.unit) == ("real", 0.0, 100.0, "N s/m")
    assert (offset.kind, offset.low, offset.unit, offset.factor) == ("int", -3.0, "mm", 0.001)
    assert (kind.kind, kind.values) == ("choice", ("steel", "rubber"))
    assert [str(r) for r in study.relations] == ["damping <= 0.1*stiffness"]
    assert [(s.name, dict(s.values)) for s in study.scenarios] == [("light", {"load": 1e3}), ("heavy", {"load": 2e3})]
    assert {name: use.settings for name, use in study.figures.items()} == {"spread": {"k": 2.0}}
    assert [(o.name, str(o.expression), o.direction, o.unit) for o in study.objectives] == [
        ("mismatch", "1 - rho", "minimize", ""),
        ("flexion", "abs(peak_error)", "minimize", "deg"),
    ]
    assert [o.over.plugin.name for o in study.objectives] == ["worst", "worst"]
    clearance, spread = study.constraints
    assert (clearance.minimum, clearance.maximum, clearance.equals, clearance.unit) == (0.005, None, None, "m")
    assert (spread.maximum, spread.over.plugin.name, spread.over.settings) == (1.0, "quantile", {"level": 0.9})
    sweep, search = study.stages
    assert (sweep.name, sweep.solver.settings, sweep.budget) == (
        "sweep",
        {"levels": {"stiffness": 5, "damping": 3}},
        Budget(),
    )
    assert (search.budget, search.start_from) == (Budget(500, 7200.0), StartFrom("sweep"))
    execution = study.execution
    assert (execution.executor, execution.workers, execution.timeout) == ("dask", 2, 10.0)
    assert execution.arrays == {"time": "front"}
    assert execution.retries == {"crashed": 1, "lost_worker": 2, "timeout": 0, "error": 0}
    assert [(p.plugin.name, p.settings) for p in study.plots] == [("test_part", {"band": 5.0})]


def test_defaults_of_a_small_study(load) -> None:
    study = load(SMALL)
    assert [s.name for s in study.scenarios] == ["nominal"]
    assert study.objectives[0].over.plugin.name == "nominal"
    assert [(s.name, s.budget.evaluations) for s in study.stages] == [("test_search", 40)]
    assert (study.seed, study.execution.workers, study.execution.executor) == (0, None, "auto")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{low: 10 kN/m, high: 20 kN/m}", ("real", 1e4, 2e4, (), "N/m", 1.0)),
        ("{low: 10, high: 20, unit: kN/m}", ("real", 10.0, 20.0, (), "kN/m", 1000.0)),
        ("{low: 10 N/m, high: 20, unit: kN/m}", ("real", 0.01, 20.0, (), "kN/m", 1000.0)),
        ("{value: 5 kN/m}", ("fixed", 0.0, 0.0, (5000.0,), "N/m", 1.0)),
        ("{value: 5, unit: kN/m}", ("fixed", 0.0, 0.0, (5.0,), "kN/m", 1000.0)),
        ("5", ("fixed", 0.0, 0.0, (5.0,), "N/m", 1.0)),
        ("5 kN/m", ("fixed", 0.0, 0.0, (5000.0,), "N/m", 1.0)),
        ("{values: [1, 2 kN/m]}", ("choice", 0.0, 0.0, (1.0, 2000.0), "N/m", 1.0)),
        ("{values: [1, 2], unit: kN/m}", ("choice", 0.0, 0.0, (1.0, 2.0), "kN/m", 1000.0)),
    ],
)
def test_forms_of_a_parameter(load, text, expected) -> None:
    study = load(SMALL.replace("stiffness: [1, 2]", f"stiffness: {text}, damping: [0, 1]"))
    p = study.space[0]
    assert (p.kind, p.low, p.high, p.values, p.unit, p.factor) == expected


def test_a_whole_number_of_the_model_stays_one(load) -> None:
    study = load(SMALL.replace("stiffness: [1, 2]", "stiffness: [1, 2], teeth: 3"))
    assert study.space[1].values == (3,)
    assert type(study.space[1].values[0]) is int


def test_an_objective_plugin_is_used_by_its_own_name(load) -> None:
    study = load(SMALL.replace("minimize: rho", 'maximize: "test_spread + 5 [mm]"'))
    assert {name: use.settings for name, use in study.figures.items()} == {"test_spread": {"k": 1.0}}
    assert (str(study.objectives[0].expression), study.objectives[0].unit) == ("test_spread + 0.005", "m")


def test_a_named_figure_settles_what_a_name_means(load) -> None:
    text = SMALL.replace("minimize: rho", "minimize: twin + other") + "figures: {other: {use: twin}}\n"
    study = load(text)
    assert list(study.figures) == ["other"]
    assert study.objectives[0].expression.names == {"twin", "other"}


def test_objectives_are_converted_to_the_unit_asked_for(load) -> None:
    study = load(SMALL.replace("minimize: rho", "minimize: toe_clearance, unit: mm"))
    assert (str(study.objectives[0].expression), study.objectives[0].unit) == ("1000*toe_clearance", "mm")


def test_limits_are_in_the_unit_of_the_constraint(load) -> None:
    constraint = "constraints: [{name: c, of: toe_clearance, min: 1 cm, max: 20, unit: mm}]\n"
    study = load(SMALL + constraint)
    (c,) = study.constraints
    assert (str(c.expression), c.minimum, c.maximum, c.unit) == ("1000*toe_clearance", 10.0, 20.0, "mm")


def test_a_model_that_declares_nothing_accepts_any_name(load) -> None:
    text = (
        "study: s\nmodel: {use: test_open}\nspace: {x: [0, 1], y: {values: [a, b]}, z: {value: 2}}\n"
        "scenarios: [{name: one, wind: 3}]\nobjectives: [{name: f, minimize: f + g, unit: m}]\n"
        "solver: {use: test_grid}\n"
    )
    study = load(text)
    assert [(p.name, p.unit, p.factor) for p in study.space] == [("x", "", 1.0), ("y", "", 1.0), ("z", "", 1.0)]
    assert study.scenarios[0].values == {"wind": 3}
    assert (str(study.objectives[0].expression), study.objectives[0].unit) == ("f + g", "m")


def test_numbers_of_scenarios_and_parameters_share_the_units_of_the_model(load) -> None:
    study = load(SMALL + "scenarios: [{name: a, load: 2 kN}, {name: b}]\n")
    assert [dict(s.values) for s in study.scenarios] == [{"load": 2000.0}, {}]


# ---------------------------------------------------------------------------------------------------- overrides


@pytest.mark.parametrize(
    ("override", "look", "value"),
    [
        ("space.stiffness.low=2e4", lambda s: s.space[0].low, 2e4),
        ("space.stiffness.low=20 kN/m", lambda s: s.space[0].low, 2e4),
        ("seed=9", lambda s: s.seed, 9),
        ("objectives.0.over=mean", lambda s: s.objectives[0].over.plugin.name, "mean"),
        ("objectives.flexion.over={use: cvar, level: 0.5}", lambda s: s.objectives[1].over.settings["level"], 0.5),
        ("stages.search.budget.evaluations=40", lambda s: s.stages[1].budget.evaluations, 40),
        ("execution.workers=auto", lambda s: s.execution.workers, None),
        ("execution.grace=3 s", lambda s: s.execution.grace, 3.0),
        ("title=a = b", lambda s: s.title, "a = b"),
        ("report.plots.test_part=[]", None, None),
        ("model.loop.gain=2", lambda s: s.model.settings["loop"], {"gain": 2.0}),
        ("model.curve=other.csv", lambda s: s.model.settings["curve"].content, b"3,4\n"),
    ],
)
def test_values_are_replaced_by_set(load, base_text, override, look, value) -> None:
    if look is None:
        with pytest.raises(StudyError, match="--set"):
            load(base_text, overrides=[override])
        return
    study = load(base_text, overrides=[override])
    assert look(study) == value
    reloaded = load(study.text)
    assert replace(reloaded, text="") == replace(study, text=""), "the text of the study has the override in it"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=x", "--set seed=x: error: seed: expected an integer"),
        ("nonsense", "--set nonsense: error: write it as key=value"),
        ("=3", "--set =3: error: write it as key=value"),
        ("a..b=3", "write it as key=value"),
        ("seed.low=3", "'low' cannot be set: its parent is a plain value"),
        ("objectives.7.over=mean", "there is no element 7: the list has 2"),
        ("objectives.flexon.over=mean", "no element named 'flexon'; did you mean 'flexion'?"),
        ("space.stifness.low=3", "--set space.stifness.low=3: error: space.stifness: model"),
        ("sed=3", "--set sed=3: error: unknown key 'sed'; did you mean"),
        ("seed=[1", "--set seed=[1: error: not valid YAML"),
        ("seed=!!int 3", "tags"),
        ("model.mass=-1", "--set model.mass=-1: error: model.mass: must be above 0 kg, not -1"),
        ("objectives.0.minimize=1 - roh", "did you mean 'rho'?"),
        ("space.stiffness.low=1e9", "--set space.stiffness.low=1e9: error: space.stiffness: low"),
    ],
)
def test_mistakes_of_set_name_its_text(load, base_text, override, message) -> None:
    with pytest.raises(StudyError) as caught:
        load(base_text, overrides=[override])
    assert message in str(caught.value)
    assert caught.value.issues[-1].line is None


def test_a_section_is_removed_by_null(load, base_text) -> None:
    assert "report" in load(base_text).text
    without = load(base_text, overrides=["report=null"])
    assert "report" not in without.text
    assert replace(without, text="") == replace(load(base_text, overrides=["report="]), text="")
    with pytest.raises(StudyError, match="there is no section 'reprot' to remove; did you mean 'report'"):
        load(base_text, overrides=["reprot=null"])


def test_a_mistake_of_the_file_stays_one_of_the_file_when_a_value_is_set(load, base_text) -> None:
    with pytest.raises(StudyError) as caught:
        load(base_text.replace("seed:", "sed:"), overrides=["space.stiffness.low=1e9"])
    assert [issue.file[:5] for issue in caught.value.issues] == ["dampe", "--set"]


@pytest.mark.parametrize(
    ("overrides", "label"),
    [
        (["space={stiffness: [3, 4]}"], "--set space={stiffness: [3, 4]}"),
        (["space={stiffness: [3, 4]}", "seed=3", "title=long"], "--set space, seed, title"),
        (["seed=3", "space.stiffness=[3, 4]", "title=long"], "--set space.stiffness=[3, 4]"),
    ],
)
def test_a_mistake_that_an_option_causes_elsewhere_names_that_option(load, overrides: list[str], label: str) -> None:
    with pytest.raises(StudyError) as caught:
        load(f"{SMALL}baseline: [{{stiffness: 1.5}}]\n", overrides=overrides)
    assert caught.value.issues[-1].file == label


def test_stages_that_are_set_take_the_place_of_the_only_stage(load) -> None:
    stages = "stages=[{name: other, solver: {use: test_search}, budget: {evaluations: 7}}]"
    assert [(s.name, s.budget.evaluations) for s in load(SMALL, overrides=[stages]).stages] == [("other", 7)]
    for overrides in ([stages, "budget.evaluations=9"], ["budget.evaluations=9", stages]):
        with pytest.raises(StudyError, match="belongs to a study without 'stages'"):
            load(SMALL, overrides=overrides)


def test_set_changes_one_of_several_uses_of_an_anchor(load) -> None:
    text = SMALL.replace("{stiffness: [1, 2]}", "{stiffness: &r {low: 1, high: 2}, damping: *r}")
    study = load(text, overrides=["space.damping.high=9"])
    assert [p.high for p in study.space] == [2.0, 9.0]


# -------------------------------------------------------------------------------------------------------- files


def test_files_are_read_next_to_the_study(folder) -> None:
    study = study_from_file(folder / "damper.yaml")
    assert study.model.settings["curve"] == InputFile("curve.csv", b"1,2\n")
    assert study.path == folder / "damper.yaml"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("curv.csv", "does not exist; did you mean 'curve.csv'? (looked for in {folder})"),
        ("sub/curve.csv", "does not exist (looked for in {folder}/sub)"),
        ("../outside.csv", "lies outside the study's folder"),
        ("sub/../../outside.csv", "lies outside the study's folder"),
        ("link.csv", "lies outside the study's folder"),
        (
            "/etc/passwd",
            "relative to the study file; for a file elsewhere write NAME:file, and give --data NAME=FOLDER",
        ),
        ("'C:\\x'", "is not a file name relative to the study file"),
        ("''", "is not a file name relative to the study file"),
        ("sub", "is a folder, not a file"),
        ("7", "expected the name of a file, not the number 7"),
    ],
)
def test_files_outside_of_the_folder_are_refused(folder, name, message) -> None:
    (folder.parent / "outside.csv").write_text("secret")
    (folder / "link.csv").symlink_to(folder.parent / "outside.csv")
    (folder / "sub").mkdir()
    path = folder / "damper.yaml"
    path.write_text(path.read_text().replace("curve.csv", name))
    with pytest.raises(StudyError) as caught:
        study_from_file(path)
    (issue,) = caught.value.issues
    assert (issue.path, issue.line, issue.column) == ("model.curve", 6, 10)
    assert message.format(folder=folder.resolve()) in issue.message


def test_a_missing_or_unreadable_study_is_one_sentence(tmp_path) -> None:
    with pytest.raises(StudyError, match="no such file"):
        study_from_file(tmp_path / "none.yaml")
    with pytest.raises(StudyError, match="is a folder"):
        study_from_file(tmp_path)


def test_a_store_gives_its_own_copies_of_the_files(base_text) -> None:
    study = study_from_text(base_text, "study.yaml", files={"curve.csv": b"kept"})
    assert study.model.settings["curve"].content == b"kept"
    with pytest.raises(StudyError, match="not among the files"):
        study_from_text(base_text, "study.yaml", files={})
    with pytest.raises(StudyError, match="the study has no folder"):
        study_from_text(base_text, "study.yaml")


def test_a_plugin_file_is_run_and_kept(load) -> None:
    code = b"""
from typing import Annotated, TypedDict
from designopt.plugin import Quantity, model
class Out(TypedDict):
    y: Annotated[float, Quantity("m")]
@model("test_typed_in", version=1)
def typed_in(design, scenario) -> Out:
    return {"y": design["x"]}
"""
    text = (
        "study: s\nmodel: {use: test_typed_in}\nspace: {x: [0, 1]}\nobjectives: [{name: y, minimize: y}]\n"
        "solver: {use: test_grid}\n"
    )
    study = load(text, plugin_files=[("mine.py", code)])
    assert study.plugin_files == (("mine.py", code),)
    assert study.objectives[0].unit == "m"
    with pytest.raises(StudyError, match=r"broken\.py:1: ZeroDivisionError"):
        load(SMALL, plugin_files=[("broken.py", b"1/0")])


# ------------------------------------------------------------------------------------------------- Python values


def _data(**changes):
    data = {
        "study": "python",
        "model": {"use": "test_wheel", "mass": 3},
        "space": {"stiffness": (1e4, np.float64(3e4)), "teeth": {"values": np.array([1, 2])}},
        "objectives": [{"name": "a", "minimize": "1 - rho"}],
        "solver": {"use": "test_search", "population": np.int64(8)},
        "budget": {"evaluations": 40},
    }
    return data | changes


def test_a_study_built_in_python_equals_the_same_file(load) -> None:
    study = study_from_data(_data())
    assert [p.high for p in study.space] == [3e4, 0.0]
    assert study.stages[0].solver.settings == {"population": 8}
    reloaded = load(study.text)
    assert replace(reloaded, text="") == replace(study, text="")


def test_decorated_objects_stand_for_their_names(load) -> None:
    wheel, search = find("model", "test_wheel").target, find("solver", "test_search").target
    by_name = study_from_data(_data())
    for changes in (
        {"model": {"use": wheel, "mass": 3}, "solver": {"use": search, "population": 8}},
        {"model": wheel(mass=3), "solver": search(population=8)},
    ):
        study = study_from_data(_data(**changes))
        assert study.model == by_name.model
        assert study.stages == by_name.stages
        assert replace(load(study.text), text="") == replace(study, text="")
    with pytest.raises(StudyError, match="is a plugin of kind solver, not model"):
        study_from_data(_data(model=search))
    with pytest.raises(StudyError, match="'mass' is missing"):
        study_from_data(_data(model=wheel))


def test_mistakes_in_python_values_have_a_path_and_no_line() -> None:
    with pytest.raises(StudyError) as caught:
        study_from_data(_data(space={"stiffnes": (1, 2), "stiffness": (3, 2)}))
    assert {(i.file, i.line, i.path) for i in caught.value.issues} == {
        ("", None, "space.stiffness"),
        ("", None, "space.stiffnes"),
    }


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}, 1j, lambda: 0])
def test_values_that_no_file_can_hold_are_refused(value) -> None:
    for changes in ({"seed": value}, {"space": {"stiffness": value}}, {"model": value}, {"objectives": [value]}):
        with pytest.raises(StudyError):
            study_from_data(_data(**changes))


def test_python_values_within_themselves_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(StudyError, match="deeper than 64"):
        study_from_data(_data(description=endless))


def test_input_files_may_be_given_by_content() -> None:
    model = {"use": "test_wheel", "mass": 3, "curve": InputFile("inline.csv", b"5")}
    study = study_from_data(_data(model=model))
    assert study.model.settings["curve"].content == b"5"
    reloaded = study_from_text(study.text, "study.yaml", files={"inline.csv": b"5"})
    assert reloaded.model == study.model


# ------------------------------------------------------------------------------------------------- plugins, speed


def test_a_plugin_that_fails_on_import_is_one_line_at_its_name(load, monkeypatch) -> None:
    def broken(kind, name):
        raise PluginError("quarter_car (my-pkg 1.2): ImportError: no module named 'x'")

    monkeypatch.setattr("designopt.study.sections.context.find", broken)
    with pytest.raises(StudyError) as caught:
        load(SMALL)
    first = caught.value.issues[0]
    assert (first.line, first.column, first.path) == (2, 14, "model")
    assert first.message == "quarter_car (my-pkg 1.2): ImportError: no module named 'x'"


def test_the_settings_of_a_use_are_complete(load) -> None:
    study = load(SMALL)
    assert isinstance(study.model, Use)
    assert set(study.model.settings) == set(study.model.plugin.settings)


def test_reading_a_study_loads_no_heavy_library() -> None:
    code = (
        "import sys, json; import designopt.study.load, designopt.study.sections.schema\n"
        "heavy = ('pint', 'scipy', 'pymoo', 'casadi', 'dask', 'plotly', 'rich')\n"
        "print(json.dumps([m for m in heavy if m in sys.modules]))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(process.stdout) == []
