"""The command line from end to end on a small model of its own: exit codes, messages, files."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import designopt, process

from designopt.store.folder import read_study
from designopt.study.study import Budget

MODEL = '''
import os, signal, time
from typing import Annotated, TypedDict
from designopt import Diverged, Quantity as Q, model

class Out(TypedDict):
    mass: Annotated[float, Q("kg", "mass of the beam")]
    sag: Annotated[float, Q("mm", "sag under the load")]

@model("beam", version=1)
def beam(design, scenario, *, load: Annotated[float, Q("N", "load at the tip", gt=0)] = 100.0) -> Out:
    """A cantilever of square section."""
    if os.path.exists("hold"):  # a test holds the run, and looks which signals come
        signal.set_wakeup_fd(os.open("signals", os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_APPEND))
        open("at_work", "w").close()
    while os.path.exists("hold"):
        time.sleep(0.01)
    side, length = design["side"], 1.0
    if design.get("broken"):
        raise RuntimeError("the beam file is missing")
    if side < 0.004:
        raise Diverged("the section folds", reason="folded")
    sag = load * length**3 / (3 * 2.1e11 * side**4 / 12)
    return {"mass": 7850.0 * side**2 * length, "sag": 1000.0 * sag}
'''

STUDY = """\
study: beam
seed: 3
model: {use: beam, load: 0.2 kN}
space:
  side: {low: 0.002, high: 0.05, scale: log}
objectives:
  - {name: mass, minimize: mass, unit: kg}
  - {name: sag, minimize: sag, unit: mm}
constraints:
  - {name: stiff, of: sag, max: 2 cm}
stages:
  - {name: look, solver: {use: full_factorial, levels: 12}}
  - name: front
    start_from: {stage: look, nondominated: all}
    solver: {use: nsga2, population: 8}
    budget: {evaluations: 40}
execution: {executor: serial}
"""


#: The same with a unit for the side.
WITH_UNITS = MODEL.replace("def beam(design,", "def beam(design: In,").replace(
    "class Out", 'class In(TypedDict):\n    side: Annotated[float, Q("m", "of the section", gt=0)]\n\nclass Out'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "beam.py").write_text(MODEL)
    (tmp_path / "beam.yaml").write_text(STUDY)
    return tmp_path


def test_a_run_ends_with_a_table_a_report_and_the_next_commands(folder: Path) -> None:
    completed = process(folder, "run", "beam.yaml", "--plugin", "beam.py")
    assert completed.returncode == 0, completed.stderr
    assert "results/beam.study/report.html" in completed.stdout
    assert "resume results/beam.study --plugin beam.py --budget N   (with a larger budget)" in completed.stdout
    assert "compromise" in completed.stdout
    assert "Traceback" not in completed.stderr
    assert (folder / "results/beam.study/report.html").stat().st_size > 10_000


def test_resume_with_a_larger_budget_goes_on_from_the_recorded_evaluations(folder: Path) -> None:
    assert designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", "-o", "s.study").returncode == 0
    finished = designopt(folder, "resume", "s.study", "--plugin", "beam.py")
    assert "\nnothing to do: the run is complete, all its results are on record\n" in finished.stderr
    completed = designopt(folder, "resume", "s.study", "--plugin", "beam.py", "--budget", "front=64")
    assert completed.returncode == 0, completed.stderr
    assert "nothing to do" not in completed.stderr
    unlimited = designopt(folder, "resume", "s.study", "--plugin", "beam.py", "--budget", "90min")
    assert unlimited.returncode == 0, unlimited.stderr
    assert read_study(folder / "s.study").stages[-1].budget == Budget(64, 5400.0)
    summary = designopt(folder, "show", "s.study")
    assert summary.returncode == 0
    assert re.search(r"^evaluated +\d+ evaluations of \d+ designs, \d+ of them feasible$", summary.stdout, re.MULTILINE)
    assert re.search(r"^failed +diverged \(folded\) \d+$", summary.stdout, re.MULTILINE)
    assert re.search(r"^last session +done$", summary.stdout, re.MULTILINE)
    assert "compromise" in summary.stdout
    assert "ontinue" not in summary.stdout
    straight = designopt(
        folder,
        "run",
        "beam.yaml",
        "--plugin",
        "beam.py",
        "-o",
        "t.study",
        "--set",
        "stages.front.budget.evaluations=64",
    )
    assert straight.returncode == 0, straight.stderr
    from designopt import open_store

    assert (open_store(folder / "s.study").outcomes.X == open_store(folder / "t.study").outcomes.X).all()


def test_resume_runs_no_code_from_the_store_but_asks_for_the_plugin_file(folder: Path) -> None:
    assert designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", "-o", "s.study").returncode == 0
    for file in (folder / "s.study" / "files").iterdir():
        file.write_bytes(b"open('escaped', 'w')")
    refused = designopt(folder, "resume", "s.study")
    assert refused.returncode == 4
    assert "designopt resume s.study --plugin beam.py" in refused.stderr
    for command in (("show", "s.study"), ("report", "s.study")):
        assert designopt(folder, *command).returncode == 0
    assert not (folder / "escaped").exists()


def test_every_mistake_is_reported_with_line_column_and_exit_code_2(folder: Path) -> None:
    text = STUDY.replace("low: 0.002, high: 0.05", "low: 0.2, high: 0.05").replace("use: nsga2", "use: nsga")
    (folder / "beam.yaml").write_text(text)
    for command in ("validate", "run"):
        completed = designopt(folder, command, "beam.yaml", "--plugin", "beam.py")
        assert completed.returncode == 2
        assert "beam.yaml:5:" in completed.stderr
        assert "did you mean 'nsga2'?" in completed.stderr
        assert "2 errors" in completed.stderr
        assert "Traceback" not in completed.stderr
    as_json = designopt(folder, "validate", "beam.yaml", "--plugin", "beam.py", "--format", "json")
    assert [issue["line"] for issue in json.loads(as_json.stdout)] == [5, 15]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("run", "missing.yaml"), 2, "missing.yaml"),
        (("resume", "missing.study"), 4, "missing.study"),
        (("report", "missing.study"), 4, "missing.study"),
        (("show", "missing"), 2, "neither a store nor a plugin"),
        (("show", "nsga2"), 0, "population"),
        (("show", "schema"), 0, '"objectives"'),
        (("list", "solvers"), 0, "full_factorial"),
        (("list", "widgets"), 2, "widgets"),
        (("run", "beam.yaml", "--plugin", "beam.py", "--set", "space.side.low=-1"), 2, "--set"),
        (("run", "beam.yaml", "--plugin", "beam.py", "--dry-run"), 0, "look"),
        (("resume", "x.study", "--budget", "front"), 2, "STAGE=N"),
        (("resume", "x.study", "--budget", "front=3m"), 2, "a time such as 30min, not 'front=3m'"),
        (("resume", "x.study", "--budget", "front=9", "--budget", "front=1h"), 2, "names a stage twice"),
        (("resume", "x.study", "--budget", "front=-1h"), 2, "a time such as 30min, not 'front=-1h'"),
        (
            ("resume", "x.study", "--workers", "2", "--scheduler", "tcp://127.0.0.1:1"),
            2,
            "is for local workers",
        ),
        (("resume", "x.study", "--executor", "serial", "--workers", "2"), 2, "does not take --workers or --scheduler"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_commands_answer_with_the_documented_exit_code(
    folder: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    completed = designopt(folder, *arguments)
    assert completed.returncode == code, completed.stdout + completed.stderr
    assert text in completed.stdout + completed.stderr
    assert "Traceback" not in completed.stderr


def test_validate_can_try_designs(folder: Path) -> None:
    completed = designopt(folder, "validate", "beam.yaml", "--plugin", "beam.py", "--try", "3")
    assert completed.returncode == 0, completed.stderr
    lines = completed.stdout.strip().splitlines()
    assert len([line for line in lines if " in " in line]) == 3
    assert any(re.fullmatch(r"    gives stiff = [0-9.]+, not ≤ 20 mm", line) for line in lines)


def test_tried_designs_have_their_units(folder: Path) -> None:
    study = (folder / "beam.yaml").read_text().replace("low: 0.002, high: 0.05", "low: 5 cm, high: 6 cm")
    (folder / "beam.yaml").write_text(study)
    (folder / "beam.py").write_text(WITH_UNITS)
    completed = designopt(folder, "validate", "beam.yaml", "--plugin", "beam.py", "--try", "1")
    assert re.search(
        r"^  side = 5\.\d+ cm: ok in .*: mass = [0-9.]+ kg, sag = [0-9.]+ mm$", completed.stdout, re.MULTILINE
    )
    assert "note" not in completed.stdout


def test_numbers_without_a_unit_are_noted_with_the_assumed_one(folder: Path) -> None:
    (folder / "beam.py").write_text(WITH_UNITS)
    note = "note: no unit given, the model's is assumed: side in m\n"
    completed = designopt(folder, "validate", "beam.yaml", "--plugin", "beam.py")
    assert completed.stdout == f"beam.yaml: a valid study\n  {note}"
    assert completed.returncode == 0
    assert (
        json.loads(designopt(folder, "validate", "beam.yaml", "--plugin", "beam.py", "--format", "json").stdout) == []
    )
    dry = designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", "--dry-run")
    assert dry.stderr == note
    assert "space      side  0.002 to 0.05 m, log scale\n" in dry.stdout
    quiet = designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", "--dry-run", "--progress", "json")
    assert quiet.stderr == ""


def test_a_dry_run_lists_all_kinds_of_parameters_and_says_what_auto_takes(folder: Path) -> None:
    space = (
        "{side: {low: 0.002, high: 0.05}, ribs: {type: int, low: 1, high: 4}, broken: {values: [0, 1]}, a: {value: 2}}"
    )
    study = (folder / "beam.yaml").read_text().replace("{use: nsga2, population: 8}", "{use: auto}")
    (folder / "beam.yaml").write_text(study)
    completed = designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", "--dry-run", "--set", f"space={space}")
    assert completed.stdout.splitlines()[2:6] == [
        "space      side    0.002 to 0.05",
        "           ribs    1 to 4, integers",
        "           broken  0, 1",
        "           a       fixed at 2",
    ]
    assert (
        "stage 2    front: auto takes gp: planned for 40 designs, 2 objectives and 3 parameters: " in completed.stdout
    )


def test_validate_refuses_exports_to_a_place_that_cannot_be_a_folder(folder: Path) -> None:
    (folder / "results").write_text("a file of somebody's")
    exports = ("validate", "beam.yaml", "--plugin", "beam.py", "--set", "report.export=[csv]")
    completed = designopt(folder, *exports)
    assert completed.returncode == 2
    assert "beam.yaml: error: report.export: csv cannot be written to results/beam.study: " in completed.stderr
    assert "results is no folder; choose another folder: -o STORE" in completed.stderr
    assert json.loads(designopt(folder, *exports, "--format", "json").stdout)[0]["path"] == "report.export"
    (folder / "results").unlink()
    assert designopt(folder, *exports).returncode == 0


def test_validate_says_which_solver_auto_takes_and_why(folder: Path) -> None:
    text = (folder / "beam.yaml").read_text().replace("{use: nsga2, population: 8}", "{use: auto}")
    (folder / "beam.yaml").write_text(text)
    completed = designopt(folder, "validate", "beam.yaml", "--plugin", "beam.py")
    assert completed.returncode == 0, completed.stderr
    assert "  stage front takes gp: planned for 40 designs, 2 objectives and 1 parameter: " in completed.stdout


def test_tried_designs_do_not_spoil_the_json(folder: Path) -> None:
    completed = designopt(folder, "validate", "beam.yaml", "--plugin", "beam.py", "--try", "2", "--format", "json")
    assert json.loads(completed.stdout) == []
    assert len([line for line in completed.stderr.splitlines() if " in " in line]) == 2


def test_a_dry_run_tells_the_executor_of_the_options(folder: Path) -> None:
    completed = designopt(
        folder, "run", "beam.yaml", "--plugin", "beam.py", "--dry-run", "--executor", "dask", "--workers", "3"
    )
    assert "executor   dask, workers 3" in completed.stdout
    assert not (folder / "results").exists()


def test_a_report_that_cannot_be_written_is_reported_in_a_sentence(folder: Path) -> None:
    assert designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", "-o", "s.study").returncode == 0
    (folder / "taken").mkdir()
    for target in ("missing/report.html", "taken"):
        completed = designopt(folder, "report", "s.study", "-o", target)
        assert completed.returncode == 4
        assert f"{target}: the report cannot be written" in completed.stderr
        assert "Traceback" not in completed.stderr
    assert not list(folder.glob("*.part"))


def test_trying_a_model_that_cannot_be_prepared_is_reported_in_a_sentence(folder: Path) -> None:
    never_ready = """
class Fixed:
    def prepare(self) -> None:
        raise OSError("the table of sections is missing")
    def evaluate(self, design, scenario) -> Out:
        return {}
model("beam", version=1)(Fixed)
"""
    text = MODEL[: MODEL.index('@model("beam"')] + never_ready
    (folder / "beam.py").write_text(text)
    (folder / "beam.yaml").write_text(STUDY.replace(", load: 0.2 kN", ""))
    completed = designopt(folder, "validate", "beam.yaml", "--plugin", "beam.py", "--try", "1")
    assert completed.returncode == 2
    assert "model 'beam' cannot be prepared: OSError: the table of sections is missing" in completed.stderr
    assert "Traceback" not in completed.stderr


def test_a_warning_of_a_model_is_one_line(folder: Path) -> None:
    doubtful = """
import warnings
class Doubtful:
    def check(self) -> None:
        warnings.warn("load: the beam yields from 900 N on", stacklevel=2)
    def evaluate(self, design, scenario) -> Out:
        return {"mass": 1.0, "sag": 1.0}
model("beam", version=1)(Doubtful)
"""
    (folder / "beam.py").write_text(MODEL[: MODEL.index('@model("beam"')] + doubtful)
    (folder / "beam.yaml").write_text(STUDY.replace(", load: 0.2 kN", ""))
    completed = process(folder, "validate", "beam.yaml", "--plugin", "beam.py")
    assert completed.returncode == 0
    assert completed.stderr.splitlines()[0] == "warning: load: the beam yields from 900 N on"
    assert "UserWarning" not in completed.stderr


def test_a_dry_run_refuses_a_budget_below_what_the_solver_needs(folder: Path) -> None:
    completed = designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", "--dry-run", "--budget", "front=3")
    assert completed.returncode == 2
    assert re.search(
        r"front=3: solver 'nsga2' of stage 'front' needs at least \d+ designs, not 3$", completed.stderr.strip()
    )


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_budget_of_no_stage_is_a_mistake_in_the_command(folder: Path, more: tuple[str, ...]) -> None:
    completed = designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", "--budget", "nsga2=60", *more)
    assert completed.returncode == 2
    assert (
        completed.stderr.strip().splitlines()[-1]
        == "error: --budget nsga2=60: no stage named 'nsga2' (known: look, front)"
    )
    assert not (folder / "results").exists()


def test_a_budget_without_a_name_is_that_of_the_only_stage_with_one(folder: Path) -> None:
    command = ("run", "beam.yaml", "--plugin", "beam.py", "--budget", "16")
    completed = designopt(folder, *command)
    assert completed.returncode == 0, completed.stderr
    assert [stage.budget.evaluations for stage in read_study(folder / "results/beam.study").stages] == [None, 16]
    too_small = designopt(folder, *command[:-1], "3", "--replace")
    assert "error: --budget 3: solver 'nsga2' of stage 'front' needs at least" in too_small.stderr
    (folder / "beam.yaml").write_text(STUDY.replace("levels: 12}}", "levels: 12}, budget: {evaluations: 12}}"))
    for arguments in ((*command, "-o", "s.study"), (*command, "--dry-run")):
        several = designopt(folder, *arguments)
        assert several.returncode == 2
        assert several.stderr.strip().splitlines()[-1] == (
            "error: --budget 16: the study has 2 stages; name one: look=N or front=N"
        )
    twice = designopt(folder, *command, "--budget", "1h")
    assert "names a stage twice" in twice.stderr


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_python_file_in_the_place_of_the_study_belongs_to_plugin(folder: Path, command: str) -> None:
    completed = designopt(folder, command, "beam.py")
    assert completed.returncode == 2
    text = "error: beam.py is a Python file; give the study file, and this one with --plugin beam.py\n"
    assert completed.stderr == text


def test_a_wrong_number_of_evaluations_is_one_mistake(folder: Path) -> None:
    study = (folder / "beam.yaml").read_text()
    (folder / "beam.yaml").write_text(study.replace("{use: nsga2, population: 8}", "{use: auto}"))
    completed = designopt(
        folder, "validate", "beam.yaml", "--plugin", "beam.py", "--set", "stages.front.budget.evaluations=0"
    )
    assert completed.stderr.splitlines()[0].endswith("budget.evaluations: must be at least 1, not 0")
    assert "1 error" in completed.stderr


def test_a_plugin_file_that_raises_is_reported_in_a_sentence(folder: Path) -> None:
    (folder / "broken.py").write_text("import no_such_package_at_all")
    for arguments in (("show", "nsga2"), ("validate", "beam.yaml"), ("run", "beam.yaml")):
        completed = designopt(folder, *arguments, "--plugin", "broken.py")
        assert completed.returncode == 2
        assert "broken.py:1: ModuleNotFoundError" in completed.stderr
        assert "Traceback" not in completed.stderr
        assert "no plugin named" not in completed.stderr  # it would have declared that
    assert completed.stderr.count("error:") == 1


def test_a_study_passed_as_a_plugin_is_reported_as_no_python_file(folder: Path) -> None:
    completed = designopt(folder, "validate", "beam.yaml", "--plugin", "beam.yaml")
    assert completed.returncode == 2
    first = "error: beam.yaml is not a Python file; --plugin takes the Python file that declares a plugin"
    assert completed.stderr.splitlines() == [first, "1 error, nothing was run."]


def test_of_a_study_that_is_not_there_the_one_that_was_meant_is_named(folder: Path) -> None:
    for command in ("validate", "run"):
        completed = designopt(folder, command, "baem.yaml")
        assert completed.returncode == 2
        assert completed.stderr.splitlines()[0] == "baem.yaml: error: no such file; did you mean 'beam.yaml'?"
    completed = designopt(folder, "validate", "quite_another")
    assert completed.stderr.splitlines()[0] == "quite_another: error: no such file (study files there: beam.yaml)"
    assert designopt(folder, "validate", "no/folder.yaml").stderr.splitlines()[0].endswith("error: no such file")


def test_a_study_without_a_feasible_design_ends_with_1(folder: Path) -> None:
    completed = designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", "--set", "constraints.stiff.max=1e-9 mm")
    assert completed.returncode == 1, completed.stderr
    assert "No feasible design" in completed.stderr
    assert "so there is no design to choose" not in completed.stdout + completed.stderr
    assert "Most frequent failure: diverged (folded), " in completed.stderr
    assert completed.stderr.endswith(", the first: the section folds\n")


def test_a_study_whose_programs_all_fail_says_how_they_ended(folder: Path) -> None:
    (folder / "ride.yaml").write_text("""
study: ride
model: {use: quarter_car}
space:
  stiffness: {low: 2 kN/m, high: 200 kN/m, unit: N/m}
  damping: {low: 100, high: 20000, unit: N s/m}
objectives: [{name: ride, minimize: cost}]
constraints: [{name: soft, of: discomfort, max: -1}]
solver: {use: collocation, intervals: 10, max_iterations: 5}
execution: {executor: serial}
""")
    completed = designopt(folder, "run", "ride.yaml")
    assert completed.returncode == 1, completed.stderr
    end = "Most frequent end of a program: iteration_limit, 1 of 1, the first: The limit of iterations was reached: "
    assert completed.stderr.splitlines()[-1].startswith(end)
    summary = designopt(folder, "show", "results/ride.study").stdout
    assert "\nprograms     1: iteration_limit 1\n" in summary
    assert f"No program has produced a design yet, so there is no design to choose. {end}" in summary


def test_without_a_feasible_design_the_nearest_is_given_in_the_units_of_the_study(folder: Path) -> None:
    (folder / "ride.yaml").write_text("""
study: ride
model: {use: quarter_car}
space:
  stiffness: {low: 2 kN/m, high: 200 kN/m}
  damping: 1 kN s/m
objectives: [{name: ride, minimize: discomfort}]
constraints: [{name: soft, of: discomfort, max: -1}]
solver: {use: full_factorial, levels: 2}
execution: {executor: serial}
""")
    completed = designopt(folder, "run", "ride.yaml")
    assert completed.returncode == 1, completed.stderr
    assert "Design 0 violates the limits least: stiffness 2 kN/m." in completed.stderr


def test_without_a_failure_none_is_reported(folder: Path) -> None:
    changes = ("--set", "constraints.stiff.max=1e-9 mm", "--set", "space.side.low=0.01")
    completed = designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", *changes)
    assert completed.returncode == 1, completed.stderr
    assert "see failures and limits in the report." in completed.stderr
    assert "Most frequent" not in completed.stderr


def test_a_smaller_budget_is_refused_when_a_run_is_continued(folder: Path) -> None:
    assert designopt(folder, "run", "beam.yaml", "--plugin", "beam.py", "-o", "s.study").returncode == 0
    completed = designopt(folder, "resume", "s.study", "--plugin", "beam.py", "--budget", "front=10")
    assert completed.returncode == 4
    assert "stage 'front' has already proposed 40 designs; set a budget of at least 40, not 10" in completed.stderr
    completed = designopt(folder, "resume", "s.study", "--plugin", "beam.py", "--budget", "frnt=100")
    assert completed.returncode == 2
    assert "error: --budget frnt=100: no stage named 'frnt'; did you mean 'front'?" in completed.stderr


def test_a_model_that_always_raises_stops_the_study_with_3(folder: Path) -> None:
    (folder / "beam.yaml").write_text(STUDY.replace("  side:", "  broken: {value: 1}\n  side:"))
    completed = designopt(folder, "run", "beam.yaml", "--plugin", "beam.py")
    assert completed.returncode == 3, completed.stdout + completed.stderr
    assert "the beam file is missing" in completed.stderr


def test_ctrl_c_ends_with_130_and_the_command_that_goes_on(folder: Path) -> None:
    (folder / "hold").touch()
    command = [sys.executable, "-m", "designopt", "run", "beam.yaml", "--plugin", "beam.py", "-o", "s.study"]
    running = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not (folder / "at_work").exists():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline, "no evaluation began"
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGINT)
    while bytes([signal.SIGINT]) not in (folder / "signals").read_bytes():  # from the command to its child
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline, "the request to stop did not arrive"
        time.sleep(0.05)
    (folder / "hold").unlink()
    _, errors = running.communicate(timeout=600)
    assert running.returncode == 130, errors
    assert "designopt resume s.study" in errors
    summary = designopt(folder, "show", "s.study").stdout
    assert re.search(r"^last session +interrupted$", summary, re.MULTILINE)
    unfinished = (
        r"^Unfinished: interrupted after 1 of 12 designs of stage look\. Continue with: designopt resume s\.study"
    )
    assert re.search(unfinished, summary, re.MULTILINE)
    completed = designopt(folder, "resume", "s.study", "--plugin", "beam.py")
    assert completed.returncode == 0, completed.stderr
