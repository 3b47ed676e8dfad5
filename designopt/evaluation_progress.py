"""Progress within a long evaluation, reported by the model and shown by the runner."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

_listener: Callable[[float, str], None] | None = None


def progress(share: float, text: str = "") -> None:
    """Report that the share `share` (0 to 1) of the current evaluation is done; `text` names the current step.

    A model may call this as often as needed, in any executor; a call takes about a microsecond. The progress line of
    the run and ``designopt show STORE --follow`` show the value. It is not part of the result. A share outside 0 to 1
    is clipped; NaN is ignored.
    """
    if _listener is not None and not math.isnan(share):
        _listener(min(1.0, max(0.0, float(share))), str(text))


@contextlib.contextmanager
def listened_by(listener: Callable[[float, str], None]) -> Iterator[None]:
    """Call `listener` with the progress that evaluations report inside this context."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before
