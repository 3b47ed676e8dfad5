"""The journal in memory, by columns."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats, Integers, Mask
from designopt.problem import STATUSES, Outcomes, Problem
from designopt.store.journal.reader import COLUMN, JournalReader
from designopt.store.journal.schema import Kind

#: Codes of the kinds and statuses of evaluations in columns.
KIND_CODE: dict[str, int] = {kind: code for code, kind in enumerate(get_args(Kind))}
CODE = {status: code for code, status in enumerate(STATUSES)}
#: Code of an evaluation without a result.
PENDING = 255


@dataclass(frozen=True)
class Evaluations:
    """Recorded evaluations (n,) in any order. `kind` and `status` are codes, `reason` numbers of the texts `reasons`,
    `wall` in s. `figures` (n, names) are NaN without a value. `keys` only if asked for; `array_files` are the files of
    arrays of all."""

    kind: NDArray[np.uint8]
    design: Integers
    number: Integers
    status: NDArray[np.uint8]
    reason: NDArray[np.int32]
    reasons: Sequence[str]
    wall: Floats
    names: tuple[str, ...]
    figures: Floats = field(repr=False)
    keys: Sequence[bytes] = field(default=(), repr=False)
    array_files: frozenset[str] = frozenset()

    def take(self, mask: Mask) -> Evaluations:
        """Those of a `mask` (n,)."""
        return replace(
            self,
            kind=self.kind[mask],
            design=self.design[mask],
            number=self.number[mask],
            status=self.status[mask],
            reason=self.reason[mask],
            wall=self.wall[mask],
            figures=self.figures[mask],
            keys=list(itertools.compress(self.keys, mask.tolist())),
        )


@dataclass(frozen=True)
class Contents:
    """All designs `X` (n, d) by number, their violation of the relations (n,), and evaluations."""

    X: Floats
    relation_violation: Floats
    evaluations: Evaluations


@dataclass(frozen=True)
class RecordedDesigns:
    """Designs whose scenarios are all recorded, in ask order; `points` are the numbers of the designs requested by each
    stage, in its ask order, `numbers` (n,) those of the rows."""

    outcomes: Outcomes
    numbers: NDArray[np.int64]
    status: NDArray[np.str_]
    reason: NDArray[np.object_]
    stage: NDArray[np.str_]
    wall: Floats
    points: Mapping[str, NDArray[np.int64]]

    def designs_of(self, stage: str) -> NDArray[np.int64]:
        """Rows of the designs requested by a stage of `points`, in its ask order; -1 for an incomplete design."""
        points = self.points[stage]
        row_of = np.full(max(int(points.max(initial=-1)), int(self.numbers.max(initial=-1))) + 1, -1, np.int64)
        row_of[self.numbers] = np.arange(len(self.numbers))
        return row_of[points]


def figure_names(problem: Problem) -> tuple[str, ...]:
    """Names of the expected figures: the declared ones, and those in expressions (of an undeclared model)."""
    return tuple(
        dict.fromkeys([*problem.output_names, *itertools.chain.from_iterable(map(sorted, problem.expression_names))])
    )


def outputs(texts: Sequence[str | None], names: Iterable[str]) -> tuple[tuple[str, ...], Floats]:
    """The figures in the journal's JSON `texts`: names, starting with `names`, and values, NaN for missing ones."""
    alike = _uniform_values(texts)
    if alike is not None:
        figure_names_on_record, table = alike
        output_names = tuple(dict.fromkeys(itertools.chain(names, figure_names_on_record)))
        if output_names == figure_names_on_record:
            return alike
        values = np.full((len(texts), len(output_names)), np.nan)
        values[:, [output_names.index(name) for name in figure_names_on_record]] = table
        return output_names, values
    data = json.loads(f"[{','.join(text or '{}' for text in texts)}]")  # in one call: a third of the time
    figure_names_on_record = tuple(dict.fromkeys(itertools.chain(names, *data)))
    values = np.array([[figures.get(name) for name in figure_names_on_record] for figures in data], float)
    return figure_names_on_record, values.reshape(len(data), len(figure_names_on_record))


def _uniform_values(texts: Sequence[str | None]) -> tuple[tuple[str, ...], Floats] | None:
    """Names and values of JSON `texts` that contain the same names in the same order, and numbers only; None for
    others."""
    first = json.loads(texts[0]) if texts and texts[0] else None
    if not first or not isinstance(first, dict) or not all(texts):
        return None
    columns, text = tuple(first), ",".join(texts)  # type: ignore[arg-type]
    for name, before in zip(columns, itertools.chain("{", itertools.repeat(",")), strict=False):
        label = f"{before}{json.dumps(name)}:"
        if text.count(label) != len(texts):
            return None
        text = text.replace(label, "," if before == "," else "")
    if text.count("}") != len(texts):
        return None
    if "null" in text:
        return None
    try:
        return columns, np.fromstring(text.replace("}", ""), sep=",").reshape(len(texts), len(columns))
    except (DeprecationWarning, ValueError):  # something else than numbers
        return None


def read_evaluations(
    journal: JournalReader, names: Iterable[str], *, only: Kind | None = None, keys: bool = False
) -> Evaluations:
    """The evaluations of the journal, all verified, with figures `names` first; of one kind with `only`.

    Raises `DamagedRecord`, and `ValueError` or `LookupError` for what is not an evaluation.
    """
    columns = dict.fromkeys(names)
    reasons = {"": 0}
    all_keys: list[bytes] = []
    files: set[str | None] = {None, ""}
    parts: list[tuple[NDArray[Any], ...]] = []
    tables: list[tuple[tuple[str, ...], Floats]] = []
    for block in journal.evaluation_blocks():
        rows = [row for row in block if row[COLUMN["kind"]] == only] if only else block
        if not rows:
            continue
        column = dict(zip((*COLUMN, "digest"), zip(*rows, strict=True), strict=True))  # in one pass over the rows
        cells = np.array([column["design"], column["number"]]).T
        if cells.dtype.kind != "i" or (cells < 0).any():
            raise ValueError("a design or scenario has no number")
        for entry in sorted({text or "" for text in set(column["reason"])} - reasons.keys()):
            reasons[entry] = len(reasons)
        walls = np.array(column["wall"], float)
        walls[np.isnan(walls)] = 0.0  # none
        parts.append((
            _codes(column["kind"], KIND_CODE), cells, _codes(column["status"], CODE),
            _codes(column["reason"], {None: 0, **reasons}), walls,
        ))  # fmt: skip
        tables.append(outputs(column["outputs"], ()))
        columns.update(dict.fromkeys(tables[-1][0]))
        if keys:
            all_keys += column["key"]
        files |= set(column["arrays"])
    kinds, cell_parts, statuses, reason_parts, wall_parts = zip(*parts, strict=True) if parts else ([],) * 5
    cells = np.concatenate([np.empty((0, 2), np.int64), *cell_parts])
    return Evaluations(
        np.concatenate([np.empty(0, np.uint8), *kinds]).astype(np.uint8), cells[:, 0], cells[:, 1],
        np.concatenate([np.empty(0, np.uint8), *statuses]).astype(np.uint8),
        np.concatenate([np.empty(0, np.int32), *reason_parts]).astype(np.int32), tuple(reasons),
        np.concatenate([np.empty(0), *wall_parts]), tuple(columns), _table(tuple(columns), tables), all_keys,
        frozenset(str(file) for file in files - {None, ""}),
    )  # fmt: skip


def _codes(texts: Sequence[Any], code_of: Mapping[Any, int]) -> NDArray[Any]:
    """The codes of `texts`, which often are all the same."""
    distinct = set(texts)
    if len(distinct) == 1:
        return np.full(len(texts), code_of[distinct.pop()])
    return np.array([code_of[text] for text in texts])


def _table(names: tuple[str, ...], tables: Sequence[tuple[tuple[str, ...], Floats]]) -> Floats:
    """One table with columns `names` from `tables`, each with its own; NaN elsewhere."""
    table = np.full((sum(len(values) for _, values in tables), len(names)), np.nan)
    begin = 0
    for columns, values in tables:
        end = begin + len(values)
        if columns == names:
            table[begin:end] = values
        else:
            table[begin:end, [names.index(name) for name in columns]] = values
        begin = end
    return table


def read(journal: JournalReader, problem: Problem) -> Contents:
    """The designs of `problem` and their evaluations in its scenarios."""
    with _without_collection():
        X, relation_violation = journal.designs()
        return Contents(X, relation_violation, read_evaluations(journal, figure_names(problem), only="scenario"))


def read_all(journal: JournalReader, *, gaps: bool = False) -> Contents:
    """All designs, NaN for lost ones with `gaps`, and all evaluations with their keys."""
    with _without_collection():
        X, relation_violation = journal.designs(gaps=gaps)
        return Contents(X, relation_violation, read_evaluations(journal, figure_names(journal.problem), keys=True))


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """No search for garbage in rows, which have no cycles: a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def combine(
    contents: Contents, points: Mapping[str, Sequence[int]], problem: Problem, scoring_problem: Problem
) -> RecordedDesigns:
    """The designs of `contents` requested by stages (`points`), with their evaluations in the scenarios of `problem`,
    scored by `scoring_problem`."""
    X, relation_violation, evaluations = contents.X, contents.relation_violation, contents.evaluations
    n, s = len(X), len(problem.scenarios)
    # Designs after the last one were recorded during the read of the evaluations.
    in_table = (evaluations.kind == KIND_CODE["scenario"]) & (evaluations.design < n) & (evaluations.number < s)
    at = evaluations.design[in_table], evaluations.number[in_table]

    def table(column: NDArray[Any], fill: Any) -> NDArray[Any]:
        """A column of the evaluations by design and scenario (n, s)."""
        values = np.full((n, s), fill, column.dtype)
        values[at] = column[in_table]
        return values

    code, reason, wall = table(evaluations.status, PENDING), table(evaluations.reason, 0), table(evaluations.wall, 0.0)
    figures = {name: table(evaluations.figures[:, j], np.nan) for j, name in enumerate(evaluations.names)}
    extra_names = evaluations.names[len(figure_names(problem)) :]  # in the order of the designs that have them
    first = {name: int(np.append(np.isfinite(figures[name]).ravel(), True).argmax()) for name in extra_names}
    figures = {name: figures[name] for name in sorted(figures, key=lambda name: first.get(name, -1))}
    alike = list(problem.first_occurrence)
    if alike != list(range(s)):  # an evaluation that two scenarios share is recorded for the first of them
        code, reason = code[:, alike], reason[:, alike]
        figures = {name: values[:, alike] for name, values in figures.items()}
    by_relation = relation_violation > 0.0
    is_refused = code == CODE["invalid"]
    code[by_relation] = CODE["invalid"]
    stage_points = {name: np.array(numbers, np.int64) for name, numbers in points.items()}
    stage = np.full(n, "", dtype=f"U{max(map(len, stage_points), default=1)}")
    for name, numbers in reversed(stage_points.items()):
        stage[numbers[numbers < n]] = name
    # The start of a program is a design that no stage requested.
    rows = np.flatnonzero((code != PENDING).all(axis=1) & (stage != ""))
    texts = np.array(evaluations.reasons, object)[reason[rows]]
    texts[by_relation[rows]] = "relation"
    status = np.array(STATUSES, "U12")[code[rows]]
    scored_figures = {name: values[rows] for name, values in figures.items()}
    outcomes = scoring_problem.judge(
        X[rows], scored_figures, code[rows] != CODE["ok"], relation_violation[rows], is_refused[rows]
    )
    return RecordedDesigns(outcomes, rows, status, texts, stage[rows], wall[rows], stage_points)
