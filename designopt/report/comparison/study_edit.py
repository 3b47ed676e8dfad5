"""A study that was edited after its run: how it differs from the one in a store, and what can be done about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from designopt.counts import plural
from designopt.problem import Problem
from designopt.report.comparison.differences import differences
from designopt.run.evaluations.recall import REUSABLE, evaluations_with_same_keys
from designopt.store import archive
from designopt.store.errors import StoreError
from designopt.store.folder import read_study
from designopt.store.rescore import same_evaluations
from designopt.store.result import Result
from designopt.study.study import StudyDefinition


@dataclass(frozen=True)
class StudyEdit:
    """The `study` against the one in the existing folder `store`.

    Raises `StoreError` from its properties if the store cannot be read.
    """

    study: StudyDefinition
    store: Path

    @cached_property
    def stored_study(self) -> StudyDefinition:
        """The study in the store."""
        return read_study(self.store)

    @cached_property
    def differences(self) -> list[str]:
        """Clauses about the differences that make it another search; none if a run of the study continues the store.

        Other budgets, execution and presentation do not: a run that continues uses those of the study.
        """
        if same_search(self.stored_study, self.study):
            return []
        budgets = {stage.name: stage.budget for stage in self.stored_study.stages}
        stages = tuple(dataclasses.replace(s, budget=budgets.get(s.name, s.budget)) for s in self.study.stages)
        with_stored_budgets = dataclasses.replace(self.study, stages=stages)
        return differences(self.stored_study, with_stored_budgets) or ["details of the model's inputs or of the stages"]

    @property
    def rescorable(self) -> bool:
        """Whether only what is made of the results differs: objectives, limits, recorded figures."""
        return same_evaluations(self.stored_study, self.study) and _search(self.stored_study) == _search(self.study)

    @cached_property
    def beside(self) -> Path:
        """The store for a run beside this one, ``NAME.2.study``: one of the same search, or the first free name."""
        return next(path for path in _candidate_paths(self.store) if not _is_store(path) or self._continues(path))

    @property
    def sources(self) -> list[Path]:
        """The stores from which a run beside this one takes evaluations with the same keys."""
        earlier = [path for path in _until(self.beside, self.store) if _readable(path)]
        return [self.store, *earlier]

    @property
    def start_hint(self) -> str:
        """How a search begins from what the store knows, of which it takes over only designs that it proposes again; ""
        for samples, which propose the same designs, and where the stages begin from other designs."""
        if not any(stage.solver.plugin.uses_start and stage.start_from is None for stage in self.study.stages):
            return ""
        folder = self.study.path.absolute().parent if self.study.path else Path.cwd()
        store = self.store.absolute()
        if store.is_relative_to(folder):
            way = f"start_from: {{store: {store.relative_to(folder)}}} in a stage"
        else:
            way = f"--set stages.STAGE.start_from.store={store}"
        return f"takes over only designs that the search proposes again; to begin from the others: {way}"

    def _continues(self, path: Path) -> bool:
        try:
            return same_search(read_study(path), self.study)
        except StoreError:
            return False

    def rescore(self) -> Result:
        """The evaluations of the store scored by the study. Raises `StoreError` if that needs a simulation."""
        return Result.open(self.store, self.stored_study).scored_by(self.study, self.differences)

    def ways(self) -> list[tuple[str, str]]:
        """Options of ``designopt run`` with their consequences, most useful first."""
        reusable, total = evaluations_with_same_keys(self.store, Problem.from_study(self.study))
        its_evaluations = f"its {plural(total, 'evaluation')}" if total else "its evaluations"
        reuse = (
            f"takes over evaluations with the same keys: up to {reusable} of {total}{self._moved()}{self._repeated()}"
        )
        if _is_store(self.beside):
            beside = f"continue {self.beside}, which has this question"
        else:
            beside = f"a new store, {self.beside}; {reuse if reusable else 'nothing can be taken over'}"
        rescore = f"score {its_evaluations} by the edited objectives and limits; computes nothing"
        return [
            *([("--rescore", rescore)] if self.rescorable else []),
            ("--beside", beside),
            ("--replace", "a new run in its place; its results are deleted"),
        ]

    def _moved(self) -> str:
        """A clause on stages that propose other points in another space."""
        if self.stored_study.space == self.study.space or self.study.lists_designs:
            return ""
        return ", of those that the stages propose again: another space moves the points of a grid or a sample"

    def _repeated(self) -> str:
        """A clause on failures that are not taken over: they may depend on the machine."""
        failures = Result.open(self.store, self.stored_study).failures()
        number = sum(n for (status, _), n in failures.items() if status not in REUSABLE)
        return f"; {plural(number, 'failed one')} {'is' if number == 1 else 'are'} computed again" if number else ""


def same_search(a: StudyDefinition, b: StudyDefinition) -> bool:
    """Whether both studies ask the same question in the same way, so that a run of one continues that of the other."""
    return Problem.from_study(a).digest == Problem.from_study(b).digest and _search(a) == _search(b)


def _search(study: StudyDefinition) -> Any:
    """The seed and the stages without their budgets, as data."""
    stages = tuple(dataclasses.replace(stage, budget=type(stage.budget)()) for stage in study.stages)
    return study.seed, archive.encode(dataclasses.replace(study, stages=stages))["stages"]


def _is_store(path: Path) -> bool:
    return (path / "journal.db").exists()


def _readable(path: Path) -> bool:
    try:
        read_study(path)
    except StoreError:
        return False
    return True


def _candidate_paths(store: Path) -> Iterator[Path]:
    """``NAME.2.study``, ``NAME.3.study`` and so on, beside ``NAME.study``; beside ``NAME.2.study`` they begin with
    ``NAME.3.study``, if ``NAME.study`` is a store."""
    suffix = store.suffix if not store.suffix[1:].isdigit() else ""
    name, number = store.name.removesuffix(suffix), 2
    first, _, last = name.rpartition(".")
    if first and last.isdigit() and _is_store(store.with_name(f"{first}{suffix}")):
        name, number = first, int(last) + 1
    while True:
        yield store.with_name(f"{name}.{number}{suffix}")
        number += 1


def _until(last: Path, store: Path) -> Iterator[Path]:
    for path in _candidate_paths(store):
        if path == last:
            return
        yield path
