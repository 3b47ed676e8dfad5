"""What the terminal shows of a result."""

from dataclasses import replace

import numpy as np
import pytest
from given_results import at_most, beam_result, minimize, six_designs

from designopt.problem import Problem
from designopt.report import summary_table
from designopt.report.notable import notable_without_choice
from designopt.report.parts.answer.best import best
from designopt.report.parts.answer.limits import sentence
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.record import record
from designopt.report.terminal import state


def test_bounds_and_limits_that_most_of_the_front_has_reached_stand_beside_the_best_designs() -> None:
    X = [(10.0, 0.2), (10.0, 0.4), (10.0, 0.6), (50.0, 0.5)]
    result = beam_result(X, {"mass": [1, 2, 3, 4], "sag": [9.5, 9.49, 7, 6]}, constraints=(at_most("sag", 9.5, "mm"),))
    bound = "width is at its lower bound (10 mm) in 75 % of the front"
    limit = "upper limit of sag (9.5 mm) is active in 50 % of the front"
    assert best(result).findings[1:] == (f"{bound}.", f"The {limit}.")
    assert summary_table(result).splitlines()[-2:] == [f"note: {bound}", f"note: the {limit}"]
    inside = beam_result([(30.0, 0.5), (20.0, 0.6), (40.0, 0.7)], {"mass": [1, 2, 3], "sag": [3, 2, 1]})
    assert len(best(inside).findings) == 1
    assert "note" not in summary_table(inside)


def test_bounds_that_less_of_the_front_has_reached_are_one_note() -> None:
    X = [(10.0, 0.2), (30.0, 0.5), (40.0, 0.6), (50.0, 1.0)]
    result = beam_result(X, {"mass": [1, 2, 3, 4], "sag": [9, 8, 7, 6]})
    reached = "the front reaches the lower bound of width (10 mm) in 25 %; the upper bound of height (1 m) in 25 %"
    assert summary_table(result).splitlines().count(f"note: {reached}") == 1
    width, height = result.study.space
    study = replace(result.study, space=(width, replace(height, why="the hall is no higher")))
    explained = replace(result, study=study, problem=Problem.from_study(study))
    assert f"note: {reached}: the hall is no higher" in summary_table(explained).splitlines()


def test_corrections_and_versions_that_changed_are_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    result = six_designs()
    events = [
        {"time": 0.0, "session": 1, "kind": "recalled", "text": "8 evaluations taken over from a.study"},
        {"time": 9.0, "session": 3, "kind": "corrected", "text": "design 8: sag = 1, formerly sag = -1"},
    ]
    versions = [{"numpy": "2.4"}, {"numpy": "2.4"}, {"numpy": "2.5", "scipy": "1.17"}]
    monkeypatch.setattr(type(result), "events", events)
    monkeypatch.setattr(type(result), "sessions", [{"reason": "done", "versions": v} for v in versions])
    tables = {table.title: table for table in record(result).tables}
    assert tables["Versions"].columns == ("package", "sessions 1 to 2", "session 3")
    assert tables["Versions"].rows == (("numpy", "2.4", "2.5"), ("scipy", "", "1.17"))
    assert [row[1:] for row in tables["Events"].rows] == [(e["session"], e["text"]) for e in events]
    assert "taken over   8 evaluations from a.study" in state(result).splitlines()
    assert "corrected    design 8: sag = 1, formerly sag = -1" in state(result).splitlines()


def test_the_page_and_the_terminal_have_the_same_sentences_on_bounds() -> None:
    X = [(10.0, 0.2), (10.0, 1.0), (10.0, 0.6), (50.0, 0.0)]
    result = beam_result(X, {"mass": [1, 2, 3, 4], "sag": [9, 8, 7, 6]})
    notes = [line.removeprefix("note: ") for line in summary_table(result).splitlines() if "bound" in line]
    assert notes[0] == "width is at its lower bound (10 mm) in 75 % of the front"
    assert notes[1:] == [
        "the front reaches the lower bound of height (0 m) in 25 %",
        "height of the recommended design is at its upper bound (1 m)",
    ]
    assert [text for text in overview(result).findings if "bound" in text] == [sentence(note) for note in notes]


def test_the_recommended_design_is_marked_in_the_table() -> None:
    lines = summary_table(six_designs()).splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == ["best mass", "best sag", "compromise (recommended)"]
    one = beam_result([(30.0, 0.5), (40.0, 0.6)], {"mass": [1, 2]}, objectives=(minimize("mass", "kg"),))
    assert "recommended" not in summary_table(one).splitlines()[1]


def test_a_bound_reached_by_the_recommended_design_is_reported_with_its_reason() -> None:
    X = [(30.0, 0.5), (10.0, 0.6), (40.0, 0.7)]
    result = beam_result(X, {"mass": [1, 2, 3], "sag": [3, 2, 1]})
    clause = "width of the recommended design is at its lower bound (10 mm)"
    assert summary_table(result).splitlines()[-1] == f"note: {clause}"
    assert overview(result).findings[-1] == f"{clause}."
    width, *remaining = result.study.space
    study = replace(result.study, space=(replace(width, why="narrower ones are not sold"), *remaining))
    explained = replace(result, study=study, problem=Problem.from_study(study))
    assert summary_table(explained).splitlines()[-1] == f"note: {clause}: narrower ones are not sold"
    assert explained.problem.digest == result.problem.digest


def test_a_design_that_is_best_in_several_ways_has_one_column_with_all_labels() -> None:
    result = beam_result([(30.0, 0.5), (40.0, 0.6)], {"mass": [1, 2], "sag": [1, 2]})
    assert best(result).tables[0].columns == ("", "best mass, best sag, compromise", "meaning")
    assert len(summary_table(result).splitlines()) == 2


def test_the_summary_is_an_aligned_table() -> None:
    assert summary_table(six_designs()).splitlines() == [
        "design                    width [mm]  height [m]  mass [kg]  sag [mm]",
        "best mass                         11         0.8          1         8",
        "best sag                          18         0.1          8         1",
        "compromise (recommended)          12         0.4          2         4",
    ]


def test_notable_figures_above_zero_are_reported_at_the_end_of_a_run() -> None:
    X, figures = [(10.0, 0.2), (20.0, 0.4)], {"mass": [1, 2], "sag": [2, 1]}
    assert "gaps" not in summary_table(beam_result(X, {**figures, "gaps": [0, 0]}))
    lines = summary_table(beam_result(X, {**figures, "gaps": [0, 7]})).splitlines()
    assert "note: gaps is up to 7 in 1 of 2 evaluations: frames without a number" in lines
    result = beam_result(
        X, {"mass": [[1], [2]], "sag": [[2], [1]], "gaps": [[3, 0], [0, 0]]}, scenarios=("slow", "fast")
    )
    note = "note: gaps is up to 3 in 1 of 4 evaluations (slow): frames without a number"
    assert note in summary_table(result).splitlines()


def test_the_sentences_of_a_notable_figure_are_printed_with_those_that_are_alike_in_one_line(monkeypatch) -> None:
    result = beam_result([(10.0, 0.2)], {"mass": [[1, 1, 1, 1]], "sag": [[1, 1, 1, 1]], "gaps": [[2, 1, 1, 0]]},
                         scenarios=("w1", "w2", "w3", "w4"))  # fmt: skip
    note = "  to read them, keep the array gap_sentences: execution: {arrays: [gap_sentences, ...]}"
    assert note in summary_table(result).splitlines()
    sentences = [
        ["w1.trc: 3 frames lack a marker", "no plate", "w1.trc: 8 frames lack a marker"],
        ["w2.trc: 5 frames lack a marker"],
        ["w3.trc: 3 frames lack a marker"],
        [],
    ]
    monkeypatch.setattr(
        type(result), "arrays", lambda self, i, s=0: {"gap_sentences": np.array(sentences[s], dtype=str)}
    )
    lines = summary_table(result).splitlines()
    assert "  w1, w2 and w3: w1.trc: 3 frames lack a marker (figures of w1)" in lines
    assert "  w1: no plate" in lines
    assert "  w1: w1.trc: 8 frames lack a marker" in lines

    unjudged = replace(
        result, study=replace(result.study, objectives=()), problem=replace(result.problem, objectives=())
    )
    (clause,) = notable_without_choice(unjudged)
    assert clause == (
        "gaps is up to 2 in 3 of 4 evaluations (w1, w2 and w3): frames without a number (w1, w2 and w3: w1.trc: 3"
        " frames lack a marker (figures of w1); w1: no plate; w1: w1.trc: 8 frames lack a marker)"
    )
    monkeypatch.setattr(
        type(result), "arrays", lambda self, i, s=0: {"gap_sentences": np.array([f"{chr(97 + k)}!" for k in range(25)])}
    )
    assert "  5 more sentences in the array gap_sentences" in summary_table(result).splitlines()


def test_the_summary_states_why_there_is_no_choice() -> None:
    assert "Nothing has been evaluated yet" in summary_table(beam_result(np.empty((0, 2)), {"mass": [], "sag": []}))
