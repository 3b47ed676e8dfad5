"""How many evaluations make a chunk."""

import pytest

from designopt.run.evaluations.work import LARGEST_CHUNK, ChunkSize


def learned(seconds, together=1):
    size = ChunkSize(together)
    size.learn(seconds, 1)
    return size


@pytest.mark.parametrize(
    ("seconds", "shortest", "size"),
    [
        (1e-5, 0.003, 100),  # one millisecond in all is not worth two messages
        (1e-4, 0.003, 30),
        (1e-3, 0.003, 13),  # two workers with two chunks each, and as much again for their ends
        (1e-3, 0.03, 30),
        (1.0, 0.003, 1),
    ],
)
def test_chunks_of_a_generation_take_longer_than_their_transport(seconds, shortest, size):
    assert min(learned(seconds).choose(0.3, shortest, 100, 4, 100), 100) == size


def test_a_long_queue_is_cut_into_chunks_of_the_target_time():
    assert learned(1e-3).choose(0.3, 0.003, 100_000, 4, 100_000) == 300
    assert learned(1e-6).choose(0.3, 0.003, 10**6, 4, 10**6) == LARGEST_CHUNK


def test_chunks_of_a_model_that_computes_several_together_are_multiples_of_them():
    assert learned(1e-2, together=8).choose(0.3, 0.003, 10_000, 4, 10_000) % 8 == 0


def test_a_call_for_several_evaluations_stays_below_their_time_limit_and_within_ten_seconds():
    assert ChunkSize(64).choose(0.3, 0.003, 10_000, 4, 10_000) == 1  # the first tells how long one takes
    assert learned(0.01, together=64).choose(0.3, 0.003, 10_000, 4, 10_000) >= 64
    assert learned(1.0, together=64).choose(0.3, 0.003, 10_000, 4, 10_000) <= 10
    assert learned(60.0, together=64).choose(0.3, 0.003, 10_000, 4, 10_000) == 1
    size = ChunkSize(64, limit=4.0)
    size.learn(0.1, 1)
    assert size.choose(0.3, 0.003, 10_000, 4, 10_000) <= 10
