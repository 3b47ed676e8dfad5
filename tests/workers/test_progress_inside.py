"""Long evaluations tell how far they are, and the run and those who look on show it."""

import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from run_cases import PLUGINS, Recorder
from test_unruly_models import unruly

import designopt
from designopt import evaluation_progress
from designopt.run.progress import Snapshot, line
from designopt.run.runner import run_study
from designopt.store.progress_note import ProgressNote, running


@pytest.mark.parametrize("executor", ["serial", "dask"])
def test_progress_of_an_evaluation_reaches_the_display_and_the_store(tmp_path, executor):
    displayed, noted = set(), set()

    class Looking(Recorder):
        def update(self, snapshot):
            displayed.update(snapshot.running)
            noted.update(running(tmp_path / "s"))

    study = unruly("tells", count=1, settings={"at": 0.0}, executor=executor, workers=1)
    result = run_study(study, tmp_path / "s", progress=Looking())
    assert result.counts["ok"] == 1
    assert len(displayed) >= 2
    assert {design for design, _, _ in displayed} == {0}
    assert all(words == f"step {round(20 * share)}" for _, share, words in displayed)
    assert noted <= displayed
    assert noted
    assert running(tmp_path / "s") == ()
    assert not (tmp_path / "s" / "running.json").exists()


def test_the_progress_line_tells_the_one_that_is_farthest():
    snapshot = Snapshot("s", 1, 1, 3, 10, 3, 0, 0.1, 30.0, None, running=((7, 0.25, "mesh"), (8, 0.5, "step 3")))
    assert "design 8 at 50 % (step 3) and 1 more" in line(snapshot)
    unknown = replace(snapshot, running=((7, None, "walk, iteration 34"), (8, 0.0, "mesh")))
    assert "design 8 at 0 % (mesh) and 1 more" in line(unknown)
    assert "design 7 (walk, iteration 34)" in line(replace(unknown, running=unknown.running[:1]))
    assert "design" not in line(Snapshot("s", 1, 1, 3, 10, 3, 0, 0.1, 30.0, None)).replace("designs", "")


def test_shares_are_taken_into_their_range_and_nobody_has_to_listen():
    heard = []
    designopt.progress(0.5, "nobody listens")
    with evaluation_progress.listened_by(lambda share, words: heard.append((share, words))):
        for share in (-1.0, 0.5, 7, math.nan):
            designopt.progress(share, "now")
    designopt.progress(0.5)
    assert heard == [(0.0, "now"), (0.5, "now"), (1.0, "now")]


def test_a_remark_is_heard_where_a_design_is_tried_and_is_no_progress():
    evaluation_progress.remark("nobody listens")
    reports = []
    with evaluation_progress.listened_by(lambda share, text: reports.append(text)):
        with evaluation_progress.remarks() as remarks:
            evaluation_progress.remark("the sag is the last of 3 numbers")
        evaluation_progress.remark("nobody listens any more")
    assert remarks == ["the sag is the last of 3 numbers"]
    assert reports == []


def test_texts_of_steps_precede_what_is_reported_inside():
    heard = []
    with evaluation_progress.listened_by(lambda share, words: heard.append((math.isnan(share), words))):
        with evaluation_progress.step("walk"), evaluation_progress.step("60 intervals"):
            designopt.progress(None, "iteration 3")
        designopt.progress(0.5, "checks")
    texts = ["walk", "walk, 60 intervals", "walk, 60 intervals, iteration 3"]
    assert heard == [*((True, text) for text in texts), (False, "checks")]


def test_a_note_that_is_damaged_or_too_long_is_no_note(tmp_path):
    ProgressNote(tmp_path).note([(1, 0.5, "x"), (2, None, "y")])
    assert running(tmp_path) == ((1, 0.5, "x"), (2, None, "y"))
    for text in ("[[1]]", "{", "7", "[[1, 2, 3" + " " * 2**21):
        (tmp_path / "running.json").write_text(text)
        assert running(tmp_path) == ()


def test_show_follow_tells_how_far_an_evaluation_is(tmp_path):
    folder, enough, output = Path(__file__).parent, tmp_path / "enough", tmp_path / "said"
    script = (
        f"import sys; sys.path[:0] = {[str(folder), str(folder.parent), str(PLUGINS.parent)]!r}\n"
        "from pathlib import Path\nfrom test_unruly_models import unruly\n"
        "from designopt.run.runner import run_study\n"
        f"settings = {{'at': 0.0, 'log': {str(enough)!r}}}\n"
        "study = unruly('tells', count=1, settings=settings, executor='serial')\n"
        f"run_study(study, Path({str(tmp_path / 's')!r}))\n"
    )
    plugins = ["--plugin", str(folder / "plugins_faults.py"), "--plugin", str(PLUGINS)]
    command = [sys.executable, "-m", "designopt", "show", str(tmp_path / "s"), "--follow", "--every", "0.2", *plugins]
    end = time.monotonic() + 300.0
    processes = [subprocess.Popen([sys.executable, "-c", script])]
    try:
        while not (tmp_path / "s" / "running.json").exists():
            assert time.monotonic() < end
            assert processes[0].poll() is None
            time.sleep(0.02)
        with output.open("w") as stream:
            processes.append(subprocess.Popen(command, stdout=stream, stderr=stream))
        while "(step " not in output.read_text():
            assert time.monotonic() < end, output.read_text()
            time.sleep(0.02)
        enough.touch()
        assert [process.wait(timeout=300) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert "design 0 at " in output.read_text()
