"""`validate` calls the equations of a declared model, and says with file and line what does not fit."""

import re

import pytest
from click.testing import CliRunner

from designopt.cli import main

CHANGES = {
    "a name that is not declared": (
        "elastic = v.shaft * v.twist",
        "elastic = v.shaftt * v.twist",
        r"changed\.py:33: model 'drive' has no 'shaftt'; did you mean 'shaft'\?",
    ),
    "code that fails": ("error = v.speed", "error = 1 / 0 * v.speed", r"changed\.py:31: .* ZeroDivisionError"),
    "a function of math": (
        "error = v.speed",
        "error = __import__('math').sin(v.speed)",
        r"changed\.py:34: .* 'lag' evaluates to NaN: a function of math",
    ),
    "a sum of two units": (
        "elastic = v.shaft * v.twist",
        "elastic = v.shaft * v.speed",
        r"changed\.py:35: .* the rate of 'motor_speed': '\(shaft\*speed\)' in 'N m/s' is combined with",
    ),
    "a figure in another unit": (
        '"effort": moment**2',
        '"effort": moment',
        r"changed\.py:36: .* what is integrated for 'effort': .* is in 'N m', not 'N\^2 m\^2'",
    ),
    "an equation that is missing": (', "moment": moment}', "}", r"changed\.py:30: .* no equation for 'moment'"),
    "an equation that is a row": (
        "error = v.speed",
        "error = v.time * [[1.0, 2.0]] if 0 else __import__('casadi').horzcat(v.speed, v.speed)",
        r"changed\.py:\d+: .* is 1 x 2, not one scalar",
    ),
}


@pytest.fixture
def drive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, ["new", "drive"]).exit_code == 0
    monkeypatch.chdir("drive")
    return tmp_path / "drive"


@pytest.mark.parametrize("what", CHANGES)
def test_equations_that_do_not_fit_are_findings_with_file_and_line(drive, what):
    old, new, message = CHANGES[what]
    text = (drive / "drive.py").read_text()
    assert old in text
    (drive / "changed.py").write_text(text.replace(old, new))
    answer = CliRunner().invoke(main, ["validate", "drive.yaml", "--plugin", "changed.py"])
    assert answer.exit_code == 2
    assert re.search(r"drive\.yaml:9:8: error: model: " + message, answer.output), answer.output
    assert "Traceback" not in answer.output


def test_a_unit_that_does_not_exist_is_refused_where_the_model_is_declared(drive):
    text = (drive / "drive.py").read_text()
    (drive / "changed.py").write_text(text.replace('twist = State("rad"', 'twist = State("radd"'))
    answer = CliRunner().invoke(main, ["validate", "drive.yaml", "--plugin", "changed.py"])
    assert answer.exit_code == 2
    assert "changed.py:6: PluginError: model 'drive': twist: unknown unit 'radd'" in answer.output
