"""What a new user meets: scripts without a guard, advice that works, errors at one's own line, fixed models."""

import subprocess
import sys
from pathlib import Path

import pytest
from command import designopt, process
from run_cases import Recorder, listed, make_study

from designopt.plugin import load_file
from designopt.problem import Problem
from designopt.report.labels import recompute
from designopt.run.runner import run_study
from designopt.store.errors import WorkersError
from designopt.store.result import Result
from designopt.study.load import study_from_text
from designopt.workers.evaluation.evaluate import location, traceback_of

SCRIPT = """
import designopt
from typing import Annotated, TypedDict

class Out(TypedDict):
    height: Annotated[float, designopt.Quantity("m", "height over the ground")]

@designopt.model("hill", version=1)
def hill(design, scenario) -> Out:
    return {"height": (design["a"] - 0.3) ** 2}

study = designopt.define(
    study="hill", model={"use": hill}, space={"a": [0, 1]}, objectives=[{"minimize": "height"}],
    solver={"use": "sobol", "samples": 8}, execution={"executor": EXECUTOR},
)
result = study.run("hill.study")
print("designs", len(result.outcomes))
"""


def run_script(folder: Path, executor: str) -> subprocess.CompletedProcess[str]:
    (folder / "hill.py").write_text(SCRIPT.replace("EXECUTOR", repr(executor)))
    command = [sys.executable, "hill.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_a_script_without_a_guard_runs_on_workers(tmp_path):
    process = run_script(tmp_path, "dask")
    assert process.returncode == 0, process.stderr
    assert process.stdout == "designs 8\n"


def test_the_command_that_resumes_a_run_of_a_script_names_the_script_and_works(tmp_path):
    assert run_script(tmp_path, "serial").returncode == 0
    repeated = run_script(tmp_path, "serial")
    assert repeated.returncode == 1
    assert "exists already; continue it with: designopt resume hill.study --plugin hill.py" in repeated.stderr
    alone = process(tmp_path, "resume", "hill.study")
    assert alone.returncode == 4
    assert "pass the file that declares it: designopt resume hill.study --plugin hill.py" in alone.stderr
    command_line = recompute(Result.open(tmp_path / "hill.study"), 0)
    assert command_line == f"designopt show {tmp_path / 'hill.study'}/0 --evaluate --plugin {tmp_path / 'hill.py'}"
    resumed = designopt(tmp_path, "resume", "hill.study", "--plugin", "hill.py")
    assert resumed.returncode == 0, resumed.stderr
    assert "Traceback" not in alone.stderr + resumed.stderr


def test_the_advice_names_plugin_files_as_they_were_given(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "hill.py").write_text(SCRIPT.partition("study =")[0])
    (tmp_path / "hill.yaml").write_text(
        "{study: hill, model: {use: hill}, space: {a: [0, 1]}, objectives: [{minimize: height}],"
        " solver: {use: sobol, samples: 4}, execution: {executor: serial}}"
    )
    run = designopt(tmp_path, "run", "hill.yaml", "--plugin", "models/hill.py")
    assert run.returncode == 0, run.stderr
    assert "designopt resume results/hill.study --plugin models/hill.py" in run.stdout
    elsewhere = designopt(tmp_path / "models", "resume", "../results/hill.study", "--plugin", "hill.py")
    assert elsewhere.returncode == 0, elsewhere.stderr


def test_workers_that_cannot_take_a_problem_end_the_run_at_once_with_the_reason(tmp_path):
    model = tmp_path / "once.py"
    guard = f"import os, pathlib\nflag = pathlib.Path({str(tmp_path / 'flag')!r})\n"
    model.write_text(
        guard + "if flag.exists():\n    raise RuntimeError('no licence')\n" + SCRIPT.partition("study =")[0]
    )
    load_file(str(model), model.read_bytes())
    study = study_from_text(
        "{study: hill, model: {use: hill}, space: {a: [0, 1]}, objectives: [{minimize: height}],"
        " solver: {use: sobol, samples: 4}, execution: {executor: dask, workers: 2}}",
        "hill.yaml",
        plugin_files=((str(model), model.read_bytes()),),
        problem_of=Problem.from_study,
    )
    (tmp_path / "flag").touch()
    with pytest.raises(WorkersError, match=r"no worker can set up the problem: .*once\.py:4: RuntimeError: no licence"):
        run_study(study, tmp_path / "s")


def test_a_file_of_plugins_with_a_mistake_is_named_before_what_follows_from_it(tmp_path):
    (tmp_path / "broken.py").write_text("def model(:\n")
    (tmp_path / "a.yaml").write_text(
        "{study: a, model: {use: nowhere}, space: {a: [0, 1]}, objectives: [{minimize: height}],"
        " solver: {use: sobol, samples: 4}}"
    )
    process = designopt(tmp_path, "validate", "a.yaml", "--plugin", "broken.py")
    assert process.returncode == 2
    first = process.stderr.splitlines()[0]
    assert "broken.py: SyntaxError" in first
    assert "--plugin FILE" not in process.stderr


def test_an_error_within_the_loop_of_a_library_is_reported_at_the_line_of_the_user():
    from scipy.integrate import solve_ivp

    with pytest.raises(ValueError, match="could not convert") as raised:
        solve_ivp(lambda t, y: ["no number"], (0.0, 1.0), [0.0])
    assert "base.py" in str(raised.traceback[-1].path)
    assert location(raised.value).startswith("test_first_steps.py:")
    assert "base.py" not in traceback_of(raised.value)


BROKEN = """
from typing import TypedDict
import designopt

class Out(TypedDict):
    height: float

@designopt.model("ledge", version=1)
def ledge(design, scenario) -> Out:
    return {"height": (design["a"] - 0.3) ** 2 BUG}
"""
LEDGE = """{study: ledge, model: {use: ledge}, space: {a: [0, 1]}, objectives: [{minimize: height}],
baseline: {name: present, a: 0.5}, solver: {use: sobol, samples: COUNT}, execution: {executor: serial}}"""


def test_baselines_that_a_bug_of_the_model_cost_are_computed_again_by_a_resume(tmp_path):
    (tmp_path / "ledge.py").write_text(BROKEN.replace("BUG", "+ undefined"))
    (tmp_path / "ledge.yaml").write_text(LEDGE.replace("COUNT", "16"))
    stopped = designopt(tmp_path, "run", "ledge.yaml", "--plugin", "ledge.py")
    assert stopped.returncode == 3
    lines = stopped.stderr.splitlines()
    assert sum("the same error 3 times" in line for line in lines) == 1
    assert sum("continue" in line for line in lines) == 1
    assert "run the study again with --replace" in stopped.stderr
    (tmp_path / "ledge.py").write_text(BROKEN.replace("BUG", ""))
    process = designopt(tmp_path, "resume", "results/ledge.study", "--plugin", "ledge.py")
    assert process.returncode == 0, process.stderr
    assert "recomputing 1 evaluation of it that ended with a model error" in process.stderr
    assert "present" in process.stdout
    assert "2 of 17" not in process.stdout  # of the search, what failed stays as it was


def test_a_baseline_without_a_result_and_the_share_of_failures_are_reported_in_the_table(tmp_path):
    (tmp_path / "ledge.py").write_text(BROKEN.replace("BUG", "/ (design['a'] != 0.5)"))
    (tmp_path / "ledge.yaml").write_text(LEDGE.replace("COUNT", "16"))
    process = designopt(tmp_path, "run", "ledge.yaml", "--plugin", "ledge.py")
    assert process.returncode == 0, process.stderr
    assert "evaluations failed: error" in process.stdout
    assert "note: present, of the baseline, has no result: error" in process.stdout


def test_a_run_says_first_where_its_results_go_and_where_it_computes(tmp_path):
    recorder = Recorder()
    run_study(make_study(stages=(listed([0.0, 1.0]),), names=("a",)), tmp_path / "s", progress=recorder)
    assert recorder.beginnings[0] == ("run", f"store {tmp_path / 's'}, executor serial, in this process")
