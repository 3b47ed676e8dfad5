"""Limits of evaluations and set-ups, as a nanny judges them from the notes of its worker: time counts by checks."""

import asyncio
import faulthandler
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from designopt.workers.executor import Position
from designopt.workers.remote.delivery import preparation_limit
from designopt.workers.supervision import supervisor, watch
from designopt.workers.supervision.death import CRASHED, TIMEOUT, NoChunk
from designopt.workers.supervision.supervisor import LOOK, Supervisor
from designopt.workers.supervision.watch import Watch, read_note

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads states of processes in /proc")


def write_note(folder, chunk, position, beat, pulse=0):
    (folder / "note").write_bytes(watch._NOTE.pack(chunk, position, NoChunk.IDLE, beat, pulse) + bytes(watch._SIZE))


def supervised(folder, limit, preparation=None, pid=None):
    """A supervisor of the worker `pid` (this process by default) with notes in `place`; `check` lets it look at them
    after so many seconds, and returns the cause and words with which it would end the worker."""
    judge = Supervisor.__new__(Supervisor)
    judge.run, judge.limit, judge.preparation = "r", limit, preparation
    judge._notes, judge._last, judge._reported_advance = folder, None, 0
    judge._still_time = judge._silent = judge._advance_time = 0.0
    pid = os.getpid() if pid is None else pid
    (folder / "pid").write_text(str(pid))
    ends = []

    async def end(pid, note, *late):
        ends.append(late)

    nanny = SimpleNamespace(pid=pid, worker_address="tls://w", log_event=lambda *_: None)

    def check(passed):
        ends.clear()
        asyncio.run(judge._judge(nanny, passed))
        return ends[0] if ends else None

    judge._end = end
    judge.nanny, judge.check = nanny, check
    return judge


def test_an_evaluation_is_ended_a_quarter_beyond_its_limit_and_the_next_one_has_its_own_time(tmp_path):
    judge = supervised(tmp_path, limit=2.0)
    for position in range(3):
        write_note(tmp_path, 1, position, beat=position)
        assert [judge.check(0.5) for _ in range(6)] == [None] * 6
    cause, words = judge.check(0.5)
    assert (cause, words) == (TIMEOUT, "was terminated after 3 s without a result")


def test_a_set_up_has_the_limit_of_preparations_not_that_of_evaluations(tmp_path):
    judge = supervised(tmp_path, limit=2.0, preparation=60.0)
    write_note(tmp_path, 1, Position.PREPARING, beat=0)
    assert [judge.check(10.0) for _ in range(7)] == [None] * 7
    assert judge.check(10.0) == (
        TIMEOUT,
        "was terminated because the set-up took longer than ten time-outs and a minute",
    )
    judge = supervised(tmp_path, limit=None)
    assert [judge.check(1e3) for _ in range(7)] == [None] * 7


@pytest.mark.parametrize(("timeout", "limit"), [(None, None), (0.5, 60.0), (6.0, 60.0), (60.0, 600.0)])
def test_a_set_up_may_take_ten_time_outs_and_at_least_a_minute(timeout, limit):
    assert preparation_limit(timeout) == limit


@pytest.mark.parametrize(("limit", "patience"), [(None, 30.0), (1.0, 5.0), (8.0, 10.0), (1e4, 30.0)])
def test_a_worker_that_does_not_deliver_or_does_not_answer_is_waited_for_by_its_limit(tmp_path, limit, patience):
    for chunk, position, words in (
        (1, Position.ENDED, "had not delivered its results"),
        (NoChunk.IDLE, Position.PREPARING, "had not answered"),
    ):
        judge = supervised(tmp_path, limit)
        write_note(tmp_path, chunk, position, beat=0)
        assert judge.check(1.0) is None
        assert judge.check(patience) is None
        cause, message = judge.check(0.1)
        assert cause == CRASHED
        assert words in message


def test_a_worker_that_answers_may_have_nothing_to_do_for_long(tmp_path):
    judge = supervised(tmp_path, limit=1.0)
    for pulse in range(9):
        write_note(tmp_path, NoChunk.IDLE, Position.PREPARING, beat=0, pulse=pulse)
        assert judge.check(20.0) is None


def test_the_notes_of_a_process_that_has_been_replaced_are_not_judged(tmp_path):
    judge = supervised(tmp_path, limit=1.0)
    write_note(tmp_path, 1, 0, beat=0)
    judge.nanny.pid = os.getpid() + 1
    assert [judge.check(9.0) for _ in range(4)] == [None] * 4


def test_sleep_of_the_machine_is_no_time_of_an_evaluation(monkeypatch):
    clock = iter([0.0, 0.5, 3600.5, 3601.0])
    passed = []

    class Over(Exception):
        pass

    async def no_pause(seconds):
        if len(passed) == 3:
            raise Over

    async def note(nanny, seconds):
        passed.append(seconds)

    monkeypatch.setattr(supervisor.asyncio, "sleep", no_pause)
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    judge = Supervisor.__new__(Supervisor)
    judge.limit, judge._judge = None, note
    with pytest.raises(Over):
        asyncio.run(judge._look(None))
    assert passed == [0.5, 2.0 * LOOK, 0.5]


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def end(judge, pid, beat):
    note = read_note(judge._notes)
    write_note(judge._notes, 1, 0, beat)
    asyncio.run(Supervisor._end(judge, pid, note, TIMEOUT, "was terminated"))


def test_a_worker_is_ended_with_the_cause_on_record_unless_it_has_gone_on_meanwhile(tmp_path, monkeypatch, sleeper):
    monkeypatch.setattr(supervisor, "TRACE_SIGNAL", None)
    (tmp_path / "trace").write_text("Thread 0x1:")
    judge = supervised(tmp_path, 1.0, pid=sleeper.pid)
    write_note(tmp_path, 1, 0, beat=4)
    end(judge, sleeper.pid, beat=5)
    assert sleeper.poll() is None
    while state(sleeper.pid) == "T":  # the kernel continues it in its own time
        pass
    assert not (tmp_path / "verdict").exists()
    assert (tmp_path / "trace").read_text() == ""
    end(judge, sleeper.pid, beat=5)
    assert sleeper.wait(60) == -signal.SIGKILL
    assert (tmp_path / "verdict").read_text() == f"{TIMEOUT}\nwas terminated"


def test_a_stopped_worker_is_no_time_out_of_its_evaluation(tmp_path, sleeper):
    judge = supervised(tmp_path, 1.0, pid=sleeper.pid)
    write_note(tmp_path, 1, 0, beat=0)
    sleeper.send_signal(signal.SIGSTOP)
    while state(sleeper.pid) != "T":
        pass
    assert judge.check(1.0) is None
    assert judge.check(2.0) == (CRASHED, "was terminated because it had been stopped for 2 s")


def test_a_chunk_is_handed_over_when_its_evaluations_have_ended(tmp_path, monkeypatch):
    for name in ("enable", "disable", "register", "unregister"):  # those of this process are pytest's
        monkeypatch.setattr(faulthandler, name, lambda *_, **__: None)
    notes = Watch("r", "w", "tls://w", tmp_path)
    notes.begin_chunk(3)
    notes.begin(0)
    notes.hand_over(3)
    notes.hand_over(2)
    assert (notes.chunk, notes.before) == (3, NoChunk.IDLE)
    notes.end()
    notes.hand_over(2)
    assert notes.busy
    notes.hand_over(3)
    assert (notes.chunk, notes.before) == (NoChunk.IDLE, 3)
    notes.close(busy=False)
