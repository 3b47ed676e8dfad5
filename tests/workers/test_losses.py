"""Evaluations whose worker died: which are to blame, and which go again."""

import numpy as np
import pytest
from run_cases import listed, make_study

from designopt.run.runner import run_study
from designopt.workers.evaluation.evaluate import Evaluator
from designopt.workers.evaluation.serial import Serial
from designopt.workers.executor import Completion, Loss
from designopt.workers.supervision.death import CRASHED, ENDED, IDLE, LOST, PREPARING, Death


def ended(monkeypatch, tmp_path, losses):
    """The status of a design whose chunk is lost so often; what `losses` says of each, from whether it was alone."""
    given = iter(losses)

    class Dying(Serial):
        def wait(self, timeout):
            chunk = self._waiting[0]
            loss = next(given, None) if chunk.X[0, 0] == 0.5 else None
            if loss is None:
                return super().wait(timeout)
            assert self._waiting.popleft().alone == loss[0]
            return [Completion(chunk, "w", loss[1])]

    monkeypatch.setattr(
        "designopt.run.runner.executor_for",
        lambda study, problem, *_, **__: lambda _: Dying(lambda: Evaluator.of(problem, None)),
    )
    study = make_study(names=("a",), stages=(listed(np.array([0.25, 0.5, 0.75]), batch=1),))
    result = run_study(study, tmp_path / "s")
    assert result.status[[0, 2], 0].tolist() == ["ok", "ok"]
    return result.status[1, 0]


DIED, LATER, KILLED = Loss(CRASHED, "died"), Loss(CRASHED, "died", later=True), Loss(LOST, "killed", suspect=0)


@pytest.mark.parametrize(
    ("losses", "status"),
    [
        ([(False, DIED)], "ok"),
        ([(False, DIED), (True, DIED)], "crashed"),
        ([(False, DIED), (True, LATER)], "ok"),  # another one has ended the process
        ([(False, DIED), (True, LATER), (False, LATER)], "ok"),
        ([(False, DIED), *[(True, LATER), (False, LATER)] * 2, (True, LATER)], "lost_worker"),  # there is an end
        ([(False, KILLED), (False, KILLED)], "ok"),
        ([(False, KILLED), (False, KILLED), (False, KILLED)], "ok"),
        ([(False, KILLED), (False, KILLED), (False, KILLED), (True, KILLED)], "crashed"),
    ],
)
def test_an_evaluation_goes_again_until_it_has_been_seen_to_end_its_worker(monkeypatch, tmp_path, losses, status):
    assert ended(monkeypatch, tmp_path, losses) == status


@pytest.mark.parametrize(
    ("chunk", "position", "later"), [(8, 0, True), (8, PREPARING, False), (8, ENDED, False), (IDLE, PREPARING, False)]
)
def test_a_worker_that_dies_in_an_evaluation_of_a_later_chunk_says_so(chunk, position, later):
    death = Death("tls://w", chunk, position, before=7, exit_code=7)
    assert death.loss(7, None).later is later
