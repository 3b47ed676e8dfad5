"""A plain function is a model at once, and a study of it one call."""

import io
import re
import subprocess
import sys
import traceback
from typing import Annotated

import pytest

import designopt
from designopt.plugin import Declaration, ModelPlugin, PluginError, Quantity, as_model
from designopt.store.errors import FailurePolicyStop
from designopt.study.language.errors import StudyError


def beam(design):
    return {"mass": design["width"] ** 2, "sag": design["width"] ** -4}


def sphere(x, y):
    return (x - 1.0) ** 2 + (y + 2.0) ** 2


def hill(design, scenario):
    return {"height": -((design["a"] - scenario["at"]) ** 2)}


def test_all_that_a_function_returns_is_minimised_unless_the_call_says_otherwise(tmp_path):
    result = designopt.minimize(beam, {"width": [0.5, 2.0]}, evaluations=40, store=tmp_path / "s")
    assert [(o.name, o.direction) for o in result.problem.objectives] == [("mass", "minimize"), ("sag", "minimize")]
    assert len(result.outcomes) == 40
    assert len(result.front()) == 40
    one = designopt.minimize(
        beam, {"width": [0.5, 2.0]}, "mass", constraints={"sag": {"max": 1.0}}, evaluations=60, store=tmp_path / "t"
    )
    assert one.outcomes.X[one.front()][0, 0] == pytest.approx(1.0, abs=0.1)


def test_a_function_of_parameters_by_name_that_returns_a_number(tmp_path):
    result = designopt.minimize(sphere, {"x": [-5, 5], "y": [-5, 5]}, evaluations=300, store=tmp_path / "s")
    assert result.study.stages[0].solver.plugin.name == "cma_es"
    assert result.outcomes.X[result.front()][0] == pytest.approx([1.0, -2.0], abs=1e-3)
    assert result.problem.objectives[0].name == "value"


def stretch(
    force: Annotated[float, Quantity("N", gt=0)], stiffness: Annotated[float, Quantity("N/m")], offset=0.0
) -> Annotated[float, Quantity("m", "of the spring")]:
    return force / stiffness + offset


def test_the_units_of_parameters_by_name_are_those_of_their_annotations(tmp_path):
    result = designopt.minimize(
        stretch,
        {"stiffness": {"low": "1 N/mm", "high": "2 N/mm"}},
        scenarios=[{"name": "heavy", "force": "1 kN"}],
        evaluations=30,
        store=tmp_path / "s",
    )
    [parameter] = result.study.space
    assert (parameter.unit, parameter.low, parameter.high) == ("N/m", 1000.0, 2000.0)
    assert result.problem.objectives[0].unit == "m"
    assert result.outcomes.objectives[result.front()[0], 0] == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("space", "scenario", "text"),
    [
        ({"stiffness": ["1 kg", "2 kg"]}, {"force": "1 N"}, r"incompatible units|N/m"),
        ({"stifness": [1, 2]}, {"force": "1 N"}, "no design input 'stifness'; did you mean 'stiffness'"),
        ({"stiffness": [1, 2]}, {"force": "-1 N"}, "force"),
        ({"stiffness": [1, 2]}, {"forse": "1 N"}, "did you mean 'force'"),
        ({"stiffness": [1, 2], "offset": ["1 mm", "2 mm"]}, {"force": "1 N"}, "does not declare a unit for 'offset'"),
    ],
)
def test_annotated_parameters_are_checked_as_declared_ones_are(space, scenario, text, tmp_path):
    with pytest.raises(StudyError, match=text):
        designopt.minimize(stretch, space, scenarios=[{"name": "s", **scenario}], store=tmp_path / "s")


def test_scenarios_and_maximised_objectives(tmp_path):
    result = designopt.minimize(
        hill, {"a": [0, 4]}, [{"maximize": "height", "over": "mean"}], evaluations=80, store=tmp_path / "s",
        scenarios=[{"name": "left", "at": 1.0}, {"name": "right", "at": 2.0}],
    )  # fmt: skip
    assert result.outcomes.X[result.front()][0, 0] == pytest.approx(1.5, abs=0.01)


def test_the_same_call_computes_nothing_again_and_more_evaluations_go_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = designopt.minimize(sphere, {"x": [-5, 5], "y": [-5, 5]}, evaluations=50)
    repeated = designopt.minimize(sphere, {"x": [-5, 5], "y": [-5, 5]}, evaluations=50)
    assert repeated.path == first.path
    assert repeated.sessions[-1]["executor"] == "none"
    more = designopt.minimize(sphere, {"x": [-5, 5], "y": [-5, 5]}, evaluations=70)
    assert more.path == first.path
    assert len(more.outcomes) == 70
    wider = designopt.minimize(sphere, {"x": [-4, 5], "y": [-5, 5]}, evaluations=50)
    assert wider.path != first.path


def test_another_code_is_another_version_and_comments_are_not():
    def version_of(text):
        space = {}
        exec(text, space)
        return as_model(space["f"]).version

    text = "def f(design):\n    return {'a': design['x'] * 2.0, 'b': design['x'] in {1, 2, 3}}\n"
    assert version_of(text) == version_of("# a comment\n\n" + text)
    assert version_of(text) != version_of(text.replace("2.0", "2.5"))
    assert version_of(text) != version_of(text.replace("'x'", "'y'", 1))


def test_objects_that_are_not_functions_of_designs_are_refused():
    with pytest.raises(PluginError, match="takes no design"):
        as_model(lambda: 1.0)
    with pytest.raises(PluginError, match="a model is a function"):
        as_model(Declaration)
    assert isinstance(as_model(beam), ModelPlugin)
    assert as_model(beam) is as_model(beam)


def test_an_answer_that_is_no_number_is_reported(tmp_path):
    with pytest.raises(PluginError, match=r"return a number, or a mapping of names to numbers$"):
        designopt.minimize(lambda design: [1.0], {"x": [0, 1]}, store=tmp_path / "s")
    with pytest.raises(StudyError, match="'low' is missing"):
        designopt.minimize(beam, {"width": {"high": 1.0}}, store=tmp_path / "s")


def test_a_script_with_two_calls_runs_on_workers(tmp_path):
    (tmp_path / "two.py").write_text("""
import designopt

def beam(design):
    return {"mass": design["width"] ** 2, "sag": design["width"] ** -4}

first = designopt.minimize(beam, {"width": [0.5, 2.0]}, evaluations=8, executor="dask", workers=1)
count = len(first.outcomes)

def sphere(x, y):
    return (x - 1.0) ** 2 + (y + 2.0) ** 2

second = designopt.minimize(sphere, {"x": [-5, 5], "y": [-5, 5]}, evaluations=8, executor="dask", workers=1)
print(count, len(second.outcomes), second.counts["ok"])
""")
    completed = subprocess.run(
        [sys.executable, "two.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.split() == ["8", "8", "8"]


def plate(width, height=0.1):
    return {"mass": width * height, "sag": 1.0 / (width * height**3)}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            {"widht": [1, 2], "height": [1, 2]},
            r"plate\(\) has no argument 'widht', which is in space; did you mean 'width'\?",
        ),
        (
            {"width": [1, 2], "heigth": [1, 2]},
            r"plate\(\) has no argument 'heigth', which is in space; did you mean 'height'\?",
        ),
        ({"height": [1, 2]}, r"plate\(\) needs 'width', which is neither in space nor in a scenario"),
    ],
)
def test_a_parameter_that_a_function_does_not_take_is_named_instead_of_left_out(space, message, tmp_path):
    with pytest.raises(FailurePolicyStop, match=message):
        designopt.minimize(plate, space, ["mass", "sag"], evaluations=20, executor="serial", store=tmp_path / "s")


def as_it_is(a):
    return {"y": a}


def squared(a):
    return {"y": a**2}


@pytest.mark.parametrize("function", [as_it_is, squared])
def test_a_function_that_takes_the_whole_design_for_one_number_is_told_so(function, tmp_path):
    with pytest.raises(FailurePolicyStop, match=r"has no argument 'b', .* 'a' is the whole design, .* write a\['b'\]"):
        designopt.minimize(function, {"b": [0, 1]}, ["y"], evaluations=20, executor="serial", store=tmp_path / "s")


def test_a_design_of_a_function_is_shown_with_the_command_that_recomputes_it(tmp_path):
    (tmp_path / "beam.py").write_text(
        "import designopt\n\n\ndef beam(width):\n    return {'sag': 1 / width**3}\n\n\nif __name__ == '__main__':\n"
        "    designopt.minimize(beam, {'width': [1, 2]}, ['sag'], evaluations=20, executor='serial', store='s')\n"
    )
    subprocess.run([sys.executable, "beam.py"], cwd=tmp_path, check=True, capture_output=True)
    completed = subprocess.run(
        [sys.executable, "-m", "designopt", "show", "s/3"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "designopt show s/3 --plugin beam.py --evaluate" in completed.stdout


def test_a_function_of_any_names_takes_all_parameters(tmp_path):
    def total(first, **further):
        return first + sum(further.values())

    space = {"first": [0, 1], "second": [0, 1]}
    result = designopt.minimize(total, space, evaluations=20, executor="serial", store=tmp_path / "s")
    assert result.outcomes.objectives[:, 0] == pytest.approx(result.outcomes.X.sum(axis=1))


def width_of(design):
    return {"mass": design["width"] ** 2, "sag": design["width"] ** -4}


@pytest.mark.parametrize(
    "sections", [{"objectives": ["mas", "sag"]}, {"objectives": ["sag"], "constraints": {"mas": {"max": 1.0}}}]
)
def test_a_misspelt_name_of_an_objective_or_a_limit_stops_the_run_with_the_name_that_was_meant(sections, tmp_path):
    with pytest.raises(
        FailurePolicyStop, match="returned no 'mas', which the study needs; did you mean 'mass'"
    ) as stop:
        designopt.minimize(
            width_of, {"width": [0.01, 0.1]}, **sections, evaluations=20, executor="serial", store=tmp_path / "s"
        )
    frames = traceback.extract_tb(stop.tb)
    assert len(frames) == 2  # this file and `minimize`: no line of the suite that says nothing


def test_a_result_prints_its_designs_and_the_command_for_the_page(tmp_path):
    result = designopt.minimize(
        width_of, {"width": [0.01, 0.1]}, evaluations=20, executor="serial", store=tmp_path / "s"
    )
    first, head, *rows, last = str(result).splitlines()
    assert first == f"width_of: 20 designs, 20 feasible, {len(result.front())} on the front"
    assert head.split() == ["design", "width", "mass", "sag"]
    row = result.chosen()["compromise"]
    (line,) = [line.split() for line in rows if line.startswith("compromise")]
    assert float(line[1]) == pytest.approx(result.outcomes.X[row, 0], rel=1e-5)
    assert last == f"full report: designopt report {tmp_path / 's'}"


def fails(design):
    return {"mass": {}["none"]}


def test_a_function_that_fails_is_shown_with_its_own_lines_only(tmp_path):
    with pytest.raises(PluginError, match="returns no figure at the centre of the space") as stop:
        designopt.minimize(fails, {"width": [0.01, 0.1]}, evaluations=20, executor="serial", store=tmp_path / "s")
    line = fails.__code__.co_firstlineno + 1
    assert str(stop.value).endswith(f"(width = 0.055): KeyError: 'none' (test_minimize.py:{line})")
    assert len(traceback.extract_tb(stop.tb)) == 2


@pytest.mark.parametrize("objectives", [None, "value"])
def test_the_only_parameter_of_a_function_that_asks_by_name_may_be_misspelt(objectives, tmp_path):
    def square(width, factor=1.0):
        return factor * width**2

    with pytest.raises(
        (PluginError, FailurePolicyStop), match="has no argument 'widht', which is in space; did you mean 'width'"
    ) as stop:
        designopt.minimize(
            square, {"widht": [0.1, 1.0]}, objectives, evaluations=20, executor="serial", store=tmp_path / "s"
        )
    assert len(traceback.extract_tb(stop.tb)) == 2


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_the_progress_is_shown_and_elsewhere_not(tmp_path, monkeypatch, capsys):
    def run(name):
        designopt.minimize(width_of, {"width": [0.01, 0.1]}, evaluations=20, executor="serial", store=tmp_path / name)

    run("silent")
    assert capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    run("shown")
    output = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\n", "", terminal.getvalue())  # a long path is shown in two lines
    assert "shown" in output  # the start of a run names its store


def _quick(tmp_path):
    return designopt.define(
        study="quick",
        model=sphere,
        space={"x": [-5, 5], "y": [-5, 5]},
        objectives=[{"minimize": "value"}],
        solver={"use": "random", "samples": 2},
        execution={"executor": "serial"},
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, p: designopt.minimize(beam, {"width": [0.5, 2.0]}, evaluation=20), r"minimize\(\).*'evaluations'"),
        (lambda s, p: designopt.minimize(beam, {"width": [0.5, 2.0]}, resume=True), r"minimize\(\).*'resume'"),
        (lambda s, p: s.run(p / "s", workrs=2), r"run\(\) has no argument 'workrs'; did you mean 'workers'\?"),
        (lambda s, p: designopt.resume(p / "s", plugin_file=[]), r"resume\(\).*'plugin_files'"),
        (lambda s, p: s.plot("convergence", logg=True, store=p / "done"), r"'convergence' has no setting 'logg'"),
        (lambda s, p: designopt.export(p / "done", formats="csv"), r"formats is a list: write formats=\['csv'\]"),
        (lambda s, p: designopt.compare(p / "done"), "stores is a list"),
        (lambda s, p: designopt.load("study.yaml", overrides="seed=3"), "overrides is a list"),
        (lambda s, p: designopt.load("study.yaml", plugin_files="own.py"), "plugin_files is a list"),
    ],
)
def test_a_misspelt_or_wrong_argument_is_reported_in_the_name_of_the_called_function(tmp_path, call, message):
    study = _quick(tmp_path)
    study.run(tmp_path / "done")
    with pytest.raises(TypeError, match=message):
        call(study, tmp_path)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "wrong", [{"workers": 0}, {"workers": "2"}, {"executor": "dusk"}, {"budget": "soon"}, {"budget": {"random": 0.5}}]
)
def test_a_wrong_value_of_an_option_is_rejected_before_the_store_exists(tmp_path, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        _quick(tmp_path).run(tmp_path / "s", **wrong)
    assert not (tmp_path / "s").exists()
