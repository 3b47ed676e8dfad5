"""Chunks as messages between a scheduler and its workers: who gets which, and what becomes of those of the lost."""

import queue
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Status
from distributed.protocol.serialize import Serialized, serialize

from designopt.workers.carriers import streams
from designopt.workers.carriers.carrier import WorkerEnd
from designopt.workers.carriers.streams import Streams
from designopt.workers.executor import Chunk
from designopt.workers.remote.chunks import CHUNK, FIT, RESULT, RETURN, RETURNED, ChunkQueue


class Cluster:
    """A scheduler whose loop runs at once, with workers that note the messages they are sent."""

    def __init__(self):
        self.loop = SimpleNamespace(add_callback=lambda call, *arguments: call(*arguments))
        self.scheduler = self
        self.stream_handlers, self.stream_comms, self.workers = {}, {}, {}
        self.messages = []
        self.ends = queue.SimpleQueue()
        self.streams = Streams("r", self, self.ends)

    def add_plugin(self, plugin):
        self.plugin = plugin

    def worker_send(self, worker, message):
        self.messages.append((worker, message["op"], message["number"]))

    def start(self, *workers):
        for worker in workers:
            self.workers[worker] = SimpleNamespace(status=Status.running)
            self.stream_comms[worker] = SimpleNamespace(interval=None)
            self.stream_handlers[FIT](worker=worker)

    def submit(self, *numbers):
        for number in numbers:
            self.streams.submit(Chunk(number, np.zeros((1, 1)), np.zeros(1, np.int32)))

    def result(self, worker, number):
        self.stream_handlers[RESULT](worker=worker, number=number, end=Serialized(*serialize((worker, "none"))))

    def chunks(self):
        """Which worker was sent which chunk since this was last asked."""
        messages, self.messages = self.messages, []
        return [(worker, number) for worker, op, number in messages if op == CHUNK]


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(streams, "WAITS", -1.0)
    return Cluster()


def test_every_worker_has_one_chunk_at_work_and_one_that_waits_and_the_others_come_later(cluster):
    cluster.submit(1)
    cluster.start("a", "b")
    cluster.submit(2, 3, 4, 5)
    assert cluster.chunks() == [("a", 1), ("b", 2), ("a", 3), ("b", 4)]
    assert cluster.streams.chunks_of_workers() == {"a": [1, 3], "b": [2, 4]}
    cluster.result("b", 2)
    assert cluster.ends.get_nowait() == (2, ("b", "none"))
    assert cluster.chunks() == [("b", 5)]


def test_a_chunk_behind_a_long_one_goes_to_a_worker_that_has_nothing_to_do(cluster):
    cluster.start("a", "b")
    cluster.submit(1, 2, 3)
    cluster.streams.tend()
    assert cluster.chunks() == [("a", 1), ("b", 2), ("a", 3)]  # b is at work
    cluster.result("b", 2)
    cluster.streams.tend()
    assert cluster.messages == [("a", RETURN, 3)]
    cluster.stream_handlers[RETURNED](worker="a", number=3)
    assert cluster.chunks() == [("b", 3)]
    assert cluster.streams.chunks_of_workers() == {"a": [1], "b": [3]}


def test_chunks_of_a_worker_that_is_gone_are_reported_and_it_gets_no_more(cluster):
    cluster.start("a", "b")
    cluster.submit(1, 2, 3)
    del cluster.workers["a"]
    cluster.plugin.remove_worker(cluster, "a", stimulus_id="s")
    assert [cluster.ends.get_nowait() for _ in range(2)] == [(1, WorkerEnd("a")), (3, WorkerEnd("a"))]
    cluster.submit(4, 5)
    assert cluster.chunks()[3:] == [("b", 4)]


def test_results_that_cannot_be_read_end_their_chunk_with_the_error(cluster):
    cluster.start("a")
    cluster.submit(1)
    header, frames = serialize(("a", "none"))
    cluster.stream_handlers[RESULT](worker="a", number=1, end=Serialized(header, [b"cut" for _ in frames]))
    number, error = cluster.ends.get_nowait()
    assert number == 1
    assert isinstance(error, Exception)


def test_a_worker_without_memory_gets_no_chunk_until_it_has_some(cluster):
    cluster.start("a")
    cluster.workers["a"].status = Status.paused
    cluster.submit(1)
    assert cluster.chunks() == []
    cluster.workers["a"].status = Status.running
    cluster.streams.tend()
    assert cluster.chunks() == [("a", 1)]


def test_a_chunk_that_is_withdrawn_is_not_sent_any_more(cluster):
    cluster.submit(1, 2)
    cluster.streams.withdraw([1])
    cluster.start("a")
    assert cluster.chunks() == [("a", 2)]


class Worker:
    """A worker of Dask whose loop and thread of evaluations are turned by hand."""

    def __init__(self):
        self.stream_handlers = {}
        self.buffer, self.flushed, self.later, self.running, self.handed = [], [], [], [], []
        self.batched_stream = SimpleNamespace(send=self.buffer.append, buffer=self.buffer)
        self.loop = SimpleNamespace(
            add_callback=lambda call, *arguments: call(*arguments), call_later=lambda _, call: self.later.append(call)
        )
        self.executor = SimpleNamespace(submit=lambda call, *arguments: self.running.append((call, arguments)))
        self.chunks = ChunkQueue(self, str.upper, self.handed.append)

    def take(self, number, chunk):
        self.stream_handlers[CHUNK](number=number, chunk=chunk)

    def flush(self):
        """Messages leave."""
        self.flushed += [(message["op"], message.get("number")) for message in self.buffer]
        self.buffer.clear()
        while self.later:
            self.later.pop()()

    def work(self):
        """The chunk that is at work is done."""
        (call, arguments), self.running = self.running[0], self.running[1:]
        call(*arguments)


def test_a_worker_does_one_chunk_after_the_other_and_gives_back_only_what_it_has_not_begun():
    worker = Worker()
    worker.chunks.open()
    worker.flush()
    for number, chunk in ((1, "one"), (2, "two"), (3, "three")):
        worker.take(number, chunk)
    worker.stream_handlers[RETURN](number=1)  # at work
    worker.stream_handlers[RETURN](number=2)
    assert len(worker.running) == 1
    worker.work()
    worker.flush()
    worker.work()
    worker.flush()
    assert worker.flushed == [(FIT, None), (RETURNED, 2), (RESULT, 1), (RESULT, 3)]
    assert worker.handed == [1, 3]
    assert not worker.running


def test_no_chunk_begins_before_the_results_of_the_last_one_have_left_the_process():
    worker = Worker()
    worker.take(1, "one")
    worker.take(2, "two")
    worker.work()
    assert not worker.running
    worker.flush()
    assert worker.flushed == [(RESULT, 1)]
    assert len(worker.running) == 1
