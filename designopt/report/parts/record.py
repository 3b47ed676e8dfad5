"""Report part `record`: records, sessions and versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from datetime import datetime
from typing import Any

from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.labels import duration, figure_meaning, figure_unit
from designopt.report.parts.answer.problem import value_text
from designopt.report.section import UNFOLDED, Section, Table
from designopt.store.result import Result


@report_part("record", version=1)
def record(result: Result) -> Section:
    """Number of records, model settings, sessions and versions, and the study file."""
    study, problem = result.study, result.problem
    settings = tuple((name, text) for name, value in problem.model.settings.items() if (text := _setting_text(value)))
    return Section(
        on_request=True,
        title="Record",
        introduction=f"Model {problem.model.plugin.name}, version {problem.model.plugin.version}; seed {study.seed}; "
        f"problem {problem.digest[:12]}.",
        tables=(
            Table(
                "Figures recorded for every evaluation",
                ("figure", "unit", "meaning"),
                tuple((n, figure_unit(problem, n), figure_meaning(problem, n)) for n in problem.output_names),
                visible_rows=100,
                folded_from=UNFOLDED,
            ),
            *((_settings(settings),) if settings else ()),
            *_sessions(result),
            *_events(result),
        ),
        details=(("The study file", study.text),) if study.text else (),
    )


def _settings(settings: tuple[tuple[str, str], ...]) -> Table:
    note = "Settings without a value are left out."
    return Table("Settings of the model", ("setting", "value"), settings, visible_rows=100, note=note)


def _setting_text(value: Any) -> str:
    """A setting in words; "" for none and for what is empty."""
    return "" if value is None or (isinstance(value, Sized) and not value) else value_text(value)


def _sessions(result: Result) -> tuple[Table, ...]:
    """The processes that worked on the store, and their package versions where these changed."""
    sessions = result.sessions
    if not sessions:
        return ()
    rows = []
    for session in sessions:
        start, end = session.get("started"), session.get("ended")
        revision = str(session.get("revision") or "")[:12] + (" with changes" if session.get("dirty") else "")
        rows.append(
            (
                _clock(start) if start else "",
                duration(end - start) if start and end else "not ended",
                str(session.get("reason") or ""),
                str(session.get("host") or ""),
                f"{session.get('executor') or ''}, {plural(int(session.get('workers') or 1), 'worker')}",
                revision.strip(),
            )
        )
    head = ("started", "took", "ended because", "host", "executor", "source revision")
    return (Table("Sessions", head, tuple(rows), folded_from=UNFOLDED), _versions(sessions))


def _versions(sessions: Sequence[Mapping[str, Any]]) -> Table:
    """The versions of packages, in one column for sessions with the same ones in a row."""
    runs: list[tuple[list[int], dict[str, str]]] = []
    for k, session in enumerate(sessions, start=1):
        versions = {str(package): str(version) for package, version in (session.get("versions") or {}).items()}
        if not runs or runs[-1][1] != versions:
            runs.append(([], versions))
        runs[-1][0].append(k)
    heads = (
        ["version"]
        if len(runs) == 1
        else [f"session {k[0]}" if len(k) == 1 else f"sessions {k[0]} to {k[-1]}" for k, _ in runs]
    )
    packages = sorted({package for _, versions in runs for package in versions})
    rows = tuple((package, *(versions.get(package, "") for _, versions in runs)) for package in packages)
    return Table("Versions", ("package", *heads), rows)


def _events(result: Result) -> tuple[Table, ...]:
    """The events of the sessions, such as corrected results; none without events."""
    rows = tuple((_clock(event["time"]), event["session"], str(event["text"])) for event in result.events)
    if not rows:
        return ()
    return (Table("Events", ("time", "session", "event"), rows, visible_rows=100, folded_from=UNFOLDED),)


def _clock(time: float) -> str:
    return datetime.fromtimestamp(time).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
