"""What a scenario needs once is prepared once, within a bound of memory."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import numpy as np
import pytest

from designopt.plugin import Diverged, PluginError, Quantity, Use, model
from designopt.problem import Problem
from designopt.space import Space
from designopt.study.study import Scenario
from designopt.workers.evaluation.evaluate import Evaluator
from designopt.workers.evaluation.prepared_scenarios import PreparedScenarios, size_of
from designopt.workers.executor import Chunk

CALLS: list[float] = []


class Out(TypedDict):
    y: Annotated[float, Quantity("", "sum")]


@model("prepares", version=1)
class Prepares:
    """Adds what was prepared."""

    def prepare_scenario(self, conditions: Any) -> np.ndarray:
        CALLS.append(conditions["a"])
        if conditions["a"] < 0.0:
            raise Diverged("nothing was recorded", reason="empty")
        return np.full(10, conditions["a"])

    def evaluate(self, design: Any, scenario: Any, prepared: np.ndarray) -> Out:
        return {"y": float(prepared.sum())}

    def gradient(self, design: Any, scenario: Any, prepared: np.ndarray) -> Any:
        return {"y": {}}


def scenarios(*values: float) -> tuple[Scenario, ...]:
    return tuple(Scenario(f"s{i}", {"a": a}) for i, a in enumerate(values))


def run(*values: float) -> Any:
    """Each scenario three times, in turn."""
    CALLS.clear()
    evaluator = Evaluator.build(
        Problem(Use(Prepares.__designopt__, {}), Space(()), scenarios(*values), objectives=(), gradients=True)
    )
    order = np.tile(np.arange(len(values), dtype=np.int32), 3)
    return evaluator.run(Chunk(1, np.empty((len(order), 0)), order))


def test_a_scenario_is_prepared_once_for_all_designs() -> None:
    result = run(1.0, 2.0)
    assert CALLS == [1.0, 2.0]
    np.testing.assert_array_equal(result.values[:, 0], [10.0, 20.0] * 3)


def test_scenarios_with_equal_conditions_share_what_is_prepared() -> None:
    run(1.0, 1.0)
    assert CALLS == [1.0]


def test_exceptions_of_the_preparation_are_the_result_of_the_evaluation() -> None:
    result = run(1.0, -1.0)
    assert result.messages[1] == ("empty", "nothing was recorded", "")
    assert np.isnan(result.values[1, 0])
    assert result.values[2, 0] == 10.0


def test_the_oldest_goes_when_there_is_no_room() -> None:
    calls: list[float] = []

    def prepare(conditions: Any) -> np.ndarray:
        calls.append(conditions["a"])
        return np.zeros(1000)

    prepared = PreparedScenarios(prepare, scenarios(1.0, 2.0, 3.0), room=20_000)
    for s in (0, 1, 0, 2, 0, 1):  # two fit: when the third comes, the one that was not used for longest goes
        prepared.for_scenario(s)
    assert calls == [1.0, 2.0, 3.0, 2.0]


def test_one_that_is_larger_than_the_room_is_kept_until_the_next_comes() -> None:
    prepared = PreparedScenarios(lambda conditions: np.zeros(1000), scenarios(1.0, 2.0), room=10)
    assert prepared.for_scenario(0) is prepared.for_scenario(0)
    first = prepared.for_scenario(0)
    prepared.for_scenario(1)
    assert prepared.for_scenario(0) is not first


def test_the_size_of_a_value_counts_its_arrays_wherever_they_are() -> None:
    class Held:
        def __init__(self) -> None:
            self.inner = {"a": [np.zeros(1000)], "b": (np.zeros(500),)}

    assert 12_000 <= size_of(Held()) <= 13_000
    shared = np.zeros(1000)
    assert size_of([shared, shared]) < 9_000


def test_a_class_that_prepares_scenarios_takes_what_it_prepared() -> None:
    class Forgets:
        def prepare_scenario(self, conditions: Any) -> None:
            return None

        def evaluate(self, design: Any, scenario: Any) -> Out:
            return {"y": 0.0}

    with pytest.raises(PluginError, match="and the argument 'prepared' of evaluate"):
        model("forgets", version=1)(Forgets)
