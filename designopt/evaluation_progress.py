"""What a model reports within an evaluation: progress, shown by the run, and remarks, shown where designs are tried."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

_listener: Callable[[float, str], None] | None = None
_steps: list[str] = []
_remarks: list[str] | None = None


def progress(share: float | None, text: str = "") -> None:
    """Report that the share `share` (0 to 1; None if unknown) of the current evaluation is done; `text` names the
    current step.

    A model may call this as often as needed, in any executor; a call takes about a microsecond. The progress line of
    the run and ``designopt show STORE --follow`` show both. They are not part of the result. A share outside 0 to 1 is
    clipped; NaN is ignored.
    """
    if _listener is None or (share is not None and math.isnan(share)):
        return
    known_share = math.nan if share is None else min(1.0, max(0.0, float(share)))
    _listener(known_share, ", ".join(filter(None, [*_steps, str(text)])))


def remark(text: str) -> None:
    """Report how the outputs of the current evaluation were obtained: ``designopt validate --try`` shows it."""
    if _remarks is not None:
        _remarks.append(text)


@contextlib.contextmanager
def remarks() -> Iterator[list[str]]:
    """The remarks of evaluations inside this context."""
    global _remarks
    before, _remarks = _remarks, []
    try:
        yield _remarks
    finally:
        _remarks = before


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Report a step of the evaluation; inside this context `text` precedes the texts of `progress`."""
    _steps.append(text)
    try:
        progress(None)
        yield
    finally:
        _steps.pop()


@contextlib.contextmanager
def listened_by(listener: Callable[[float, str], None]) -> Iterator[None]:
    """Call `listener` with the progress that evaluations report inside this context: the share, NaN if unknown, and the
    text."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before
