"""Objectives that vary less over the front than the tolerances are named: there is nothing to choose from."""

from dataclasses import replace

import pytest
from given_results import GivenResult, beam_result, minimize

from designopt.report import summary_table
from designopt.report.parts.answer.overview import overview
from designopt.study.study import Tolerance, Tolerances

X = [(10.0 + i, 0.5) for i in range(4)]
MASS = [1.0, 2.0, 3.0, 4.0]


@pytest.fixture(autouse=True)
def _without_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GivenResult, "tolerated", lambda self: None)


def with_tolerance(sag: list[float], percent: float, *, assumed: bool = False) -> GivenResult:
    result = beam_result(X, {"mass": MASS, "sag": sag}, objectives=(minimize("mass", "kg"), minimize("sag", "mm")))
    tolerance = Tolerance("width", percent / 100.0, relative=True)
    return replace(result, study=replace(result.study, tolerances=Tolerances((tolerance,), assumed=assumed)))


def test_an_objective_that_varies_less_than_the_tolerances_is_named_with_its_range() -> None:
    result = with_tolerance([240.0, 239.5, 239.0, 238.0], percent=2.0)
    clause = (
        "over the front sag (238 to 240 mm) varies less than the tolerances; the front has no trade-off to choose from"
    )
    assert f"note: {clause}" in summary_table(result)
    assert any(clause in finding.lower() for finding in overview(result).findings)


def test_two_narrow_objectives_beside_one_that_varies_leave_no_trade_off() -> None:
    """The ranges of the front of the study `exoskeleton_gait` with its tolerances."""
    figures = {
        "error": [7.7, 7.8, 7.9, 8.0],
        "moment": [239.4, 238.6, 237.9, 237.5],
        "energy": [36.57, 36.35, 36.4, 36.5],
    }
    objectives = (minimize("error", "mm"), minimize("moment", "N m"), minimize("energy", "J"))
    result = beam_result(X, figures, objectives=objectives)
    tolerances = Tolerances((Tolerance("width", 0.02, relative=True),))
    assert (
        "note: over the front moment (237.5 to 239.4 N m) and energy (36.35 to 36.57 J) vary less than the tolerances; "
        "the front has no trade-off to choose from"
    ) in summary_table(replace(result, study=replace(result.study, tolerances=tolerances)))


@pytest.mark.parametrize(
    "result",
    [
        with_tolerance([240.0, 200.0, 150.0, 100.0], percent=2.0),
        with_tolerance([240.0, 239.5, 239.0, 238.0], percent=0.1),
        with_tolerance([240.0, 239.5, 239.0, 238.0], percent=2.0, assumed=True),
    ],
)
def test_a_front_wider_than_the_stated_tolerances_needs_no_note(result: GivenResult) -> None:
    assert "trade-off" not in summary_table(result)
