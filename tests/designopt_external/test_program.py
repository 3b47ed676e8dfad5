"""The model `program`: a design becomes input files, a program runs, its files contain the results."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from command import alive
from designopt_external.program.model import ExternalProgram, stated_cause
from designopt_external.program.sources import nearest_lines

import designopt
import designopt.report
from designopt.api import Study
from designopt.cli import main
from designopt.plugin import Permission
from designopt.testing import check_model
from designopt.workers.evaluation.single_designs import trial

ALLOW = ["cantilever"]


def with_text(folder: Path, *changes: tuple[str, str]) -> Study:
    """The study with replaced parts of its text."""
    text = (folder / "study.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "changed.yaml").write_text(text)
    return designopt.load(folder / "changed.yaml")


def script(folder: Path, body: str) -> None:
    """Replace the program by a Python script."""
    (folder / "programs" / "cantilever").write_text(f"#!{sys.executable} -SE\nimport json, os, sys, time\n{body}\n")


RESULTS = 'json.dump({"results": {"mass": 2.0}}, open("out.json", "w"))'
#: Results of a script instead of those of the cantilever.
ONE_RESULT = ("    sag: {text: out.dat, after: displacements, column: 3, take: largest, unit: m}\n", "")
ONE_OBJECTIVE = ("objectives: [{minimize: sag}, {minimize: mass}]", "objectives: [{minimize: mass}]")


def test_a_cantilever_in_input_files_has_the_sag_of_the_beam_formula(folder: Path) -> None:
    study = designopt.load("study.yaml")
    evaluation = study.evaluate({"width": 0.04, "height": 0.05}, allow=ALLOW)
    assert evaluation.status == "ok"
    assert evaluation.outputs["sag"] == pytest.approx(1000.0 / (3.0 * 2.1e11 * 0.04 * 0.05**3 / 12.0), rel=1e-5)
    assert evaluation.outputs["mass"] == pytest.approx(7850.0 * 0.04 * 0.05, rel=1e-12)


def test_the_model_passes_the_conformance_test(folder: Path) -> None:
    study = designopt.load("study.yaml").definition
    designs = [{"width": 0.02, "height": 0.03}, {"width": 0.05, "height": 0.06}]
    check_model(ExternalProgram, study.model.settings, designs, scenarios=[{"force": 100.0}], allow=ALLOW)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{csv: out.csv, column: sag, take: last, unit: m}", 1.0),
        ("{csv: out.csv, column: 2, row: 3, unit: m}", 0.5),
        ("{csv: out.csv, column: sag, row: -2, unit: m}", 0.75),
        ("{csv: out.csv, column: sag, take: mean, unit: m}", 0.5),
        ("{csv: out.csv, column: sag, take: rms, unit: m}", np.sqrt((1 + 9 / 16 + 1 / 4 + 1 / 16) / 5)),
        ("{text: out.dat, after: displacements, column: 3, take: last, unit: m}", -1.0),
        ("{text: out.dat, after: displacements, match: 1, column: 3, take: last, unit: m}", -0.5),
        ("{text: out.dat, after: displacements, column: 3, row: 1, unit: m}", 1.0),
        ("{text: out.dat, after: displacements, column: 3, take: sum, unit: m}", 0.0),
    ],
)
def test_a_result_is_read_from_csv_and_text(folder: Path, source: str, value: float) -> None:
    study = with_text(folder, ("{text: out.dat, after: displacements, column: 3, take: largest, unit: m}", source))
    sag = 1000.0 / (3.0 * 2.1e11 * 0.05**4 / 12.0)
    evaluation = study.evaluate({"width": 0.05, "height": 0.05}, allow=ALLOW)
    assert evaluation.outputs["sag"] == pytest.approx(value * sag, rel=1e-9, abs=1e-12)


def test_a_result_is_read_from_what_the_program_prints_and_from_a_list(folder: Path) -> None:
    source = "{text: stdout.txt, pattern: 'mass = (\\S+) kg', unit: kg}"
    study = with_text(folder, ("{json: out.json, path: results.mass, unit: kg}", source))
    of_list = with_text(folder, ("path: results.mass", "path: results.list, take: max"))
    design = {"width": 0.05, "height": 0.05}
    assert study.evaluate(design, allow=ALLOW).outputs["mass"] == 19.625
    assert of_list.evaluate(design, allow=ALLOW).outputs["mass"] == 19.625


def test_arrays_have_their_axis_and_come_from_the_same_files(folder: Path) -> None:
    arrays = "{x: {csv: out.csv, column: x, unit: m, axis: x}, line: {csv: out.csv, column: sag, axis: x}}"
    study = with_text(folder, ("  ends:\n", f"  arrays: {arrays}\n  ends:\n"))
    evaluation = study.evaluate({"width": 0.05, "height": 0.05}, allow=ALLOW, arrays=["x", "line"])
    np.testing.assert_array_equal(evaluation.arrays["x"], [0.0, 0.25, 0.5, 0.75, 1.0])
    assert evaluation.arrays["line"][-1] == pytest.approx(evaluation.outputs["sag"])


def test_words_are_inputs_of_templates(folder: Path) -> None:
    script(folder, f'assert open("beam.inp").read() == "steel 0.05", open("beam.inp").read()\n{RESULTS}')
    (folder / "beam.inp.j2").write_text("{{ material }} {{ height }}")
    study = with_text(
        folder,
        ONE_RESULT,
        ONE_OBJECTIVE,
        ("{width: m, height: m}", "{material: text, height: m}"),
        ("  conditions: {force: N}\n", ""),
        ("width: [10 mm, 100 mm]", "material: {values: [steel, titanium]}"),
        ("scenarios:\n  - {name: nominal, force: 1 kN}\n", ""),
    )
    assert study.evaluate({"material": "steel", "height": 0.05}, allow=ALLOW).status == "ok"


# ------------------------------------------------------------------------------------------------------------- ends


def test_the_sentence_of_the_program_is_the_reason_of_a_divergence(folder: Path) -> None:
    study = with_text(folder, ("height: [20 mm", "height: [5 mm"))
    evaluation = study.evaluate({"width": 0.05, "height": 0.01}, allow=ALLOW)
    assert (evaluation.status, evaluation.message) == ("diverged", "*ERROR: no convergence at height 0.01")


def test_an_exit_code_is_an_error_and_the_printed_text_is_kept(folder: Path) -> None:
    study = with_text(
        folder, ("height: [20 mm", "height: [5 mm"), ("  ends:\n    diverged: {text: '\\*ERROR: .*'}\n", "")
    )
    evaluation = study.evaluate({"width": 0.05, "height": 0.01}, allow=ALLOW)
    assert (evaluation.status, evaluation.reason) == ("error", "exit code 3")
    assert evaluation.message.splitlines() == [
        "stdout.txt, the end of what the program printed:",
        "cantilever 1.0",
        "*ERROR: no convergence at height 0.01",
        "the program ended with exit code 3; it prints: *ERROR: no convergence at height 0.01",
    ]


@pytest.mark.parametrize(
    ("texts", "cause"),
    [
        (("", "reading\n *ERROR reading elements:\n C3D9 is unknown\n CalculiX stops.\n"),
         "; it prints: *ERROR reading elements: C3D9 is unknown"),
        (("warning: old format\n", "fatal error 7\n"), "; it prints: fatal error 7"),
        (("", "mesh: 0 errors\nrelative error 1e-5\nstopped\n"), "; its last line is: stopped"),
        (("", " \n"), ""),
    ],
)  # fmt: skip
def test_an_exit_code_is_explained_by_the_first_error_that_the_program_prints(
    texts: tuple[str, str], cause: str
) -> None:
    assert stated_cause(*texts) == cause


def test_a_failed_trial_shows_the_cause_before_what_the_program_printed(folder: Path) -> None:
    ends = ("  ends:\n    diverged: {text: '\\*ERROR: .*'}\n", "")
    study = with_text(folder, ("height: [20 mm, 90 mm]", "height: [5 mm, 6 mm]"), ends)
    (line, *printed), failed = trial(study.definition, 1, Permission.from_options(tuple(ALLOW)))
    assert re.search(r"error in [0-9.e-]+ s: the program ended with exit code 3; it prints: \*ERROR", line)
    assert printed[:2] == ["    stdout.txt, the end of what the program printed:", "    cantilever 1.0"]
    assert failed == 1


def test_a_trial_names_the_design_before_and_ends_it_at_the_time_limit(folder: Path) -> None:
    script(folder, "time.sleep(600)")
    study = one_result(folder, ("{executor: serial}", "{timeout: 0.3 s}"))
    printed_lines: list[str] = []
    lines, failed = trial(study.definition, 2, Permission.from_options(tuple(ALLOW)), printed_lines.append)
    assert [re.sub("= [^,:]+", "", line.partition(" in ")[0]) for line in printed_lines] == [
        "trying width , height , for at most 0.3 s",
        "width , height : timeout",
    ] * 2
    assert (lines, failed) == (printed_lines[1::2], 2)


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ("{success: {exit: [3]}}", "error"),  # its results are missing
        ("{diverged: {exit: [3]}}", "diverged"),
        ("{timeout: {exit: [3]}}", "timeout"),
        ("{error: {text: 'no convergence'}}", "error"),
    ],
)
def test_exit_codes_and_texts_have_the_class_that_the_study_says(folder: Path, ends: str, status: str) -> None:
    changes = (
        ("height: [20 mm", "height: [5 mm"),
        ("  ends:\n    diverged: {text: '\\*ERROR: .*'}\n", f"  ends: {ends}\n"),
    )
    assert with_text(folder, *changes).evaluate({"width": 0.05, "height": 0.01}, allow=ALLOW).status == status


def test_a_success_may_need_a_text(folder: Path) -> None:
    ends = "diverged: {text: '\\*ERROR: .*'}"
    design = {"width": 0.05, "height": 0.05}
    passed = with_text(folder, (ends, "success: {text: job finished}")).evaluate(design, allow=ALLOW)
    assert passed.status == "ok"
    missed = with_text(folder, (ends, "success: {text: job has finished}")).evaluate(design, allow=ALLOW)
    assert missed.status == "error"
    assert missed.message.splitlines()[-1] == (
        "stdout.txt: no line matches 'job has finished', as a success needs; the nearest lines are 3: job finished"
    )


def test_a_program_that_a_signal_ends_has_crashed(folder: Path) -> None:
    study = with_text(folder, ("90 mm]", "100 mm]"))
    evaluation = study.evaluate({"width": 0.05, "height": 0.0995}, allow=ALLOW)
    assert (evaluation.status, evaluation.reason) == ("crashed", "SIGSEGV")


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    while not condition():
        time.sleep(0.02)


def one_result(folder: Path, *changes: tuple[str, str]) -> Study:
    return with_text(folder, ONE_RESULT, ONE_OBJECTIVE, *changes)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system does not show its processes")
def test_a_program_that_hangs_ends_at_the_limit_with_all_its_processes(folder: Path) -> None:
    pids = folder / "pids"
    script(
        folder,
        f'import subprocess\nchild = subprocess.Popen(["sleep", "600"])\n'
        f'open({str(pids)!r}, "a").write(f"{{os.getpid()}} {{child.pid}} ")\n'
        f'print("waits", flush=True)\ntime.sleep(600)',
    )
    study = one_result(folder, ("{executor: serial}", "{workers: 1, timeout: 4 s}"), ("samples: 6", "samples: 1"))
    result = study.run("out.study", allow=ALLOW)
    assert result.status.tolist() == [["timeout"]]
    assert "the program ran longer than 4 s, the time limit" in result.message(0)
    assert "waits" in result.message(0)
    ids = [int(pid) for pid in pids.read_text().split()]
    assert ids
    wait_for(lambda: not any(map(alive, ids)))


def test_a_process_that_the_program_leaves_behind_ends_with_it(folder: Path) -> None:
    script(
        folder,
        f'import subprocess\nchild = subprocess.Popen(["sleep", "600"])\n'
        f'open({str(folder / "pid")!r}, "w").write(str(child.pid))\n{RESULTS}',
    )
    evaluation = one_result(folder).evaluate({"width": 0.05, "height": 0.05}, allow=ALLOW)
    assert evaluation.status == "ok"
    wait_for(lambda: not alive(int((folder / "pid").read_text())))


def test_an_endless_text_fills_neither_memory_nor_disk(folder: Path) -> None:
    script(
        folder, f'line = "x" * 999 + "\\n"\nfor i in range(40_000): sys.stdout.write(line)\nprint("the end")\n{RESULTS}'
    )
    study = one_result(folder)
    evaluation = study.evaluate({"width": 0.05, "height": 0.05}, allow=ALLOW, arrays=["folder"])
    files = unpacked(evaluation.arrays["folder"])
    assert len(files["stdout.txt"]) < 2 * 8 * 2**20 + 2**20 + 100
    assert files["stdout.txt"].endswith(b"the end\n")
    assert b"bytes are left out" in files["stdout.txt"]


def unpacked(archive: Any) -> dict[str, bytes]:
    import io
    import tarfile

    with tarfile.open(fileobj=io.BytesIO(archive.tobytes()), mode="r:gz") as files:
        return {m.name: files.extractfile(m).read() for m in files.getmembers()}  # type: ignore[union-attr]


def test_the_program_sees_only_its_folder_and_the_listed_variables(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "1")
    monkeypatch.setenv("LICENCE", "port@host")
    script(
        folder, f'json.dump(dict(os.environ), open({str(folder / "seen.json")!r}, "w"))\nopen("left", "w")\n{RESULTS}'
    )
    study = one_result(folder, ("  ends:\n", "  environment: [LICENCE, OMP_NUM_THREADS=2, NOT_SET]\n  ends:\n"))
    study.evaluate({"width": 0.05, "height": 0.05}, allow=ALLOW)
    import json

    variables = json.loads((folder / "seen.json").read_text())
    assert variables.keys() == {"PATH", "HOME", "TMPDIR", "LC_ALL", "OMP_NUM_THREADS", "LICENCE"}
    assert variables["LICENCE"] == "port@host"
    assert variables["OMP_NUM_THREADS"] == "2"
    assert not Path(variables["HOME"]).exists()


def test_results_of_another_design_are_never_read(folder: Path) -> None:
    script(folder, f'if "height 5.000000D-02" in open("beam.inp").read(): {RESULTS}')
    study = one_result(folder)
    assert study.evaluate({"width": 0.05, "height": 0.05}, allow=ALLOW).status == "ok"
    evaluation = study.evaluate({"width": 0.05, "height": 0.06}, allow=ALLOW)
    assert evaluation.status == "error"
    message = "the program wrote no file 'out.json'; the folder contains beam.inp, stderr.txt, stdout.txt"
    assert evaluation.message == message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{csv: out.csv, column: sagg}", "out.csv: there is no column 'sagg'; did you mean 'sag'?"),
        ("{csv: out.csv, column: 7}", "out.csv: row 1 has no column 7, but 2 columns"),
        ("{csv: out.csv, column: sag, row: 9}", "out.csv: there is no row 9: column sag has 5 numbers"),
        ("{json: out.json, path: result.mass}", "out.json: at its top is no key 'result'; did you mean 'results'?"),
        ("{json: out.json, path: results.list.4}", "out.json: at 'results.list' is a list of 2, without position 4"),
        ("{json: out.dat, path: mass}", "out.dat: is not JSON"),
        ("{csv: result.csv, column: sag}", "the program wrote no file 'result.csv'; the folder contains beam.inp, "),
        (
            "{text: out.dat, after: displacement in mm, column: 3}",
            "out.dat: no line matches 'displacement in mm'; the nearest lines are 1: displacements",
        ),
        (
            "{text: out.dat, after: displacements, column: 9}",
            "out.dat: no row has a number in column 9 after line 6 ('displacements",
        ),
        ("{csv: out.csv, column: sag}", "out.csv: there are 5 rows, and the output is one number; add 'take' (first"),
        ("{text: out.dat, after: displacements, column: 3}", "out.dat: there are 2 rows, and the output is one number"),
        ("{text: out.dat, pattern: 'energy (\\S+)'}", "out.dat: nothing matches 'energy"),
        ("{text: stdout.txt, pattern: 'mass = (\\S+)', match: 2}", "matches 1 time"),
        ("{text: stdout.txt, pattern: '(\\w+) finished'}", "stdout.txt: 'job' is not a number"),
    ],
)
def test_a_missing_result_names_the_pattern_and_the_lines_of_the_file(folder: Path, source: str, message: str) -> None:
    study = with_text(folder, ("{text: out.dat, after: displacements, column: 3, take: largest, unit: m}", source))
    evaluation = study.evaluate({"width": 0.05, "height": 0.05}, allow=ALLOW)
    assert (evaluation.status, evaluation.reason) == ("error", "missing result")
    assert message in evaluation.message.splitlines()[-1]


# ------------------------------------------------------------------------------------------------------------- runs


def test_a_failure_that_passes_is_repeated_after_a_while(folder: Path) -> None:
    variables = folder / "seen"
    script(
        folder,
        f'open({str(variables)!r}, "a").write("x")\n'
        f'if os.path.getsize({str(variables)!r}) < 4:\n    print("no licence for solver")\n    sys.exit(1)\n{RESULTS}',
    )
    retry = "{executor: serial, retry: {when: no licence, times: 5, wait: 0.01 s}}"
    study = one_result(folder, ("{executor: serial}", retry), ("samples: 6", "samples: 1"))
    result = study.run("out.study", allow=ALLOW)
    assert result.status.tolist() == [["ok"]]
    assert variables.read_text() == "xxxx"


def test_a_failure_that_does_not_pass_is_recorded_after_its_attempts(folder: Path) -> None:
    script(folder, f'open({str(folder / "seen")!r}, "a").write("x")\nprint("no licence")\nsys.exit(1)')
    retry = "{executor: serial, retry: {when: no licence, times: 2, wait: 0 s}}"
    study = one_result(folder, ("{executor: serial}", retry), ("samples: 6", "samples: 1"))
    result = study.run("out.study", allow=ALLOW)
    assert result.status.tolist() == [["error"]]
    assert (folder / "seen").read_text() == "xxx"


def test_a_program_with_one_licence_never_runs_twice_at_a_time(folder: Path) -> None:
    lock = folder / "lock"
    script(
        folder,
        f"os.close(os.open({str(lock)!r}, os.O_CREAT | os.O_EXCL))\n"
        f"time.sleep(0.02)\nos.unlink({str(lock)!r})\n{RESULTS}",
    )
    study = one_result(
        folder, ("{executor: serial}", "{workers: 2, at_most: {cantilever: 1}}"), ("samples: 6", "samples: 12")
    )
    result = study.run("out.study", allow=ALLOW)
    assert set(result.status.ravel().tolist()) == {"ok"}


def test_the_files_of_failed_designs_are_kept_if_the_study_says_so(folder: Path) -> None:
    script(
        folder,
        f'open("trace.log", "w").write("why")\n'
        f'if "width 0.0" in open("beam.inp").read(): sys.exit("the solver gives up")\n{RESULTS}',
    )
    execution = "{executor: serial, arrays: {folder: failed}, on_failure: {error: infeasible}}"
    study = one_result(folder, ("{executor: serial}", execution))
    result = study.run("out.study", allow=ALLOW)
    failed = [i for i, status in enumerate(result.status[:, 0]) if status == "error"]
    assert failed
    page = designopt.report.write_report(result, folder / "page.html").read_text()
    assert "error: exit code 1, with what was printed" in page
    assert "the solver gives up" in page
    files = unpacked(result.arrays(failed[0])["folder"])
    assert files["trace.log"] == b"why"
    assert "beam.inp" in files
    assert not any(result.arrays(i) for i in range(len(result.outcomes)) if i not in failed)


def test_show_writes_the_input_files_of_a_design_again_and_runs_them_if_asked(folder: Path) -> None:
    designopt.load("study.yaml").run("out.study", allow=ALLOW)
    run = CliRunner().invoke
    outcome = run(main, ["show", "out.study/0", "--files", "again"])
    assert outcome.exit_code == 0, outcome.output
    assert [file.name for file in Path("again").iterdir()] == ["beam.inp"]
    assert run(main, ["show", "out.study/0", "--files", "again"]).exit_code == 2
    refused = run(main, ["show", "out.study/0", "--files", "all", "--evaluate"])
    assert "add --allow cantilever" in refused.output
    outcome = run(main, ["show", "out.study/0", "--files", "whole", "--evaluate", "--allow", "cantilever"])
    assert "the same as recorded" in outcome.output
    assert {"beam.inp", "out.csv", "out.dat", "out.json"} < {file.name for file in Path("whole").iterdir()}
    assert Path("again/beam.inp").read_bytes() == Path("whole/beam.inp").read_bytes()


def test_a_subclass_reads_results_by_its_own_function(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "from designopt.plugin import model\n"
        "from designopt_external.program.model import ExternalProgram\n\n\n"
        '@model("my_cantilever", version=1)\n'
        "class MyCantilever(ExternalProgram):\n"
        '    """Reads the sag in a way of its own."""\n\n'
        "    def read(self, folder):\n"
        '        return {"sag": float((folder / "out.csv").read_text().split()[-1])}\n'
    )
    text = (folder / "study.yaml").read_text().replace("use: program", "use: my_cantilever")
    text = text.replace("{text: out.dat, after: displacements, column: 3, take: largest, unit: m}", "{unit: m}")
    (folder / "changed.yaml").write_text(text)
    study = designopt.load("changed.yaml", plugin_files=["mine.py"])
    evaluation = study.evaluate({"width": 0.05, "height": 0.05}, allow=ALLOW)
    assert evaluation.outputs["sag"] == pytest.approx(1000.0 / (3.0 * 2.1e11 * 0.05**4 / 12.0))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system does not show its processes")
def test_a_killed_runner_leaves_no_program_behind(folder: Path) -> None:
    pids = folder / "pids"
    script(folder, f'open({str(pids)!r}, "a").write(f"{{os.getpid()}} ")\ntime.sleep(600)')
    one_result(folder, ("{executor: serial}", "{workers: 2}"))
    command = [sys.executable, "-m", "designopt", "run", "changed.yaml", "-o", "out.study", "--allow", "cantilever"]
    runner = subprocess.Popen(
        [*command, "--progress", "none"], env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    wait_for(lambda: pids.exists() and len(pids.read_text().split()) >= 2)
    os.killpg(runner.pid, 9)
    runner.wait()
    wait_for(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system does not show its processes")
@pytest.mark.parametrize(
    ("command", "number"),
    [
        (["run", "changed.yaml", "-o", "out.study"], signal.SIGKILL),
        (["run", "changed.yaml", "-o", "out.study"], signal.SIGTERM),
        (["validate", "changed.yaml", "--try", "1"], signal.SIGTERM),
    ],
)
def test_a_program_in_the_process_of_the_command_ends_with_it(folder: Path, command: list[str], number: int) -> None:
    pids, temporary = folder / "pids", folder / "temporary"
    temporary.mkdir()
    script(folder, f'open({str(pids)!r}, "a").write(f"{{os.getpid()}} ")\ntime.sleep(600)')
    one_result(folder, ("{executor: serial}", "{executor: serial, grace: 0.5 s}"))
    process = subprocess.Popen(
        [sys.executable, "-m", "designopt", *command, "--allow", "cantilever"],
        env=os.environ | {"TMPDIR": str(temporary)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: pids.exists() and bool(pids.read_text().split()))
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    wait_for(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()))
    wait_for(lambda: not list(temporary.glob("designopt-*")))
    assert (number, "run") != (signal.SIGTERM, command[0]) or "stopping: evaluations in progress have 0.5 s" in errors


@pytest.mark.parametrize("name", ["../outside.inp", "/tmp/outside.inp"])
def test_files_of_a_received_store_never_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    from designopt.plugin import InputFile

    settings = {"run": ["x"], "inputs": {}, "outputs": {}}
    for setting in ({"files": [InputFile(name, b"")]}, {"parameters": name}):
        with pytest.raises(ValueError, match="lies outside the folder of the evaluation"):
            ExternalProgram(**settings, **setting).write_files(tmp_path / "folder", {})


def test_settings_of_a_received_store_are_checked_before_the_program_runs(folder: Path) -> None:
    from designopt.plugin import InvalidSetting, Permission

    settings = {"run": ["x"], "inputs": {}, "outputs": {"y": {"json": "out.json", "path": "y"}}}
    with pytest.raises(InvalidSetting, match="a study cannot set LD_PRELOAD"):
        ExternalProgram(**settings, environment=["LD_PRELOAD=x.so"]).prepare(Permission({"x": "/bin/x"}))


def test_a_full_disk_is_an_error_of_the_design_with_its_cause(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    study = designopt.load("study.yaml")
    monkeypatch.setattr(Path, "write_bytes", full)
    evaluation = study.evaluate({"width": 0.05, "height": 0.05}, allow=ALLOW)
    assert (evaluation.status, evaluation.reason) == ("error", "disk")
    assert evaluation.message == "the input files cannot be written: No space left on device"


def test_an_inactive_parameter_is_not_defined_in_templates(folder: Path) -> None:
    (folder / "beam.inp.j2").write_text(
        "{{ height }}{% if width is defined %} {{ width }}{% endif %} {{ kind }} {{ force }}"
    )
    script(folder, f'assert open("beam.inp").read() == "0.05 plain 1000.0", open("beam.inp").read()\n{RESULTS}')
    study = one_result(
        folder,
        ("{width: m, height: m}", "{width: m, height: m, kind: text}"),
        ("width: [10 mm, 100 mm]", "width: {low: 10 mm, high: 100 mm, when: {kind: rib}}"),
        ("scenarios:", "  kind: {values: [plain, rib]}\nscenarios:"),
    )
    evaluation = study.evaluate({"height": 0.05, "kind": "plain"}, allow=ALLOW)
    assert evaluation.status == "ok", evaluation.message


@pytest.mark.parametrize("missing", ["pidfd_open", "waitid"])
def test_systems_without_process_descriptors_see_the_end_of_a_program_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.delattr(os, missing, raising=False)
    study = designopt.load("study.yaml")
    assert study.evaluate({"width": 0.05, "height": 0.05}, allow=ALLOW).outputs["mass"] == 19.625


def test_a_line_is_near_that_shares_a_word_with_the_pattern():
    numbers = "".join(f"  {n}   1  1.082519E+00\n" for n in range(2000))
    text = f" stresses (elem, integ.pnt.,sxx,syy,szz,sxy,sxz,syz) for set EALL and time  0.1E+01\n{numbers}"
    assert nearest_lines(text, "stress tensor").startswith("; the nearest lines are 1: stresses (elem, integ")
    assert nearest_lines(text, "energy").startswith("; the last lines are 1999: 1997")
