"""`designopt validate`, `run` and `resume` answer with a sentence whatever the code of a model does to its process."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PLUGIN = Path(__file__).with_name("plugins_faults.py")
STUDY = """
study: stubborn
model: {{use: stubborn, kind: {kind}}}
space:
  a: {{low: 0, high: 1}}
objectives:
  - {{name: value, minimize: value}}
stages:
  - name: search
    solver: {{use: {solver}}}
"""


def command(tmp_path, name, kind, *options, limit=None):
    """A command of designopt on a study of the model that is `kind`, or on its store (``resume``)."""
    file = tmp_path / "study.yaml"
    solver = "collocation" if "trajectory" in kind else "random, samples: 3"
    file.write_text(STUDY.format(kind=kind, solver=solver))
    code = "import sys\nfrom designopt.cli import main\n"
    code += "".join(f"sys.modules['designopt.cli.{m}'].LONGEST = {limit}\n" for m in ("validate", "run") if limit)
    on = [str(tmp_path / "s")] if name == "resume" else [str(file)]
    on += ["-o", str(tmp_path / "s")] if name == "run" else []
    return [sys.executable, "-c", f"{code}main()", name, *on, "--plugin", str(PLUGIN), *options]


def run_command(*arguments, **options):
    return subprocess.run(command(*arguments, **options), capture_output=True, text=True, timeout=600)


def validate(tmp_path, kind, *options, limit=None):
    return run_command(tmp_path, "validate", kind, *options, limit=limit)


@pytest.mark.parametrize(
    ("kind", "options", "code", "message"),
    [
        ("exits in check", (), 2, "code of the model (set-up, check or evaluation) ended the process with exit code 7"),
        ("is killed in check", (), 2, "ended the process by SIGKILL"),
        ("exits in prepare", ("--try", "2"), 2, "ended the process with exit code 7"),
        ("raises", ("--try", "2"), 3, "2 of the trial evaluations failed"),
        ("is not finite", ("--try", "2"), 3, "2 of the trial evaluations failed"),
    ],
)
def test_code_that_ends_its_process_or_fails_ends_the_check_with_a_sentence(tmp_path, kind, options, code, message):
    process = validate(tmp_path, kind, *options)
    assert process.returncode == code
    assert message in process.stderr
    assert "Traceback" not in process.stderr


def test_a_set_up_that_hangs_is_reported(tmp_path):
    process = validate(tmp_path, "hangs in check", limit=2.0)
    assert process.returncode == 2
    assert f"{tmp_path / 'study.yaml'}: not checked within 2 s" in process.stderr


def test_a_study_that_is_fine_is_as_before(tmp_path):
    process = validate(tmp_path, "nothing", "--try", "2")
    assert process.returncode == 0, process.stderr
    assert "a valid study" in process.stdout
    assert process.stdout.count("ok in") == 2


@pytest.mark.parametrize(
    ("kind", "limit", "message"),
    [
        ("exits in check", None, "code of the model (set-up, check or evaluation) ended the process with exit code 7"),
        ("hangs in check", 2.0, "not checked within 2 s"),
        ("exits in trajectory_problem", None, "ended the process with exit code 7"),
        ("hangs in trajectory_problem", 2.0, "not checked within 2 s"),
    ],
)
def test_a_run_whose_model_ends_or_hangs_its_check_ends_with_a_sentence_and_without_a_store(
    tmp_path, kind, limit, message
):
    ended = run_command(tmp_path, "run", kind, limit=limit)
    assert ended.returncode == 2, ended.stderr
    assert f"{tmp_path / 'study.yaml'}: " in ended.stderr
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "s").exists()


def test_a_run_in_one_process_that_its_model_ends_says_so_and_how_to_go_on(tmp_path):
    for name in ("run", "resume"):
        ended = run_command(tmp_path, name, "exits in prepare")
        assert ended.returncode == 4, ended.stderr
        assert (
            "the process of the run ended with exit code 7, by code of the model; with --executor dask" in ended.stderr
        )
        assert f"continue with: designopt resume {tmp_path / 's'} --plugin" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_a_plugin_file_that_hangs_or_exits_while_resume_reads_it_ends_with_a_sentence(tmp_path):
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    plugin = shelf / PLUGIN.name
    plugin.write_bytes(PLUGIN.read_bytes())

    def ended(name, limit=None):
        words = [
            str(plugin) if word == str(PLUGIN) else word for word in command(tmp_path, name, "nothing", limit=limit)
        ]
        return subprocess.run(words, capture_output=True, text=True, timeout=600)

    assert ended("run").returncode == 0
    before = (tmp_path / "s" / "journal.db").read_bytes()
    for code, limit, message in (
        ("import time; time.sleep(1000)", 2.0, "not checked within 2 s"),
        ("import os; os._exit(7)", None, "ended the process with exit code 7"),
    ):
        plugin.write_text(code)
        resumed = ended("resume", limit)
        assert resumed.returncode == 2, resumed.stderr
        assert f"error: {tmp_path / 's'}: " in resumed.stderr
        assert message in resumed.stderr
        assert "Traceback" not in resumed.stderr
    assert (tmp_path / "s" / "journal.db").read_bytes() == before
    plugin.write_bytes(PLUGIN.read_bytes())
    assert ended("resume").returncode == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGKILL, -9), (signal.SIGINT, 130), pytest.param(signal.SIGTERM, 130, marks=pytest.mark.slow)],
)
def test_signals_to_the_command_reach_the_process_of_the_run(tmp_path, number, code):
    started = command(tmp_path, "run", "takes long")
    process = subprocess.Popen(started, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    tasks = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + 300.0
    while not (tmp_path / "at_work").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    (child,) = map(int, tasks.read_text().split())
    for patience in (1.0, 60.0, 60.0):  # the second request ends an evaluation; two that come together are one
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            _, errors = process.communicate(timeout=patience)
            break
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    while Path(f"/proc/{child}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
