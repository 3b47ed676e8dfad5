"""``designopt show STORE --follow``: follows a run from another process by its journal."""

from __future__ import annotations

import sys
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from designopt.cli.exit import INTERRUPTED, STORE, echo, fail
from designopt.cli.report import write_page
from designopt.printable import printable
from designopt.run.progress import Snapshot, event_text, line, snapshot
from designopt.store.disk.lock import at_work
from designopt.store.errors import StoreError

if TYPE_CHECKING:
    from designopt.store.result import Result

#: Maximum share of the time for reading the journal.
READING = 0.2
#: Number of looks for the rate.
LOOKS = 10
#: Events shown on a terminal.
EVENTS = 5


def follow(result: Result, *, every: float | None = None, page_every: float | None = None) -> Result:
    """Show the progress of the store's run until it ends; returns the final result.

    Reads the journal every `every` seconds, less often if that takes long. With `page_every` (s) the report is
    rewritten at that interval, reloads itself in a browser, and is written at the end. Ctrl-C ends the display, not the
    run.
    """
    terminal = sys.stdout is not None and sys.stdout.isatty()
    every = every if every is not None else (1.0 if terminal else 60.0)
    if not at_work(result.path):
        echo(f"no run is active on {result.path}", err=True)
        return result
    display: _Display = _Terminal() if terminal else _Lines()
    looks: deque[tuple[float, int]] = deque(maxlen=LOOKS)
    page_due = 0.0
    try:
        while True:
            going = at_work(result.path)
            began = time.monotonic()
            result = _look(result)
            looks.append((began, result.counts["evaluations"]))
            state = snapshot(result, looks)
            display.update(result, state if going else replace(state, left=None))
            if page_every is not None and (time.monotonic() >= page_due or not going):
                write_page(result, refresh=page_every)
                page_due = time.monotonic() + page_every
            if not going:
                return result
            _wait(result.path, max(every, (time.monotonic() - began) / READING))
    except KeyboardInterrupt:
        display.close()
        fail(f"stopped following; the run continues: designopt show {result.path} --follow", INTERRUPTED)
    finally:
        display.close()


def _wait(path: Path, seconds: float) -> None:
    """Wait, at most until the run ends."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0.0 and at_work(path):
        time.sleep(min(left, 0.5))


def _look(result: Result) -> Result:
    from designopt.store.result import Result

    try:
        fresh = Result.open(result.path, result.study)
        _ = fresh.counts, fresh.sessions, fresh.events
    except StoreError as error:
        fail(str(error), STORE)
    return fresh


class _Display(Protocol):
    def update(self, result: Result, snapshot: Snapshot) -> None:
        """Show the present state."""

    def close(self) -> None:
        """Keep the last display."""


class _Lines:
    """One line per look, and one for each new event."""

    def __init__(self) -> None:
        self._shown_events = -1

    def update(self, result: Result, snapshot: Snapshot) -> None:
        events = result.events
        for event in events[self._shown_events :] if self._shown_events >= 0 else ():
            echo(f"{_clock(event['time'])} {_event(event)}")
        self._shown_events = len(events)
        echo(f"{_clock(time.time())} {line(snapshot)}")
        sys.stdout.flush()

    def close(self) -> None:
        pass


class _Terminal:
    """A view that is updated in place: progress of the stage, best values, failures, last events."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(), auto_refresh=False)
        self._live.start()

    def update(self, result: Result, snapshot: Snapshot) -> None:
        self._live.update(view(result, snapshot), refresh=True)

    def close(self) -> None:
        self._live.stop()


def view(result: Result, snapshot: Snapshot) -> Any:
    """The terminal view."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from designopt.counts import plural

    def text(words: str, style: str = "") -> Text:
        return Text(printable(words), style=style)

    title = result.study.title or result.study.name
    grid = Table.grid(padding=(0, 2))
    grid.add_row("store", text(str(result.path)))
    counts = result.counts
    grid.add_row(
        "recorded",
        text(f"{plural(counts['evaluations'], 'evaluation')}, {plural(counts['feasible'], 'feasible design')}"),
    )
    for name, value in snapshot.best.items():
        grid.add_row("best", text(f"{name} {value:.6g}"))
    counts_by_status = [f"{status}{f' ({why})' if why else ''} {n}" for (status, why), n in result.failures().items()]
    grid.add_row("failed", text(", ".join(counts_by_status[:6]) or "none", style="yellow" if counts_by_status else ""))
    parts: list[Any] = [text(title, style="bold")]
    if snapshot.total:
        bar = Table.grid()  # a bar alone would share its line with the next one
        bar.add_row(ProgressBar(total=snapshot.total, completed=min(snapshot.completed, snapshot.total), width=60))
        parts.append(bar)
    parts += [text(line(replace(snapshot, best={}))), grid]
    parts += [text(f"{_clock(e['time'])} {_event(e)}", style="bright_black") for e in result.events[-EVENTS:]]
    return Group(*parts)


def _event(event: dict[str, Any]) -> str:
    return event_text(str(event["kind"]), str(event["text"]))


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))
