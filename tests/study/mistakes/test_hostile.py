"""Study files of others cost little, whatever is in them: each within 2 s and 300 MB, and with a sentence."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from designopt.study.language import units

RUNNER = Path(__file__).with_name("hostile_runner.py")

#: What one file may cost: seconds of the processor, and MB together with what is imported.
SECONDS, MEGABYTES = 2.0, 300.0
#: Seconds in the default run, where the machine may be slow and busy.
PATIENT = 8.0


def run(every: int) -> list[dict[str, Any]]:
    process = subprocess.run([sys.executable, str(RUNNER), str(every)], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


def judge(results: list[dict[str, Any]], seconds: float) -> None:
    assert [r for r in results if r["seconds"] > seconds or r["megabytes"] > MEGABYTES] == []
    assert [r for r in results if r["code"] != r["wanted"]] == []
    assert [r["name"] for r in results if "Traceback" in r["said"]] == []
    assert [r["name"] for r in results if r["code"] == 2 and "error" not in r["said"]] == []


def test_one_hostile_file_of_24_costs_little_and_is_answered() -> None:
    results = run(24)
    assert len(results) >= 7
    judge(results, PATIENT)


@pytest.mark.faults
def test_every_hostile_file_costs_little_and_is_answered() -> None:
    results = run(1)
    assert len(results) >= 150
    judge(results, SECONDS)


@pytest.mark.parametrize(
    "tower", ["m**9**9**9", "m^9^9", "m**9 ** 9", "m**-9**9", "m**(9)^9", "s*m**2**2", "m**10", "m**99", "9**9 m"]
)
def test_an_exponent_is_one_digit_and_has_none_of_its_own(tower: str) -> None:
    with pytest.raises(units.UnitError, match="is not a unit"):
        units.check(tower)


def test_exponents_of_one_digit_are_units() -> None:
    for unit in ("m**9", "m^-9", "m**(2)*s**3", "m ^ 2 s ^ 3", "furlong**2", "(furlong**2)**2", "m**1.5"):
        units.check(unit)
