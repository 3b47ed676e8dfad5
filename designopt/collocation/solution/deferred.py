"""What is computed when it is first asked for: most of a solution's multipliers are never looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

Value = TypeVar("Value")


class Deferred(Mapping[str, Value]):
    """A mapping whose entries are computed together, by `compute`, when one of them is asked for."""

    def __init__(self, compute: Callable[[], Mapping[str, Value]]) -> None:
        self._compute: Callable[[], Mapping[str, Value]] | None = compute
        self._known: Mapping[str, Value] = {}

    def _all(self) -> Mapping[str, Value]:
        if self._compute is not None:
            with np.errstate(all="ignore"):  # the last iterate of a failed solve may hold anything
                self._known = self._compute()
            self._compute = None
        return self._known

    def __getitem__(self, name: str) -> Value:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(dict(self._all()))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self._all()),)
