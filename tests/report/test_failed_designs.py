"""How the report shows failed and invalid designs."""

import numpy as np
from given_results import GivenResult, beam_result, six_designs

from designopt.report import state
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.failures import failures
from designopt.study.study import DesignVariable


def test_failures_are_counted_by_class_and_drawn_where_they_lie(grid_result: GivenResult) -> None:
    section = failures(grid_result)
    assert section is not None
    assert section.facts == (("diverged", "2"), ("error", "1"))
    assert [row[:3] for row in section.tables[0].rows] == [("diverged", "because", 2), ("error", "because", 1)]
    traces = {t["name"]: t for t in section.figures[0].plot["data"]}
    np.testing.assert_array_equal(traces["diverged (2)"]["x"], grid_result.outcomes.X[52:54, 0])
    assert traces["diverged (2)"]["marker"]["symbol"] != traces["error (1)"]["marker"]["symbol"]


def test_failures_are_drawn_over_the_parameters_in_which_they_differ() -> None:
    space = tuple(DesignVariable(name, "real", low=0.0, high=1.0) for name in "abc")
    X = np.random.default_rng(2).random((60, 3))
    bad = (X[:, 1] > 0.7) | (X[:, 2] > 0.8)
    result = beam_result(X, {"mass": X[:, 0], "sag": X[:, 1]}, space=space, status=np.where(bad, "diverged", "ok"))
    axes = failures(result).figures[0].plot["layout"]  # type: ignore[union-attr]
    assert (axes["xaxis"]["title"]["text"], axes["yaxis"]["title"]["text"]) == ("b", "c")


def test_invalid_designs_are_kept_apart_from_failures_and_reported_by_relation() -> None:
    X = [(10.0, 0.1), (20.0, 0.2), (60.0, 0.3), (70.0, 0.9), (80.0, 0.4), (30.0, 0.8)]
    result = beam_result(
        X,
        {"mass": [1, 2, 3, 4, 5, 6], "sag": [6, 5, 4, 3, 2, 1]},
        relations=("width <= 50", "height <= 0.7"),
        status=["ok", "timeout", "ok", "ok", "ok", "ok"],
    )
    section = failures(result)
    assert section is not None
    assert section.facts == (("timeout", "1"), ("invalid", "4"))
    failed, invalid = section.introduction.split("\n\n")
    assert failed.startswith("1 of 6 designs (16.7 %) failed")
    assert invalid.startswith("4 of 6 designs (66.7 %) are invalid")
    by_reason, by_relation = section.tables
    assert [row[:3] for row in by_reason.rows] == [("timeout", "because", 1)]
    assert by_relation.rows == (("breaks width <= 50", 3, ""), ("breaks height <= 0.7", 2, ""))
    facts = dict(overview(result).facts)
    assert (facts["failed designs"], facts["invalid designs"]) == ("1", "4")
    assert "failed       timeout (because) 1\ninvalid      4 designs" in state(result)


def test_values_that_the_model_refuses_are_invalid_with_its_words() -> None:
    result = beam_result([(10.0, 0.1), (20.0, 0.2)], {"mass": [1, 2], "sag": [2, 1]}, status=["ok", "invalid"])
    section = failures(result)
    assert section is not None
    assert section.introduction.startswith("No evaluation failed.")
    assert section.tables[0].rows == (("because", 1, "failed for <width> 20"),)
    assert dict(overview(result).facts)["failed designs"] == "0"


def test_the_report_states_that_there_are_no_failures() -> None:
    assert failures(six_designs()).introduction == "Every evaluation gave a result."  # type: ignore[union-attr]


def test_a_design_without_a_finite_objective_is_named_beside_evaluations_that_all_gave_results() -> None:
    result = beam_result([(10.0, 0.1), (20.0, 0.2)], {"mass": [1.0, np.inf], "sag": [2.0, 1.0]})
    assert dict(overview(result).facts)["failed designs"] == "1"
    section = failures(result)
    assert section is not None
    assert section.introduction == "Every evaluation gave a result."
    assert section.findings[0].startswith("'mass' is not a finite number for 1 of 2 designs")
