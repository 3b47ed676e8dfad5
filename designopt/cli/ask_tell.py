"""``designopt ask`` and ``designopt tell``: evaluations made in a laboratory, exchanged as CSV."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from designopt.cli.completion import stores, studies
from designopt.cli.exit import STORE, WRONG_INPUT, echo, fail
from designopt.cli.opening import data_option, load_or_fail, open_result, plugin_option, without_plugin
from designopt.counts import plural
from designopt.plugin import PluginError

if TYPE_CHECKING:
    from designopt.api import Study
    from designopt.run.ask_tell import PendingEvaluation

#: Columns that identify an evaluation, and the one for the reason why it has no result.
IDENTITY = ("design", "scenario", "kind")
FAILED = "failed"
#: Design, scenario and kind of an evaluation.
Identity = tuple[int, str, str]


@click.command()
@click.argument("study", type=click.Path(), shell_complete=studies)
@click.option("-o", "--output", metavar="STORE", help="Store of the study in a file [default: results/NAME.study].")
@click.option("-n", "--count", type=click.IntRange(min=1), default=1, show_default=True, help="Number of evaluations.")
@plugin_option
@data_option
def ask(study: str, output: str | None, count: int, plugin_files: tuple[str, ...], data: dict[str, str]) -> None:
    """Print evaluations to make elsewhere as CSV.

    STUDY is a study file or the store of one. The columns of the outputs are empty: fill them in and give the file to
    `designopt tell`. The same evaluations are printed until they have results; nothing is printed when the study is
    complete.
    """
    from designopt.study.stated_units import stated_value

    definition, store = _study(study, output, plugin_files, data)
    with _sentences(store):
        evaluations = definition.ask(count, store=store)
    if not evaluations:
        echo(f"{store}: the study is complete", err=True)
        return
    outputs = [_head(name, unit) for name, (unit, _) in _outputs(definition).items()]
    names = _names(definition, evaluations)
    head = [*IDENTITY, *_inputs(definition, evaluations), *outputs, FAILED]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    parameter_of = {p.name: p for p in definition.problem.space.parameters}
    for one in evaluations:
        values = {**one.conditions, **{name: stated_value(parameter_of[name], v) for name, v in one.values.items()}}
        inputs = [values.get(name, "") for name in names]
        writer.writerow([one.number, one.scenario, one.kind, *inputs, *[""] * (len(outputs) + 1)])
    echo(text.getvalue().removesuffix("\n"))


@click.command()
@click.argument("store", type=click.Path(), shell_complete=stores)
@click.argument("results", type=click.Path(exists=True, dir_okay=False))
@plugin_option
@data_option
def tell(store: str, results: str, plugin_files: tuple[str, ...], data: dict[str, str]) -> None:
    """Record the results of evaluations that `designopt ask` printed.

    RESULTS is the CSV of `ask` with the outputs filled in, in the units of its head. Rows without outputs stay pending;
    a text in the column `failed` is the reason why an evaluation has no result.
    """
    definition, path = _study(store, None, plugin_files, data)
    rows = _rows(Path(results), _outputs(definition))
    with _sentences(path):
        pending = {(one.number, one.scenario, one.kind): one for one in definition.ask(2**31, store=path)}
        reports: list[tuple[PendingEvaluation, Mapping[str, float] | None, str]] = []
        for line, identity, values, why in rows:
            if identity not in pending:
                number, scenario, _ = identity
                fail(
                    f"{results}:{line}: design {number} in scenario '{scenario}' is not pending in {path}", WRONG_INPUT
                )
            reports.append((pending.pop(identity), values, why))
        successes = [(one, values) for one, values, _ in reports if values is not None]
        if successes:
            definition.tell([one for one, _ in successes], [values for _, values in successes], store=path)
        for one, values, why in reports:
            if values is None:
                definition.tell(one, None, store=path, why=why)
        left = len(definition.ask(2**31, store=path))
    echo(
        f"{plural(len(reports), 'result')} recorded in {path}; {f'{left} pending' if left else 'the study is complete'}"
    )


def _study(path: str, output: str | None, plugin_files: tuple[str, ...], data: Mapping[str, str]) -> tuple[Study, Path]:
    """The study in a file or store, and its store; ends the command with its mistakes."""
    from designopt.api import Study

    if not Path(path).is_dir():
        study = load_or_fail(path, (), plugin_files, data)
        return study, Path(output) if output else study.default_store
    if output:
        raise click.UsageError(f"{path} is a store; -o is for a study file")
    definition = open_result(path, plugin_files, data).study
    if definition.model.plugin.description.startswith("not available: "):
        fail(without_plugin(path, definition.model.plugin.description.removeprefix("not available: ")), STORE)
    return Study(definition), Path(path)


@contextlib.contextmanager
def _sentences(store: Path) -> Iterator[None]:
    """End the command with the sentence of an error of the store, the plugin or the results."""
    from designopt.store.errors import RunError

    try:
        yield
    except RunError as error:
        fail(str(error), STORE)
    except (PluginError, ValueError) as error:
        fail(f"error: {store}: {error}", WRONG_INPUT)


def _names(study: Study, evaluations: Sequence[PendingEvaluation]) -> list[str]:
    """The parameters of the space, then the conditions of the evaluations."""
    parameters = [p.name for p in study.problem.space.parameters]
    return [*parameters, *dict.fromkeys(n for one in evaluations for n in one.conditions if n not in parameters)]


def _inputs(study: Study, evaluations: Sequence[PendingEvaluation]) -> list[str]:
    """The heads of parameters, in the units of the study, and of conditions, in those of the model."""
    units = {p.name: p.stated or p.unit for p in study.problem.space.parameters}
    for name, condition in (study.problem.model.plugin.conditions or {}).items():
        units.setdefault(name, condition.quantity.unit if condition.quantity else "")
    return [_head(name, units.get(name, "")) for name in _names(study, evaluations)]


def _outputs(study: Study) -> dict[str, tuple[str, bool]]:
    """Unit of each output of the model, and whether a result needs it; of undeclared ones those that are scored."""
    problem = study.problem
    declared = problem.model.plugin.outputs
    if declared:
        return {n: (f.quantity.unit if f.quantity else "", f.required) for n, f in declared.items()}
    scored = [o.expression.names for o in problem.objectives] + [c.expression.names for c in problem.constraints]
    return dict.fromkeys(sorted({name for names in scored for name in names} - problem.figures.keys()), ("", True))


def _head(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


def _rows(
    file: Path, outputs: Mapping[str, tuple[str, bool]]
) -> list[tuple[int, Identity, Mapping[str, float] | None, str]]:
    """Line, evaluation, outputs in the model's units (None without a result) and reason of each row with a result.

    Ends the command for a file that is not such a table, with line and column.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"error: {file}: cannot be read as UTF-8 text: {error}", WRONG_INPUT)
    first = next(iter(text.splitlines()), "")
    separator = next((c for c in ";\t" if c in first), ",")
    table = csv.reader(io.StringIO(text), delimiter=separator)
    head = [cell.strip() for cell in next(table, [])]
    columns = {name: (i, factor) for i, cell in enumerate(head) for name, factor in _columns(file, cell, outputs)}
    missing = [n for n in IDENTITY[:2] if n not in head] + [
        n for n, (_, r) in outputs.items() if r and n not in columns
    ]
    if missing:
        fail(
            f"error: {file}:1: column '{missing[0]}' is missing; keep the head that `designopt ask` prints", WRONG_INPUT
        )
    rows: list[tuple[int, Identity, Mapping[str, float] | None, str]] = []
    for cells in table:
        line = table.line_num
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(head):
            fail(f"error: {file}:{line}: has {len(cells)} values, the head has {len(head)} columns", WRONG_INPUT)
        row = dict(zip(head, (cell.strip() for cell in cells), strict=True))
        if not row["design"].isdigit():
            fail(f"error: {file}:{line}: column 'design': '{row['design']}' is not the number of a design", WRONG_INPUT)
        identity = int(row["design"]), row["scenario"], row.get("kind") or "scenario"
        filled = {name: cells[i].strip() for name, (i, _) in columns.items() if cells[i].strip()}
        if row.get(FAILED):
            rows.append((line, identity, None, row[FAILED]))
        elif filled:
            lacking = [name for name, (_, required) in outputs.items() if required and name not in filled]
            if lacking:
                fail(
                    f"error: {file}:{line}: column '{lacking[0]}' is empty; without a result, say why in '{FAILED}'",
                    WRONG_INPUT,
                )
            decimal = (lambda t: t.replace(",", ".")) if separator != "," else str
            values = {n: _number(f"{file}:{line}", n, decimal(t)) * columns[n][1] for n, t in filled.items()}
            rows.append((line, identity, values, ""))
    return rows


def _columns(file: Path, cell: str, outputs: Mapping[str, tuple[str, bool]]) -> list[tuple[str, float]]:
    """The output of a column and the factor to the model's unit; none for another column."""
    from designopt.study.language import units

    name, bracket, unit = (part.strip(" ]") for part in cell.partition("["))
    if name not in outputs:
        return []
    expected = outputs[name][0]
    try:
        return [(name, units.convert(1.0, unit, expected) if bracket and unit != expected else 1.0)]
    except units.UnitError as error:
        fail(f"error: {file}:1: column '{cell}': {error}", WRONG_INPUT)


def _number(where: str, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        fail(f"error: {where}: column '{name}': '{text}' is not a number", WRONG_INPUT)
