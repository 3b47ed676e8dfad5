"""``designopt show STORE/POINT``: one design, what it gave, and the same computed again."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
import numpy as np
from numpy.typing import NDArray

from designopt import plugin
from designopt.cli.ending import DIFFERENT, STORE, WRONG_INPUT, fail
from designopt.cli.opening import open_result
from designopt.problem import unequal

if TYPE_CHECKING:
    from designopt.store.result import Result
    from designopt.study.study import Constraint
    from designopt.workers.evaluation.evaluate import Evaluation

#: Failures of the process, not of the model: computing such a design again may end or hold up this process too.
OF_THE_PROCESS = ("timeout", "crashed", "lost_worker")


def show_design(
    store: str,
    point: str,
    plugin_files: tuple[str, ...],
    data: Mapping[str, str],
    *,
    evaluate: bool = False,
    array_file: str | None = None,
) -> None:
    """Print the design `point` of `store`; with `evaluate` compute it again here and exit with 1 if numbers differ.

    Arrays that cannot be read are reported after the rest; without `evaluate` the command then ends with 4.
    """
    result = open_result(store, plugin_files, data)
    row = row_of(result, point)
    arrays, damaged = _array_rows(result, row)
    click.echo("\n\n".join(filter(None, [_described(result, row), _aligned(arrays)])))
    for line in damaged:
        click.echo(line, err=True)
    if evaluate:
        click.echo()
        sys.exit(_again(result, row, array_file))
    files = "".join(f" --plugin {shlex.quote(name)}" for name, _ in result.study.plugin_files)
    given = " --arrays FILE.npz" if result.problem.model.plugin.arrays else ""
    click.echo(f"\ncompute it again: designopt show {shlex.quote(f'{result.path}/{row}')}{files} --evaluate{given}")
    if damaged:
        sys.exit(STORE)


def row_of(result: Result, point: str) -> int:
    """The row that a number, a label of the chosen designs or the beginning of a key means."""
    found = _rows(result, point)
    if len(found) != 1:
        fail(_unknown(result, point, len(found)), WRONG_INPUT)
    return found[0]


def _rows(result: Result, point: str) -> list[int]:
    chosen = result.chosen()
    if point in chosen:
        return [chosen[point]]
    if point in result.named:
        return [result.named[point]]
    if re.fullmatch(r"\d{1,9}", point) and int(point) < len(result.outcomes):
        return [int(point)]
    return _with_key(result, point.lower()) if re.fullmatch(r"[0-9a-fA-F]{4,32}", point) else []


def _unknown(result: Result, point: str, found: int) -> str:
    count = len(result.outcomes)
    chosen = result.chosen()
    if found:
        return f"error: {found} designs of {result.path} have a key that begins with {point}"
    there = f"it has designs 0 to {count - 1}" if count else "it has no designs yet"
    labels = f"; chosen are {', '.join(repr(label) for label in chosen)}" if chosen else ""
    near = plugin.closest(point, [*chosen, *result.named])
    hint = f"; did you mean '{near}'?" if near else labels
    return f"error: {result.path} has no design '{point}': {there}{hint}"


def _with_key(result: Result, start: str) -> list[int]:
    keys = enumerate(result.recorded_problem.keys(result.outcomes.X))
    return [row for row, of_design in keys if any(key.hex().startswith(start) for key in of_design)]


# --------------------------------------------------------------------------------------------------------- in words


def _described(result: Result, row: int) -> str:
    """All that the store knows of one design, as aligned text."""
    labels = [label for label, chosen in {**result.chosen(), **result.named}.items() if chosen == row]
    if row in result.front():
        labels.append("on the front")
    outcomes = result.outcomes
    if not outcomes.feasible[row]:
        labels.append("invalid" if outcomes.invalid[row] else "failed" if outcomes.failed[row] else "not feasible")
    keys = [key.hex() for key in result.recorded_problem.keys(outcomes.X[row : row + 1])[0]]
    parts = [
        f"design {row} of {result.path}" + (f": {', '.join(labels)}" if labels else ""),
        _aligned(_space_rows(result, row)),
        _aligned([*_objective_rows(result, row), *(_limit_row(result, row, c) for c in result.problem.constraints)]),
        _aligned(_figure_rows(result, row)),
        _aligned(_evaluation_rows(result, row, keys)),
        *_messages(result, row),
        _asked(result, row),
    ]
    return "\n\n".join(part for part in parts if part)


def _space_rows(result: Result, row: int) -> list[list[str]]:
    values = result.problem.space.values(result.outcomes.X[row].tolist())
    rows = [["parameter", "value", "unit", ""]]
    for p in result.problem.space.parameters:
        note = "fixed" if p.kind == "fixed" else ""
        if p.name in values:
            rows.append([p.name, _exact(values[p.name]), p.unit, note])
        else:
            rows.append([p.name, "", p.unit, "not active here"])
    return rows


def _objective_rows(result: Result, row: int) -> list[list[str]]:
    rows = [["objective or limit", "value", "unit", "", ""]]
    for j, o in enumerate(result.problem.objectives):
        value = o.sign * float(result.outcomes.objectives[row, j])
        rows.append([o.name, _exact(value) if np.isfinite(value) else "no value", o.unit, o.direction, ""])
    return rows


def _limit_row(result: Result, row: int, c: Constraint) -> list[str]:
    """A limit with the value that it is held to and the room that is left, or by how much it is passed."""
    one = {name: values[row : row + 1] for name, values in result.outcomes.figures.items()}
    low, high = (float(side[0]) for side in result.problem.limited(c, one, 1))
    if not (np.isfinite(low) and np.isfinite(high)):
        return [c.name, "no value", c.unit, _limit(c), ""]
    sides = (
        [low] if c.maximum is None and c.equals is None else [high] if c.minimum is None and c.equals is None else []
    )
    value = " ... ".join(dict.fromkeys(_exact(side) for side in sides or [low, high]))
    if c.equals is not None:
        off = float(unequal(np.array(low), np.array(high), c.equals))
        return [c.name, value, c.unit, _limit(c), "kept" if off == 0.0 else f"passed by {off:.4g}"]
    room = min(
        np.inf if c.maximum is None else c.maximum - high,
        np.inf if c.minimum is None else low - c.minimum,
    )
    return [c.name, value, c.unit, _limit(c), f"margin {room:.4g}" if room >= 0.0 else f"passed by {-room:.4g}"]


def _limit(c: Constraint) -> str:
    if c.equals is not None:
        return f"= {c.equals:g}"
    limits = [f">= {c.minimum:g}"] if c.minimum is not None else []
    return ", ".join([*limits, *([f"<= {c.maximum:g}"] if c.maximum is not None else [])])


def _figure_rows(result: Result, row: int) -> list[list[str]]:
    from designopt.report.labels import figure_unit

    scenarios = result.problem.scenarios
    rows = [["figure", *(s.name if len(scenarios) > 1 else "value" for s in scenarios), "unit"]]
    for name, values in result.outcomes.figures.items():
        shown = [_exact(float(v)) if np.isfinite(v) else "no value" for v in values[row]]
        rows.append([name, *shown, figure_unit(result.problem, name)])
    return rows


def _evaluation_rows(result: Result, row: int, keys: Sequence[str]) -> list[list[str]]:
    rows = [["evaluation", "status", "took", "key"]]
    for k, scenario in enumerate(result.problem.scenarios):
        status, reason = str(result.status[row, k]), str(result.reason[row, k])
        wall = float(result.wall[row, k])
        rows.append(
            [scenario.name, f"{status} ({reason})" if reason else status, f"{wall:.3g} s" if wall else "", keys[k]]
        )
    return rows


def _asked(result: Result, row: int) -> str:
    stage = str(result.stage[row])
    return f"asked by stage {stage}, ask {int(np.argmax(result.asked(stage) == row))}" if stage else ""


def _messages(result: Result, row: int) -> list[str]:
    told = []
    for k, scenario in enumerate(result.problem.scenarios):
        message = result.message(row, k).strip()
        if message:
            told.append(f"{scenario.name}: {message}")
        if printed := result.printed(row, k).strip():
            told.append(f"{scenario.name} printed:\n{printed}")
    return told


def _array_rows(result: Result, row: int) -> tuple[list[list[str]], list[str]]:
    """The kept arrays of a design, and what is said of those that cannot be read."""
    from designopt.store.errors import StoreError

    declared = result.problem.model.plugin.arrays
    rows, damaged = [["kept array", "scenario", "size", "axes", "unit"]], []
    for k, scenario in enumerate(result.problem.scenarios):
        try:
            arrays = result.arrays(row, k)
        except StoreError as error:
            damaged.append(f"{scenario.name}: {error}")
            continue
        for name, array in arrays.items():
            about = declared.get(name)
            axes = ", ".join(about.axes) if about else ""
            size = " x ".join(str(n) for n in array.shape) or "1"
            rows.append([name, scenario.name, size, axes, about.unit if about else ""])
    return rows, damaged


def _exact(value: Any) -> str:
    """A value as it is: the shortest text that gives the same number again."""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    if len(rows) < 2:
        return ""
    widths = [max(len(line[k]) for line in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in rows)


# ---------------------------------------------------------------------------------------------------------- again


def _again(result: Result, row: int, array_file: str | None) -> int:
    """Evaluate the design in this process, say how it compares with what is recorded; the exit code."""
    if result.outcomes.invalid[row] and (result.reason[row] == "relation").any():
        click.echo("not computed: the design breaks a relation")
        return 0
    model = result.problem.model.plugin
    for use in (result.problem.model, *result.problem.figures.values()):
        if use.plugin.description.startswith("not available: "):
            _absent(result, use.plugin.description.removeprefix("not available: "))
    names = tuple(model.arrays) if array_file else ()
    if array_file and not names:
        fail(f"error: model '{model.name}' gives no arrays", WRONG_INPUT)
    values = result.problem.space.values(result.outcomes.X[row].tolist())
    kept: dict[str, NDArray[Any]] = {}
    equal = True
    for k, scenario in enumerate(result.problem.scenarios):
        if result.status[row, k] in OF_THE_PROCESS:
            click.echo(f"{scenario.name}: ended as {result.status[row, k]} before; trying it in this process", err=True)
        done = _evaluated(result, values, scenario.name, names)
        lines = _compared(result, row, k, done)
        equal &= not lines
        told = "; ".join(lines) or f"the same as recorded{', bit for bit' if done.ok else ''}"
        click.echo(f"computed again in {scenario.name}: {done.status} in {done.wall:.3g} s: {told}")
        suffix = f"@{scenario.name}" if len(result.problem.scenarios) > 1 else ""
        kept |= {f"{name}{suffix}": array for name, array in done.arrays.items()}
    if array_file:
        _save(Path(array_file), kept)
        click.echo(f"arrays       {array_file}")
    return 0 if equal else DIFFERENT


def _evaluated(result: Result, values: dict[str, Any], scenario: str, arrays: tuple[str, ...]) -> Evaluation:
    from designopt.workers.evaluation.evaluate import evaluate_one

    try:
        return evaluate_one(result.study, values, scenario=scenario, arrays=arrays)
    except plugin.PluginError as error:
        fail(f"{result.path}: {error}", STORE)


def _absent(result: Result, reason: str) -> NoReturn:
    fail(f"{result.path}: {reason}; install it, or give the file that declares it with --plugin FILE", STORE)


def _compared(result: Result, row: int, k: int, done: Evaluation) -> list[str]:
    """What differs from the record, one clause each; nothing when it is the same."""
    status = str(result.status[row, k])
    if done.status != status:
        said = done.message.strip().splitlines()
        return [f"was {status}, is {done.status}{f' ({said[-1]})' if said else ''}"]
    if not done.ok:
        return []
    clauses = []
    for name, figures in result.outcomes.figures.items():
        was, now = float(figures[row, k]), float(done.outputs.get(name, np.nan))
        if was != now and not (np.isnan(was) and np.isnan(now)):
            size = f" ({abs(now - was) / abs(was):.2g} of it)" if was else ""
            clauses.append(f"{name} was {was!r}, is {now!r}{size}")
    return clauses


def _save(file: Path, arrays: dict[str, NDArray[Any]]) -> None:
    try:
        with file.open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        fail(f"{file}: the arrays cannot be written: {error.strerror or error}", STORE)
