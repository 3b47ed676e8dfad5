"""``designopt show STORE/POINT``: one design, its results, and their repetition."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt import plugin
from designopt.cli.exit import DIFFERENT, STORE, WRONG_INPUT, echo, fail
from designopt.cli.opening import open_result, without_plugin
from designopt.counts import plural
from designopt.store.errors import allow_options, data_options, path_hint, plugin_options

if TYPE_CHECKING:
    from designopt.store.result import Result
    from designopt.workers.evaluation.evaluate import Evaluation

#: Failures of the process, not of the model: repeating such a design may end or block this process too.
OF_THE_PROCESS = ("timeout", "crashed", "lost_worker")
#: Relative difference of a repeated evaluation that is rounding, as on another processor.
ROUNDING = 1e-12
#: Maximum number of figures named with their differences.
MOST = 3


def show_design(
    store: str,
    point: str,
    plugin_files: tuple[str, ...],
    data: Mapping[str, str],
    *,
    evaluate: bool = False,
    array_file: str | None = None,
    allow: Sequence[str] = (),
) -> None:
    """Print the design `point` of `store`; with `evaluate` repeat its evaluation here and exit with 1 if numbers
    differ.

    Unreadable arrays are reported at the end; without `evaluate` the command then ends with 4.
    """
    from designopt.report.one_design import array_rows

    result = open_result(store, plugin_files, data)
    row = row_of(result, point)
    arrays, damaged_arrays = array_rows(result, row)
    echo("\n\n".join(filter(None, [_description(result, row), _aligned_text(arrays)])))
    for line in damaged_arrays:
        echo(line, err=True)
    if evaluate:
        echo()
        sys.exit(_recompute(result, row, array_file, plugin.Permission.from_options(allow)))
    if not result.made_elsewhere:
        options = plugin_options(result.path) + data_options(result.path) + allow_options(result.path)
        array_option = " --arrays FILE.npz" if result.problem.model.plugin.arrays else ""
        hint = f"   ({words})" if (words := path_hint(result.path)) else ""
        command = f"designopt show {shlex.quote(f'{result.path}/{row}')}{options} --evaluate{array_option}"
        echo(f"\nrecompute it: {command}{hint}")
    if damaged_arrays:
        sys.exit(STORE)


def row_of(result: Result, point: str) -> int:
    """The row for a number, a name (`Result.rows_by_name`) or the beginning of a key."""
    matching_rows = _rows(result, point)
    if len(matching_rows) != 1:
        fail(_unknown(result, point, len(matching_rows)), WRONG_INPUT)
    return matching_rows[0]


def _rows(result: Result, point: str) -> list[int]:
    rows = result.rows_by_name()
    if point in rows:
        return [rows[point]]
    if re.fullmatch(r"\d{1,9}", point) and int(point) < len(result.outcomes):
        return [int(point)]
    return _with_key(result, point.lower()) if re.fullmatch(r"[0-9a-fA-F]{4,32}", point) else []


def _unknown(result: Result, point: str, matches: int) -> str:
    count = len(result.outcomes)
    if matches:
        return f"error: {matches} designs of {result.path} have a key starting with {point}"
    range_text = f"it has designs 0 to {count - 1}" if count else "it has no designs yet"
    names = result.rows_by_name()
    labels = f"; names: {', '.join(repr(name) for name in names)}" if names else ""
    if count and not result.outcomes.feasible.any():
        nearest = result.least_violating()
        least = "" if nearest is None else f"; design {nearest} violates the limits least"
        labels += f"; no design is feasible{least}"
    near = plugin.closest(point, names)
    hint = f"; did you mean '{near}'?" if near else labels
    return f"error: {result.path} has no design '{point}': {range_text}{hint}"


def _with_key(result: Result, start: str) -> list[int]:
    keys = enumerate(result.keys())
    return [row for row, of_design in keys if any(key.hex().startswith(start) for key in of_design)]


# --------------------------------------------------------------------------------------------------------- in words


def _description(result: Result, row: int) -> str:
    """All records of one design, as aligned text."""
    from designopt.report import one_design

    labels = one_design.labels(result, row)
    parts = [
        f"design {row} of {result.path}" + (f": {', '.join(labels)}" if labels else ""),
        _aligned_text(one_design.parameter_rows(result, row)),
        _aligned_text(one_design.rating_rows(result, row)),
        _aligned_text(one_design.output_rows(result, row)),
        _aligned_text(one_design.evaluation_rows(result, row)),
        *one_design.messages(result, row),
        one_design.origin(result, row),
    ]
    return "\n\n".join(part for part in parts if part)


def _aligned_text(rows: Sequence[Sequence[str]]) -> str:
    from designopt.report.terminal import aligned

    if len(rows) < 2:
        return ""
    return "\n".join(aligned(rows, len(rows[0])))


# ---------------------------------------------------------------------------------------------------------- again


def _recompute(result: Result, row: int, array_file: str | None, permission: plugin.Permission) -> int:
    """Evaluate the design in this process and compare with the record; returns the exit code."""
    if result.outcomes.invalid[row] and (result.reason[row] == "relation").any():
        echo("not computed: the design violates a relation")
        return 0
    model = result.problem.model.plugin
    refuse_absent(result)
    names = tuple(model.arrays) if array_file else ()
    if array_file and not names:
        fail(f"error: model '{model.name}' has no arrays", WRONG_INPUT)
    values = result.problem.space.values(result.outcomes.X[row].tolist())
    arrays: dict[str, NDArray[Any]] = {}
    equal = True
    for k, scenario in enumerate(result.problem.scenarios):
        if result.status[row, k] in OF_THE_PROCESS:
            echo(f"{scenario.name}: recorded as {result.status[row, k]}; evaluating it in this process", err=True)
        evaluation = evaluate_design(result, values, scenario.name, names, permission)
        text, is_equal = comparison(result, row, k, evaluation)
        equal &= is_equal
        echo(f"recomputed in {scenario.name}: {evaluation.status} in {evaluation.wall:.3g} s: {text}")
        suffix = f"@{scenario.name}" if len(result.problem.scenarios) > 1 else ""
        arrays |= {f"{name}{suffix}": array for name, array in evaluation.arrays.items()}
    if array_file:
        _save(Path(array_file), arrays)
        echo(f"arrays       {array_file}")
    return 0 if equal else DIFFERENT


def evaluate_design(
    result: Result, values: dict[str, Any], scenario: str, arrays: tuple[str, ...], permission: plugin.Permission
) -> Evaluation:
    """The evaluation of a design in this process; ends the command if that is not possible."""
    from designopt.workers.evaluation.single_designs import evaluate_one

    try:
        return evaluate_one(result.study, values, scenario=scenario, arrays=arrays, permission=permission)
    except plugin.CannotRun as error:
        fail(f"error: {error}", WRONG_INPUT)
    except plugin.PluginError as error:
        fail(f"{result.path}: {error}", STORE)


def refuse_absent(result: Result) -> None:
    """End the command if the model or a figure is not installed here."""
    for use in (result.problem.model, *result.problem.figures.values()):
        if use.plugin.description.startswith("not available: "):
            fail(without_plugin(result.path, use.plugin.description.removeprefix("not available: ")), STORE)


def comparison(result: Result, row: int, k: int, evaluation: Evaluation) -> tuple[str, bool]:
    """The differences from the record in words, those of most figures by the largest ones; whether it is equal, up to
    rounding: `ROUNDING` of the recorded value, or of the figure's largest value in the store."""
    status = str(result.status[row, k])
    if evaluation.status != status:
        message_lines = evaluation.message.strip().splitlines()
        return f"was {status}, now {evaluation.status}{f' ({message_lines[-1]})' if message_lines else ''}", False
    if not evaluation.ok:
        return "the same as recorded", True
    clauses: dict[str, float] = {}
    roundings = []
    for name, figures in result.outcomes.figures.items():
        was, new = float(figures[row, k]), float(evaluation.outputs.get(name, np.nan))
        if was == new or not (np.isfinite(was) or np.isfinite(new)):  # former stores have none that are infinite
            continue
        relative = abs(new - was) / abs(was) if was and np.isfinite(new - was) else np.inf
        largest = float(np.max(np.abs(figures), initial=0.0, where=np.isfinite(figures)))
        if abs(new - was) <= ROUNDING * largest:
            roundings.append(abs(new - was) / largest)
            continue
        size = f" ({relative:.2g} of it)" if np.isfinite(relative) else ""
        clauses[f"{name} was {was!r}, now {new!r}{size}"] = relative
    largest_first = sorted(clauses, key=lambda clause: -clauses[clause])
    parts = largest_first[:MOST]
    if len(clauses) > MOST:
        parts[0] = f"{len(clauses)} figures differ, most of all {parts[0]}"
    if roundings:
        count = f"{plural(len(roundings), 'figure')} {'differs' if len(roundings) == 1 else 'differ'}"
        extent = f"{count} by at most {max(roundings):.1g} of its largest value, which is rounding"
        parts.append(extent if clauses else f"the same as recorded, but {extent}")
    return "; ".join(parts) or "the same as recorded, bit for bit", not clauses


def _save(file: Path, arrays: dict[str, NDArray[Any]]) -> None:
    try:
        with file.open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        fail(f"{file}: the arrays cannot be written: {error.strerror or error}", STORE)
