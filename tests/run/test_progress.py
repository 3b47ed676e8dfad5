"""What a run says of itself while it goes on."""

import contextlib
import io
import json
import os
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from run_cases import Recorder, listed, make_study

from designopt.run.plan import plan
from designopt.run.progress import (
    JsonLines,
    LiveLine,
    PlainLines,
    SilentProgress,
    Snapshot,
    clock,
    duration,
    event_text,
    line,
    progress,
    snapshot,
)
from designopt.run.runner import run_study
from designopt.store.result import Result
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Scenario, Tolerance, Tolerances, Validation

STATE = Snapshot("sweep", 1, 2, 30, 120, 30, 2, 12.0, 2.5, 7.5, {"mismatch": 0.125})


def test_the_line_tells_what_is_done_the_rate_the_time_left_the_best_and_the_failures():
    assert (
        line(STATE) == "sweep (1/2): 30/120 designs, 12/s, 0:08 left, 2 of 30 evaluations failed, best mismatch 0.125"
    )


def test_the_time_of_a_run_that_has_ended_stands_still(tmp_path, monkeypatch):
    store = tmp_path / "s.study"
    run_study(make_study(), store)
    (session,) = Result.open(store).sessions
    monkeypatch.setattr("time.time", lambda: session["ended"] + 1000.0)

    assert snapshot(Result.open(store), [(0.0, 4)]).elapsed == session["ended"] - session["started"]


def test_designs_that_cost_no_budget_are_distinguished():
    assert line(replace(STATE, completed=24, total=24, invalid=4)).startswith(
        "sweep (1/2): 24/24 designs (4 invalid), "
    )


def test_all_but_the_best_values_is_within_eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    live = progress("auto", stream)
    best = {"a_long_name_of_an_objective": 1.0, "another_long_name": 2.0}
    live.update(Snapshot("front", 2, 2, 1234, 20000, 1234, 56, 12.2345, 100.0, 5512.0, best, invalid=78))
    live.close()
    assert "1234/20000 designs (78 invalid), 12.2/s, 1:31:52 left, 56 of" in stream.getvalue()


def test_durations_are_for_readers():
    assert [duration(s) for s in (0.4, 42, 185, 7800)] == ["0 s", "42 s", "3 min 05 s", "2 h 10 min"]


@pytest.mark.skipif(not hasattr(os, "set_blocking") or sys.platform == "win32", reason="pipes that can be looked at")
@pytest.mark.parametrize("mode", ["json", "line"])
def test_a_reader_that_does_not_keep_up_costs_lines_and_does_not_stop_the_run(mode):
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"x" * 4096)
    os.set_blocking(write, True)
    with os.fdopen(write, "w") as stream:
        show = progress(mode, stream)

        def tell():
            show.update(STATE)
            show.event("worker_lost", "one")

        telling = threading.Thread(target=tell, daemon=True)
        telling.start()
        telling.join(60.0)
        stuck = telling.is_alive()
        while len(os.read(read, 1 << 20)) == 1 << 20:
            pass
        assert not stuck
        show.event("worker_lost", "two")
        assert b"two" in os.read(read, 1 << 20)
    os.close(read)


def test_clocks_are_short():
    assert [clock(s) for s in (0.4, 42, 185, 7800)] == ["0:00", "0:42", "3:05", "2:10:00"]


def test_in_a_log_there_is_a_line_a_minute_and_one_at_the_end(monkeypatch):
    clock = iter([0.0, 10.0, 59.0, 61.0, 62.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    plain = PlainLines(stream)
    plain._next = -1.0
    for count in range(5):
        plain.update(Snapshot("s", 1, 1, count, None, count, 0, 1.0, 1.0, None))
    plain.event("worker_lost", "worker 1 died")
    plain.close()
    lines = stream.getvalue().splitlines()
    assert [text.split(":")[1].split()[0] for text in lines if text.startswith("s (")] == ["0", "3", "4"]
    assert "worker lost: worker 1 died" in lines


def test_programs_get_one_object_a_line():
    stream = io.StringIO()
    display = JsonLines(stream)
    display.update(STATE)
    display.event("stopped", "why")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["progress"]["best"] == {"mismatch": 0.125}
    assert second == {"event": "stopped", "text": "why"}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_live_line_with_a_bar():
    stream = Terminal()
    live = progress("auto", stream)
    assert isinstance(live, LiveLine)
    live.update(STATE)
    live.event("worker_lost", "worker 1 died")
    live.close()
    assert "30/120 designs" in stream.getvalue()
    assert "worker 1 died" in stream.getvalue()


def test_a_display_that_was_never_used_leaves_the_terminal_alone():
    stream = Terminal()
    progress("auto", stream)
    assert stream.getvalue() == ""


def test_the_display_is_chosen_by_mode_and_stream():
    assert isinstance(progress("none"), SilentProgress)
    assert isinstance(progress("json"), JsonLines)
    assert isinstance(progress("auto", io.StringIO()), PlainLines)
    assert isinstance(progress("line", io.StringIO()), PlainLines)


def test_a_run_reports_its_state_and_closes_its_display(tmp_path, clock, monkeypatch):
    monkeypatch.setattr("designopt.run.stage.SETTLED", (0.8, 5))
    recorder = Recorder()
    values = np.linspace(0, 1, 60)
    study = make_study(settings={"pause": 0.03}, stages=(listed(values), listed(values, name="b")), names=("a",))
    run_study(study, tmp_path / "s", progress=recorder)
    assert recorder.closed
    during = [s for s in recorder.snapshots if s.stage == "list" and s.completed < 60]
    assert during
    assert all(s.total == 60 and s.rate > 0 for s in during)
    assert all((s.left is None) == (s.elapsed < 0.8) for s in during)
    assert any(s.left is not None for s in during)
    last = recorder.snapshots[-1]
    assert (last.stage, last.number, last.steps, last.evaluations) == ("b", 2, 2, 60)
    assert last.best == {"f0": 0.0}


TENTH = Tolerances((Tolerance("a", 0.1),))


@pytest.mark.parametrize(
    ("fields", "further"),
    [
        ({}, []),
        ({"tolerances": TENTH}, ["tolerances"]),
        ({"tolerances": replace(TENTH, neighbours=0)}, []),
        ({"tolerances": replace(TENTH, assumed=True)}, []),  # 60 designs have no neighbours within assumed tolerances
        ({"tolerances": replace(TENTH, assumed=True), "designs": 80}, ["tolerances"]),
        (
            {"tolerances": TENTH, "validate": Validation((Scenario("far", {"shift": 1.0}),))},
            ["tolerances", "validation"],
        ),
    ],
)
def test_the_steps_after_the_stages_count_from_the_start(tmp_path, clock, fields, further):
    recorder, designs = Recorder(), fields.get("designs", 60)
    stages = (listed(np.linspace(0.5, 1.0, designs), evaluations=designs),)
    more = {name: value for name, value in fields.items() if name != "designs"}
    study = make_study(stages=stages, names=("a",), settings={"pause": 0.6}, **more)
    run_study(study, tmp_path / "s", progress=recorder)
    numbers = {(s.number, s.stage): s.steps for s in recorder.snapshots}
    assert numbers == dict.fromkeys(enumerate(["list", *further], 1), 1 + len(further))


def test_invalid_designs_are_not_counted_with_those_of_the_budget(tmp_path):
    recorder = Recorder()
    relations = (Expression.parse("a <= 1"),)
    study = make_study(stages=(listed([0.5, 1.5, 0.25, 1.75, 0.75], evaluations=3),), names=("a",), relations=relations)
    run_study(study, tmp_path / "s", progress=recorder)
    last = recorder.snapshots[-1]
    assert (last.completed, last.total, last.invalid, last.left) == (3, 3, 2, 0.0)


def test_the_plan_says_what_would_run(tmp_path):
    study = make_study(stages=(listed([1.0], evaluations=10, wall=90.0),), execution={"timeout": 5.0})
    text = plan(study, tmp_path / "s")
    assert "list: listed, at most 10 designs, at most 1 min 30 s" in text
    assert "time-out 5 s" in text
    assert "exists" not in text


def test_a_full_or_closed_stream_costs_the_display_and_not_the_run(tmp_path, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    result = run_study(
        make_study(names=("a",), stages=(listed([0.1]),)), tmp_path / "s", progress=progress("line", Full())
    )
    assert result.ended == "done"
    monkeypatch.setattr(sys, "stderr", None)
    progress("line").event("note", "nobody hears it")


def test_an_event_whose_text_states_its_kind_has_no_heading():
    assert event_text("stage_ended", "stage front ended: 2 h are used up") == "stage front ended: 2 h are used up"
    assert event_text("stopped", "stopped: too many failures") == "stopped: too many failures"
    assert event_text("no_nanny", "some workers have none") == "no nanny: some workers have none"
