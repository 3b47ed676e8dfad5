"""Chunks as Dask tasks: for schedulers shared with other runs and users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from distributed import KilledWorker

from designopt.workers.carriers.carrier import Ends, WorkerEnd
from designopt.workers.executor import Chunk
from designopt.workers.remote import dask_worker


class Tasks:
    """Chunks of `run` through the scheduler of `client`; workers with the run's resource receive them."""

    shortest = 0.03

    def __init__(self, run: str, client: Any, ends: Ends) -> None:
        self._run = run
        self._client = client
        self._ends = ends
        self._futures: dict[int, Any] = {}

    def submit(self, chunk: Chunk) -> None:
        """Send a chunk."""
        future = self._client.submit(
            dask_worker.run_chunk,
            self._run,
            chunk,
            key=f"designopt-{self._run}-{chunk.number}",
            resources={f"designopt-{self._run}": 1},
            pure=False,
        )
        self._futures[chunk.number] = future
        self._client.loop.add_callback(self._follow, chunk.number, future)

    async def _follow(self, number: int, future: Any) -> None:
        """Deliver the end of a chunk, on Dask's own thread. Results of a dead or unresponsive worker are not awaited:
        Dask computes the chunk again, or it is withdrawn when the death is known."""
        end: Any
        try:
            end = await future
        except KilledWorker as error:
            end = WorkerEnd(error.last_worker.address)
        except Exception as error:
            end = error
        self._futures.pop(number, None)
        self._ends.put((number, end))

    def tend(self) -> None:
        """No effect: Dask manages its tasks."""

    def chunks_of_workers(self) -> dict[str, list[int]]:
        """The chunks of each worker: pending, or complete and not fetched."""
        futures = dict(self._futures)
        ours = {f"designopt-{self._run}-{number}": number for number in futures}
        locations = [(worker, key) for worker, keys in self._client.processing().items() for key in keys]
        results = [future for future in futures.values() if future.status == "finished"]
        locations += [(worker, key) for key, workers in self._client.who_has(results).items() for worker in workers]
        chunks: dict[str, list[int]] = {}
        for worker, key in locations:
            if str(key) in ours:
                chunks.setdefault(worker, []).append(ours[str(key)])
        return chunks

    def withdraw(self, numbers: Iterable[int]) -> None:
        """Cancel tasks: Dask would repeat those of a dead worker."""
        futures = [self._futures.pop(number, None) for number in numbers]
        self._client.cancel([future for future in futures if future is not None], force=True)
