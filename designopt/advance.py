"""How far a long evaluation is: a model tells it, and whoever runs it shows it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

_listener: Callable[[float, str], None] | None = None


def progress(share: float, text: str = "") -> None:
    """Tell from within an evaluation that `share` (0 to 1) of it is done, and in a few words (`text`) what it is at.

    A model may call this as often as it likes, from any executor; a call takes about a microsecond. The progress line
    of the run and ``designopt show STORE --follow`` show it. It is no part of the result. A share outside of 0 to 1 is
    taken as the nearer of the two, and one that is NaN as nothing said.
    """
    if _listener is not None and not math.isnan(share):
        _listener(min(1.0, max(0.0, float(share))), str(text))


@contextlib.contextmanager
def listened_by(listener: Callable[[float, str], None]) -> Iterator[None]:
    """What evaluations tell meanwhile goes to `listener`."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before
