"""`designopt validate` answers with a sentence whatever the code of a model does to its process."""

import subprocess
import sys
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
    solver: {{use: random, samples: 3}}
"""


def validate(tmp_path, kind, *options, limit=None):
    file = tmp_path / "study.yaml"
    file.write_text(STUDY.format(kind=kind))
    code = "from designopt.cli import main, checking\n"
    code += f"checking.LONGEST = {limit}\n" if limit else ""
    command = [sys.executable, "-c", f"{code}main()", "validate", str(file), "--plugin", str(PLUGIN), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("exits in check", (), "code of the model (set-up, check or evaluation) ended the process with exit code 7"),
        ("is killed in check", (), "ended the process by SIGKILL"),
        ("exits in prepare", ("--try", "2"), "ended the process with exit code 7"),
        ("raises", ("--try", "2"), "2 of the evaluations tried failed"),
        ("is not finite", ("--try", "2"), "2 of the evaluations tried failed"),
    ],
)
def test_code_that_ends_its_process_or_fails_ends_the_check_with_a_sentence(tmp_path, kind, options, said):
    done = validate(tmp_path, kind, *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_set_up_that_hangs_is_told(tmp_path):
    done = validate(tmp_path, "hangs in check", limit=2.0)
    assert done.returncode == 2
    assert f"{tmp_path / 'study.yaml'}: not checked within 2 s" in done.stderr


def test_a_study_that_is_fine_is_as_before(tmp_path):
    done = validate(tmp_path, "nothing", "--try", "2")
    assert done.returncode == 0, done.stderr
    assert "a valid study" in done.stdout
    assert done.stdout.count("ok in") == 2
