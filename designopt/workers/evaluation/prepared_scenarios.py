"""Prepared scenario data of a model: kept on a worker within a memory limit, else prepared again."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from designopt.canonical_form import canonical_json, plain
from designopt.study.study import Scenario

#: Maximum bytes kept on a worker; the last used one is kept in any case.
ROOM = 512 * 2**20


class PreparedScenarios:
    """Results of a model's ``prepare(conditions)`` for `scenarios`; equal conditions share one."""

    def __init__(
        self, prepare: Callable[[Mapping[str, Any]], Any], scenarios: Sequence[Scenario], room: int = ROOM
    ) -> None:
        self._prepare = prepare
        self._scenarios = scenarios
        self._room = room
        self._keys: dict[int, str] = {}
        self._objects: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._size = 0

    def for_scenario(self, scenario: int) -> Any:
        """The prepared data of a scenario. Raises the model's exceptions."""
        conditions = self._scenarios[scenario].values
        if scenario not in self._keys:
            self._keys[scenario] = canonical_json(plain(conditions))
        key = self._keys[scenario]
        if key not in self._objects:
            value = self._prepare(conditions)
            size = size_of(value)
            self._size += size
            self._objects[key] = value, size
            while self._size > self._room and len(self._objects) > 1:
                self._size -= self._objects.popitem(last=False)[1][1]
        self._objects.move_to_end(key)
        return self._objects[key][0]


def size_of(value: Any) -> int:
    """Approximate memory of a value in bytes: arrays, texts, containers and the attributes of objects."""
    object_ids: set[int] = set()
    waiting, total = [value], 0
    while waiting:
        item = waiting.pop()
        if id(item) in object_ids:
            continue
        object_ids.add(id(item))
        total += item.nbytes if isinstance(item, np.ndarray) else sys.getsizeof(item, 64)
        if isinstance(item, Mapping):
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting.extend(item)
        elif not isinstance(item, (type, np.ndarray)):
            waiting.extend(getattr(item, "__dict__", {}).values())
            slots = getattr(type(item), "__slots__", ())
            waiting.extend(getattr(item, name) for name in slots if isinstance(name, str) and hasattr(item, name))
    return total
