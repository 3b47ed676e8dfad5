"""A benchmark as values: its problems, solvers and cells, and where the store of a cell is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from designopt.report.comparison.study_edit import StudyEdit
from designopt.store.errors import StoreError
from designopt.store.folder import read_study
from designopt.store.result import Result
from designopt.study.study import StudyDefinition


@dataclass(frozen=True)
class ProblemStatement:
    """A problem `name` with its `study`, of which the objectives and the reference point count.

    `best` is the known hypervolume with that point, of one objective its best value, None if unknown; `reference` is
    the reference value of one objective, in its unit.
    """

    name: str
    study: StudyDefinition
    best: float | None = None
    reference: float | None = None


@dataclass(frozen=True)
class BenchmarkCell:
    """One run: a problem, a solver and a seed, with its `study`, whose files are in `folder`."""

    problem: str
    solver: str
    seed: int
    study: StudyDefinition
    folder: Path

    @property
    def label(self) -> str:
        """The cell in words."""
        return f"{self.problem}, {self.solver}, seed {self.seed}"

    @property
    def key(self) -> tuple[str, str, int]:
        """The key of the cell in a benchmark."""
        return self.problem, self.solver, self.seed

    def store(self, folder: Path) -> Path:
        """Its store in the folder of the benchmark's results."""
        return folder / self.problem / self.solver / f"{self.seed}.study"


@dataclass(frozen=True)
class RecordedScore:
    """The `score` of a run after a number of `evaluations`, and the time of the search itself per design (ms, NaN if
    unknown)."""

    problem: str
    solver: str
    seed: int
    evaluations: int
    score: float
    search_ms: float


@dataclass(frozen=True)
class Benchmark:
    """A checked benchmark. Runs are compared after each number of designs in `budgets`; `records` are scores of runs
    made elsewhere."""

    name: str
    title: str
    description: str
    problems: tuple[ProblemStatement, ...]
    solvers: tuple[str, ...]
    budgets: tuple[int, ...]
    cells: tuple[BenchmarkCell, ...]
    records: tuple[RecordedScore, ...] = ()

    @property
    def default_store(self) -> Path:
        """Default folder of the results."""
        return Path("results") / f"{self.name}.benchmark"

    @property
    def cells_to_compute(self) -> tuple[BenchmarkCell, ...]:
        """The cells that the records do not contain at all budgets."""
        record_keys = {(r.problem, r.solver, r.seed, r.evaluations) for r in self.records}
        return tuple(c for c in self.cells if any((*c.key, budget) not in record_keys for budget in self.budgets))


class CellState(Enum):
    """The state of the store of a cell."""

    ABSENT = "not begun"
    BEGUN = "begun"
    COMPLETE = "complete"
    DIFFERENT = "made with another question or solver"


def state(cell: BenchmarkCell, folder: Path) -> tuple[CellState, Sequence[str]]:
    """The state of the cell's store in `folder`, and the differences of its study from the stored one."""
    store = cell.store(folder)
    if not (store / "journal.db").exists():
        return CellState.ABSENT, ()
    stored_study = read_study(store)
    if differences := StudyEdit(cell.study, store).differences:
        return CellState.DIFFERENT, differences
    limits = [s.stages[-1].budget.evaluations or 0 for s in (stored_study, cell.study)]
    if limits[0] > limits[1]:
        return CellState.DIFFERENT, [f"{limits[1]} evaluations instead of {limits[0]}"]
    same_budget = limits[0] == limits[1]
    complete = same_budget and Result.open(store, cell.study).ended == "done"
    return (CellState.COMPLETE if complete else CellState.BEGUN), ()


def states(cells: Sequence[BenchmarkCell], folder: Path) -> dict[CellState, list[BenchmarkCell]]:
    """The cells by state. Raises `StoreError` with all cells of another question, as no run may continue them."""
    by_state: dict[CellState, list[BenchmarkCell]] = {each: [] for each in CellState}
    for cell in cells:
        by_state[state(cell, folder)[0]].append(cell)
    return by_state


def refuse_different(cells: Sequence[BenchmarkCell], folder: Path) -> None:
    """Raises `StoreError` for cells whose stores have another question, with the differences of the first."""
    if not cells:
        return
    _, differences = state(cells[0], folder)
    count = f"{len(cells)} runs were made" if len(cells) > 1 else "a run was made"
    raise StoreError(
        f"{folder}: {count} with another question or solver; {cells[0].label}: {'; '.join(differences)}. "
        "Nothing was run. Give another folder with -o, or compute these runs again with --replace",
        folder,
    )
