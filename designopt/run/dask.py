"""The executor ``dask``: a local cluster of worker processes, or a scheduler that runs already."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import multiprocessing.spawn
import os
import queue
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Client, KilledWorker, LocalCluster

from designopt.plugin import PluginError
from designopt.run import dask_worker
from designopt.run.dask_worker import DeliveredProblem, ExitCodes
from designopt.run.delivery import Delivery
from designopt.run.errors import WorkersError, resume_command
from designopt.run.executor import Chunk, Completion, Loss
from designopt.run.watch import SLACK, Death
from designopt.study.study import Execution

#: Seconds to wait for the successor of a dead worker to tell how it died.
REPORT_WAIT = 10.0
#: So many workers (at least) may die without an evaluation, one after the other, before the run is ended.
BARREN_LIMIT = 3
#: Seconds within which a scheduler must answer.
CONNECT_WAIT = 10
#: Seconds within which a finished result must be fetched.
RESULT_WAIT = 15.0
#: Seconds within which the nanny of a worker that it ends must have started another one.
RESTART_WAIT = 30
#: Seconds beyond all limits after which a worker that has not ended itself is ended through its nanny. They are many
#: because a worker may be preparing the model, which has no limit; evaluations that hang are ended long before.
PATIENCE = 60.0
#: Seconds without any worker after which a run on local workers gives up.
UNMANNED = 60.0

_CONFIG = {
    "distributed.scheduler.worker-ttl": None,  # a model may hold the interpreter's lock for long
    "distributed.worker.profile.enabled": False,
    "distributed.worker.use-file-locking": False,
}
#: Dask forgets a local worker for good that is not up again so long after its death. One that dies often is not up at
#: that moment by chance, and a cluster without workers has no room for work.
_KEEP_WORKERS = {"distributed.deploy.lost-worker-timeout": "100000 h"}


def connect(delivery: Delivery, execution: Execution, path: Path, *, insecure: bool) -> Dask:
    """Start local workers, or connect to the scheduler that `execution` names; `path` is the run's store.

    Raises `WorkersError`: out of reach, not encrypted, no workers, several threads, other versions, without the model.
    """
    run = uuid.uuid4().hex[:12]
    if execution.scheduler == "local":
        return Dask(run, delivery, path, _Local(execution.workers or os.cpu_count() or 1))
    return Dask(run, delivery, path, _Existing(execution.scheduler, path, insecure=insecure))


class _Local:
    """Workers of this run alone, one thread each, that end with this process."""

    local = True

    def __init__(self, workers: int) -> None:
        self._environment = dict(os.environ)
        self._exits = contextlib.ExitStack()
        self._exits.enter_context(_without_main_module())
        self._exits.enter_context(_silent("distributed"))
        self._exits.enter_context(dask.config.set(_KEEP_WORKERS))
        try:
            self.cluster = self._start(workers)
        except RuntimeError:  # a worker was killed before it was up
            self.cluster = self._start(workers)
        self.client: Any = Client(self.cluster, set_as_default=False)  # type: ignore[no-untyped-call]

    @staticmethod
    def _start(workers: int) -> Any:
        with dask.config.set(_CONFIG):
            return LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL + 1,
                scheduler_kwargs={"allowed_failures": 0, "dashboard": False, "dashboard_address": "127.0.0.1:0"},
            )

    def close(self) -> None:
        """End the workers."""
        self.client.close()
        self.cluster.close(timeout=10)
        self._exits.close()
        for name in os.environ.keys() - self._environment.keys():  # Dask sets the thread limits of its children here
            del os.environ[name]
        os.environ.update(self._environment)


class _Existing:
    """Workers of a scheduler that runs already."""

    local = False

    def __init__(self, address: str, path: Path, *, insecure: bool) -> None:
        self._silence = _silent("distributed")
        self._silence.__enter__()
        self.client: Any
        file = address.removeprefix("file:").strip()
        is_file = file != address or file.endswith(".json")
        try:
            if is_file:
                address = str(json.loads(Path(file).read_text())["address"])
            _refuse_open(address, path, insecure=insecure)
            self.client = Client(address, set_as_default=False, timeout=CONNECT_WAIT)  # type: ignore[no-untyped-call]
        except (OSError, TimeoutError, ValueError, KeyError, TypeError, RecursionError) as error:
            self._silence.__exit__(None, None, None)
            raise WorkersError(f"scheduler {address} cannot be reached: {error}; is it running?", path) from error
        try:
            workers = self.client.scheduler_info(n_workers=-1)["workers"]
            if not workers:
                raise WorkersError(f"scheduler {address} has no workers; start some with: dask worker {address}", path)
            threads = {w["nthreads"] for w in workers.values()}
            if threads != {1}:
                raise WorkersError(
                    f"scheduler {address}: workers have {max(threads)} threads, models need one to themselves; "
                    f"start them with: dask worker {address} --nthreads 1 --nworkers {max(threads)}",
                    path,
                )
            self._allowed_failures = self.client.run_on_scheduler(_allow_failures, count=0)
        except BaseException:
            self.client.close()
            self._silence.__exit__(None, None, None)
            raise

    def close(self) -> None:
        """Leave the cluster as it was found."""
        with contextlib.suppress(OSError, TimeoutError):
            self.client.run_on_scheduler(_allow_failures, count=self._allowed_failures)
        self.client.close()
        self._silence.__exit__(None, None, None)


def _allow_failures(count: int, dask_scheduler: Any) -> int:
    """With 0 the scheduler reports a lost worker at once; it is the runner who decides what is sent again."""
    before = int(dask_scheduler.allowed_failures)
    dask_scheduler.allowed_failures = count
    return before


def _refuse_open(address: str, path: Path, *, insecure: bool) -> None:
    """Dask's messages are pickles: whoever reaches the scheduler can run anything."""
    parts = urlsplit(address)
    if parts.scheme in ("tls", "wss") and dask.config.get("distributed.comm.tls.ca-file", None) is None:
        raise WorkersError(
            f"scheduler {address} needs certificates: set distributed.comm.tls (ca-file, client.cert, client.key) in"
            " Dask's configuration",
            path,
        )
    if insecure or parts.scheme in ("tls", "wss", "inproc"):
        return
    host = parts.hostname or ""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == socket.gethostname() and socket.gethostbyname(host).startswith("127.")
    if not loopback:
        raise WorkersError(
            f"scheduler {address} is on another host and not encrypted: anybody there could run code here; "
            "use tls:// with certificates, or allow it with --insecure",
            path,
        )


class Dask:
    """Runs chunks on Dask workers. See `designopt.run.executor.Executor`."""

    name = "dask"
    target = 0.3

    def __init__(self, run: str, delivery: Delivery, path: Path, cluster: _Local | _Existing) -> None:
        self._run = run
        self._path = path
        self._cluster = cluster
        self._client = cluster.client
        self._limit = delivery.timeout
        self._futures: dict[int, tuple[Any, Chunk]] = {}
        self._done: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._limbo: dict[int, tuple[Chunk, str, float]] = {}
        self._deaths: dict[str, Death] = {}
        self._reports: queue.SimpleQueue[Death] = queue.SimpleQueue()
        self._notices: list[tuple[str, str]] = []
        self._progressed = time.monotonic()
        self._counted = (0.0, 0)
        self._manned = time.monotonic()
        self._barren = 0
        try:
            self._deliver(delivery)
        except BaseException:
            self.close()
            raise

    def _deliver(self, delivery: Delivery) -> None:
        self._client.register_plugin(ExitCodes(self._run))
        self._plugin = DeliveredProblem(self._run, delivery, local=self._cluster.local)
        self._client.subscribe_topic(self._plugin.name, self._hear)
        answers = self._client.register_plugin(self._plugin)
        for worker, answer in (answers or {}).items():
            if answer.get("status") == "error":
                raise WorkersError(f"worker {worker} cannot take the problem: {answer.get('exception')}", self._path)
        if self._cluster.local:
            return
        for worker, problem in self._client.run(dask_worker.check, self._run).items():
            if problem:
                raise WorkersError(f"worker {worker}: {problem}", self._path)
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        if self._limit is not None and any(not w.get("nanny") for w in workers):
            text = "some workers have no nanny: an evaluation that hangs there cannot be ended, the time-out is void"
            self._notices.append(("no_nanny", text))

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Called by Dask's own thread: a worker tells how its predecessor died."""
        names = Death.__dataclass_fields__  # Dask adds who sent the message
        self._reports.put(Death(**{name: event[1][name] for name in names}))

    # ----------------------------------------------------------------------------------------------- interface

    @property
    def workers(self) -> int:
        """How many workers there are now; asked for once a second."""
        return max(1, self._count_workers())

    def _count_workers(self) -> int:
        now = time.monotonic()
        if now - self._counted[0] > 1.0:
            count = len(self._client.scheduler_info(n_workers=-1)["workers"])
            self._counted = (now, count)
            if count:
                self._manned = now
        return self._counted[1]

    @property
    def slots(self) -> int:
        """Two chunks for each worker: one at work, one waiting."""
        return 2 * max(1, self._most_workers())  # without any the run would end before its work is done

    def _most_workers(self) -> int:
        return len(self._cluster.cluster.workers) if isinstance(self._cluster, _Local) else self.workers

    def submit(self, chunk: Chunk) -> None:
        """Send a chunk."""
        if not self._futures:
            self._progressed = time.monotonic()
        future = self._client.submit(
            dask_worker.run_chunk, self._run, chunk, key=f"designopt-{self._run}-{chunk.number}", pure=False
        )
        self._futures[chunk.number] = (future, chunk)
        future.add_done_callback(lambda _: self._done.put(chunk.number))

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Chunks that have ended."""
        completions = list(self._settle())
        if completions:
            return completions
        with contextlib.suppress(queue.Empty):
            completions += self._collect(self._done.get(timeout=min(timeout, 0.05) if self._limbo else timeout))
            while True:
                completions += self._collect(self._done.get_nowait())
        completions += self._settle()
        if completions:
            self._progressed = time.monotonic()
        else:
            self._look_for_workers()
            if self._limit is not None:
                self._end_stuck_workers(self._limit)
        return completions

    def _look_for_workers(self) -> None:
        """End a run whose local workers are gone for good; those of somebody else's scheduler may still come back."""
        if self._count_workers() or time.monotonic() - self._manned < UNMANNED:
            return
        if self._cluster.local:
            again = f"continue with: {resume_command(self._path)}"
            raise WorkersError(f"no worker could be started for {UNMANNED:.0f} s; {again}", self._path)
        self._manned = time.monotonic()
        self._notices.append(("no_workers", "the scheduler has no workers; waiting for some"))

    def notices(self) -> Sequence[tuple[str, str]]:
        """What the user should know, once."""
        notices, self._notices = self._notices, []
        return notices

    def cancel(self) -> None:
        """Forget what is in flight."""
        self._client.cancel([future for future, _ in self._futures.values()], force=True)
        self._futures.clear()
        self._limbo.clear()

    def close(self) -> None:
        """End or leave the workers."""
        with contextlib.suppress(OSError, TimeoutError, KeyError, ValueError, RuntimeError):
            self._client.unsubscribe_topic(f"designopt-{self._run}")
            if not self._cluster.local:
                self._client.unregister_worker_plugin(f"designopt-{self._run}")
                self._client.unregister_worker_plugin(f"designopt-exit-codes-{self._run}", nanny=True)
        self._cluster.close()

    # ------------------------------------------------------------------------------------------------ endings

    def _collect(self, number: int) -> list[Completion]:
        """What has become of a chunk that Dask calls ended."""
        if number not in self._futures:
            return []
        future, chunk = self._futures[number]
        try:
            worker, result = future.result(timeout=RESULT_WAIT)
        except KilledWorker as error:
            del self._futures[number]
            self._limbo[number] = (chunk, error.last_worker.address, time.monotonic() + REPORT_WAIT)
            return []
        except TimeoutError:  # its worker died, and Dask computes it again; or it holds the result and does not answer
            if self._limit is not None and future.status == "finished":
                holders = [w for held in self._client.who_has([future]).values() for w in held]
                self._restart(self._supervised(holders))
            future.add_done_callback(lambda _: self._done.put(number))
            return []
        except Exception as error:  # whatever a worker or Dask itself raised outside of the evaluations
            again = f"continue with: {resume_command(self._path)}"
            if self._client.status != "running":
                raise WorkersError(f"the connection to the scheduler is lost; {again}", self._path) from error
            if not future.cancelled() and not isinstance(error, OSError):
                raise WorkersError(f"a worker failed outside of the model: {error!r}; {again}", self._path) from error
            del self._futures[number]
            return [Completion(chunk, "?", Loss("lost_worker", "the task was cancelled"))]
        del self._futures[number]
        self._barren = 0
        if isinstance(result, str):
            raise WorkersError(f"worker {worker}: {result}", self._path)
        return [Completion(chunk, worker, result)]

    def _settle(self) -> Iterator[Completion]:
        """Chunks of dead workers of which is known, by now, how they ended."""
        with contextlib.suppress(queue.Empty):
            while True:
                report = self._reports.get_nowait()
                self._deaths[report.address] = report
                self._barren += report.blameless
                if self._barren > max(BARREN_LIMIT, 2 * self.workers):
                    raise PluginError(f"workers die while they prepare the model: the last one {report.how}")
        for number, (chunk, address, deadline) in list(self._limbo.items()):
            death = self._deaths.get(address)
            if death is None and time.monotonic() < deadline:
                continue
            del self._limbo[number]
            loss = death.loss(number, self._limit) if death else Loss("lost_worker", "the worker vanished")
            yield Completion(chunk, address, loss)

    def _end_stuck_workers(self, limit: float) -> None:
        """The last resort: a worker that neither answers nor ends itself is restarted by its nanny."""
        if not self._futures or self._limbo:
            return
        longest = max(len(chunk) for _, chunk in self._futures.values())
        if time.monotonic() - self._progressed < SLACK * limit * longest + PATIENCE:
            return
        self._progressed = time.monotonic()
        ours = {f"designopt-{self._run}-{number}": number for number in self._futures}
        processing = self._client.processing().items()
        held = {worker: [ours[str(key)] for key in keys if str(key) in ours] for worker, keys in processing}
        stuck = self._supervised([worker for worker, numbers in held.items() if numbers])
        deadline = time.monotonic() + RESTART_WAIT + REPORT_WAIT
        for worker in stuck:
            for number in held[worker]:
                future, chunk = self._futures.pop(number)
                future.cancel(force=True)
                self._limbo[number] = (chunk, worker, deadline)
        self._restart(stuck)

    def _supervised(self, workers: list[str]) -> list[str]:
        """Those of `workers` that have a nanny, which alone can restart them."""
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        return [worker for worker in workers if known.get(worker, {}).get("nanny")]

    def _restart(self, workers: list[str]) -> None:
        if workers:
            text = f"worker {', '.join(workers)} does not answer; it is restarted"
            self._notices.append(("worker_restarted", text))
            self._client.restart_workers(workers, timeout=RESTART_WAIT, raise_for_error=False)


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
    """Worker processes start without running the user's script again.

    Python's ``spawn`` imports the main module into each child. Workers have no use for it, and a script that calls
    `run` without a guard would start workers of its own in each of them.
    """
    original = multiprocessing.spawn.get_preparation_data

    def prepare(name: str) -> dict[str, Any]:
        data: dict[str, Any] = original(name)
        if name.startswith("Dask Worker process"):
            data.pop("init_main_from_name", None)
            data.pop("init_main_from_path", None)
        return data

    multiprocessing.spawn.get_preparation_data = prepare
    try:
        yield
    finally:
        multiprocessing.spawn.get_preparation_data = original


@contextlib.contextmanager
def _silent(name: str) -> Iterator[None]:
    loggers = [logging.getLogger(name), logging.getLogger(f"{name}.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
