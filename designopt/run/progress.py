"""Progress of a run: a live line on a terminal, a line per minute in a log, JSON objects for programs."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO

import numpy as np

from designopt.counts import of_number
from designopt.printable import printable
from designopt.store.disk.lock import at_work
from designopt.store.progress_note import Reported, running
from designopt.store.views.tolerances import enough_for
from designopt.study.study import StudyDefinition

if TYPE_CHECKING:
    from designopt.store.result import Result

#: Wait for the reader of a full pipe (ms).
PATIENCE = 100
#: Maximum number of events below the cell of a notebook.
EVENTS = 12

#: Kind of the event that gives the reason for a stop.
STOPPED = "stopped"

#: The steps after the stages, in their order.
TOLERANCES, VALIDATION = "tolerances", "validation"

Mode = Literal["auto", "line", "json", "none"]


@dataclass(frozen=True)
class Snapshot:
    """The state of a run: its stage, with its `number` among the `steps`.

    `completed` counts the stage's recorded designs, of `total` if available; `invalid` ones violate a relation and cost
    no budget. `evaluations` counts those of all sessions, `failures` those without a result. `rate` is in evaluations
    per second of this session, `elapsed` and `left` in seconds (None if unknown). `best` is the best feasible value of
    each objective by name. `running` are evaluations that report progress: the design's number, a share (None if
    unknown) and a text. `note` says what else is under way.
    """

    stage: str
    number: int
    steps: int
    completed: int
    total: int | None
    evaluations: int
    failures: int
    rate: float
    elapsed: float
    left: float | None
    best: Mapping[str, float] = field(default_factory=dict)
    invalid: int = 0
    running: tuple[Reported, ...] = ()
    note: str = ""


def steps(study: StudyDefinition) -> tuple[str, ...]:
    """The names of the steps of a run of `study`, as far as the study says so: neighbours within assumed tolerances
    depend on the number of designs, which only a budget in evaluations states."""
    additional_steps = [TOLERANCES] * _has_neighbours(study) + [VALIDATION] * (study.validate is not None)
    return (*(stage.name for stage in study.stages), *additional_steps)


def _has_neighbours(study: StudyDefinition) -> bool:
    tolerances, objectives = study.tolerances, len(study.objectives)
    if tolerances is None or not objectives:
        return False
    if tolerances.neighbours is not None:
        return tolerances.neighbours > 0
    designs = sum(stage.budget.evaluations or 0 for stage in study.stages)
    count = len(study.choose) + (objectives + 1 if objectives > 1 else 1)
    return not tolerances.assumed or designs >= enough_for(count)


def snapshot(result: Result, looks: Sequence[tuple[float, int]]) -> Snapshot:
    """The state of the run, as its own progress line shows it.

    `looks` are times and numbers of recorded evaluations, from which the rate is computed.
    """
    counts, outcomes, stages = result.counts, result.outcomes, result.study.stages
    started_stages = set(result.stage.tolist())
    number = max((k for k, stage in enumerate(stages) if stage.name in started_stages), default=0)
    stage = stages[number]
    in_stage = result.stage == stage.name
    total = stage.budget.evaluations
    complete_count = int((in_stage & ~outcomes.invalid).sum())
    (first, before), (last, newest) = looks[0], looks[-1]
    rate = (newest - before) / (last - first) if last > first else 0.0
    left = (
        max(0, total - complete_count) * len(result.problem.scenarios) / rate
        if total is not None and rate > 0.0
        else None
    )
    F = outcomes.objectives[outcomes.feasible]
    best = {o.name: o.sign * float(F[:, j].min()) for j, o in enumerate(result.problem.objectives) if len(F)}
    session = result.sessions[-1] if result.sessions else {}
    until = float(session.get("ended") or time.time())
    duration = max(0.0, until - float(session.get("started") or until))
    failures = sum(n for (status, _), n in result.failures().items() if status != "invalid")
    invalid, count = int(np.sum(in_stage & outcomes.invalid)), len(steps(result.study))
    return Snapshot(
        stage.name, number + 1, count, complete_count, total, counts["evaluations"], failures, rate, duration, left,
        best, invalid, running(result.path) if at_work(result.path) else (),
    )  # fmt: skip


class Progress(Protocol):
    """Receives states and events, from the run's own thread, about twice a second."""

    def update(self, snapshot: Snapshot) -> None:
        """The state has changed."""

    def event(self, kind: str, text: str) -> None:
        """A message for the user: a lost worker, a warning, the reason for the end of the run."""

    def close(self) -> None:
        """The run has ended."""


def progress(mode: Mode = "auto", stream: TextIO | None = None) -> Progress:
    """The progress display of `mode` on `stream` (default stderr); auto is a live line on a terminal, and a bar below
    the cell in a notebook.

    A closed or full stream ends the display, never the run.
    """
    stream = stream or sys.stderr
    if mode == "none" or stream is None:  # a process may have no stderr
        return SilentProgress()
    if mode == "auto" and in_notebook():
        return NotebookBar()
    if mode == "json":
        return JsonLines(stream)
    if mode == "auto" and stream.isatty():
        return LiveLine(stream)
    return PlainLines(stream)


def _say(text: str, stream: TextIO) -> None:
    """Print a line, or drop it if the reader does not keep up."""
    with contextlib.suppress(OSError, ValueError):
        if _has_room(stream):
            print(text, file=stream, flush=True)


def _has_room(stream: TextIO) -> bool:
    """Whether a line can be written without waiting for the reader of a pipe."""
    try:
        number = stream.fileno()
    except (AttributeError, OSError, ValueError):  # a text in memory
        return True
    if not stat.S_ISFIFO(os.fstat(number).st_mode) or not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    return bool(poll.poll(PATIENCE))


class SilentProgress:
    """No output."""

    def update(self, snapshot: Snapshot) -> None:
        """No effect."""

    def event(self, kind: str, text: str) -> None:
        """No effect."""

    def close(self) -> None:
        """No effect."""


class PlainLines:
    """One line a minute, one at the start and end of each stage, and one for each event."""

    def __init__(self, stream: TextIO, period: float = 60.0) -> None:
        self._stream = stream
        self._period = period
        self._next = 0.0
        self._last: Snapshot | None = None
        self._last_state = ""

    def update(self, snapshot: Snapshot) -> None:
        """Print a line if it is due."""
        time_now = time.monotonic()
        if self._last is not None and snapshot.stage != self._last.stage:
            self._write(self._last, last=True)
            self._next = 0.0
        self._last = snapshot
        if time_now >= self._next:
            self._next = time_now + self._period
            self._write(snapshot)

    def event(self, kind: str, text: str) -> None:
        """Print the event; the reason for a stop is the last line."""
        if kind != STOPPED:
            _say(printable(event_text(kind, text)), self._stream)

    def close(self) -> None:
        """Print the last state."""
        if self._last is not None:
            self._write(self._last, last=True)

    def _write(self, snapshot: Snapshot, *, last: bool = False) -> None:
        """A line; the last one of a stage only if there is progress since the line before."""
        state = line(replace(snapshot, rate=0.0, elapsed=0.0, left=None))
        if not (last and state == self._last_state):
            _say(printable(line(snapshot)), self._stream)
        self._last_state = state


class JsonLines(SilentProgress):
    """One JSON object per line: ``{"progress": ...}`` or ``{"event": ..., "text": ...}``."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def update(self, snapshot: Snapshot) -> None:
        """Print an object with the fields of `Snapshot`."""
        self._write({"progress": asdict(snapshot)})

    def event(self, kind: str, text: str) -> None:
        """Print an object with kind and text."""
        self._write({"event": kind, "text": text})

    def _write(self, data: Mapping[str, Any]) -> None:
        _say(json.dumps(data), self._stream)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


class NotebookBar(SilentProgress):
    """A bar below the cell of a notebook, updated in place; its last state and the events stay with the notebook."""

    def __init__(self) -> None:
        self._display = importlib.import_module("IPython.display").display
        self._handle: Any = None
        self._snapshot: Snapshot | None = None
        self._events: list[str] = []

    def update(self, snapshot: Snapshot) -> None:
        """Update the bar."""
        self._snapshot = snapshot
        self._show()

    def event(self, kind: str, text: str) -> None:
        """Add a line; the reason for a stop is in the error."""
        if kind != STOPPED:
            self._events.append(printable(event_text(kind, text)))
            self._show()

    def _show(self) -> None:
        html = "".join(f"<div>{escape(text)}</div>" for text in self._events[-EVENTS:])
        s = self._snapshot
        if s is not None:
            bar = f'<progress value="{s.completed}" max="{s.total}"></progress> ' if s.total else ""
            html += f"<div>{bar}{escape(printable(line(s)))}</div>"
        content = {"text/html": html, "text/plain": line(s) if s is not None else "\n".join(self._events[-EVENTS:])}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class LiveLine:
    """A line on a terminal that is updated in place."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        self._text = Text
        self._console = Console(file=stream)
        self._live = Live(console=self._console, refresh_per_second=4, transient=False)
        self._last: Snapshot | None = None

    def update(self, snapshot: Snapshot) -> None:
        """Update the line; a completed stage keeps its own."""
        if self._last is not None and snapshot.stage != self._last.stage:
            self._console.print(self._rendered(self._last))
        self._last = snapshot
        self._live.start()  # not before: a run rejected at its start must leave the terminal unchanged
        self._live.update(self._rendered(snapshot))

    def event(self, kind: str, text: str) -> None:
        """Print the event above the live line; the reason for a stop is the last line."""
        if kind != STOPPED:
            self._console.print(self._text(printable(event_text(kind, text)), style="yellow"))

    def close(self) -> None:
        """Keep the last state on the terminal."""
        self._live.stop()

    def _rendered(self, snapshot: Snapshot) -> Any:
        room = self._console.width - 1 - len(line(replace(snapshot, best={})))
        width = max(0, min(24, room // 4 * 4))  # the text precedes the bar; in steps, so that it does not flicker
        share = min(1.0, snapshot.completed / snapshot.total) if snapshot.total else 0.0
        text = self._text(no_wrap=True, overflow="ellipsis")
        text.append("━" * round(width * share), style="green")
        text.append("━" * (width - round(width * share)), style="bright_black")
        text.append(" " + printable(line(snapshot)))
        return text


def event_text(kind: str, text: str) -> str:
    """An event as a line; a heading is added unless the text names the stage or the kind."""
    words = kind.replace("_", " ")
    return text if text.startswith((words, "stage ")) else f"{words}: {text}"


def line(snapshot: Snapshot) -> str:
    """The state as one line of text; the best values, which a narrow terminal may cut off, are at the end."""
    parts = [
        f"{snapshot.stage} ({snapshot.number}/{snapshot.steps}): {snapshot.completed}"
        + (f"/{snapshot.total}" if snapshot.total else "")
    ]
    parts[0] += f" {of_number(snapshot.total or snapshot.completed, 'design')}"
    if snapshot.invalid:
        parts[0] += f" ({snapshot.invalid} invalid)"
    if snapshot.rate > 0.0:
        parts.append(f"{snapshot.rate:.0f}/s" if snapshot.rate >= 100.0 else f"{snapshot.rate:.3g}/s")
    parts.append(f"{clock(snapshot.left)} left" if snapshot.left is not None else f"{clock(snapshot.elapsed)} so far")
    if snapshot.failures:
        parts.append(
            f"{snapshot.failures} of {snapshot.evaluations} {of_number(snapshot.evaluations, 'evaluation')} failed"
        )
    if snapshot.running:
        under_way = [item for item in snapshot.running if item[1] is None or item[1] < 1.0] or snapshot.running
        number, share, words = max(under_way, key=lambda item: -1.0 if item[1] is None else item[1])
        others_text = f" and {len(snapshot.running) - 1} more" if len(snapshot.running) > 1 else ""
        at_share = "" if share is None else f" at {100.0 * share:.0f} %"
        parts.append(f"design {number}{at_share}{f' ({words})' if words and share != 1.0 else ''}{others_text}")
    if snapshot.note:
        parts.append(snapshot.note)
    if snapshot.best:
        each = "best of each: " if len(snapshot.best) > 1 else "best "
        parts.append(each + ", ".join(f"{name} {value:.5g}" for name, value in snapshot.best.items()))
    return ", ".join(parts)


def clock(seconds: float) -> str:
    """Shortest form of a time in seconds: 0:42, 3:05, 2:10:00."""
    minutes, remainder = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{remainder:02d}" if minutes >= 60 else f"{minutes}:{remainder:02d}"


def duration(seconds: float) -> str:
    """Readable form of a time in seconds: 42 s, 3 min 05 s, 2 h 10 min."""
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60:02d} s"
    return f"{total // 3600} h {total % 3600 // 60:02d} min"
