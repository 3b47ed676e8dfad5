"""Results of a store, for reading."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt import decision
from designopt.arrays import Floats
from designopt.counts import plural
from designopt.printable import one_line
from designopt.problem import Outcomes, Problem
from designopt.solvers.listed_designs import listed_names, rows_by_name
from designopt.store.errors import RunError, StoreError, made_elsewhere, plugin_files, reading, scoring
from designopt.store.folder import read_study
from designopt.store.journal import recorded_designs
from designopt.store.journal.reader import JournalReader
from designopt.store.rescore import changed_study, same_evaluations, with_scores_of
from designopt.store.views import activity, importance, presentation, statuses, table, volume
from designopt.store.views.activity import Activity, BoundShare
from designopt.store.views.cheap import read_cheap
from designopt.store.views.choices import ROBUST, Choices
from designopt.store.views.programs import ProgramRecord, best_program, better_motions, read_programs, stated_programs
from designopt.store.views.single_evaluations import SingleEvaluations
from designopt.store.views.tolerances import ToleranceResults, read_neighbours
from designopt.store.views.validation import ValidationResults, read_validation
from designopt.study.language.errors import StudyError
from designopt.study.stated_units import in_stated_units, stated_designs
from designopt.study.study import StudyDefinition

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects

Rows = Sequence[int] | NDArray[Any]


@dataclass(frozen=True)
class Result:
    """A read-only view of the store `path`, as of its first access. Rows are distinct designs in ask order.

    `problem` scores the records. After `with_changes`, `original` is the result as it was run and `changes` are the
    applied texts. A run that ends here leaves its records as `contents`, which are not read again. `stored` is the same
    result in the units of the store, if this one is `in_stated_units`. Figures of single designs show those whose rows
    are `rows_in_figures`, the chosen ones if empty.
    """

    path: Path
    study: StudyDefinition
    problem: Problem
    original: Result | None = field(default=None, kw_only=True)
    changes: tuple[str, ...] = field(default=(), kw_only=True)
    contents: recorded_designs.Contents | None = field(default=None, kw_only=True, repr=False, compare=False)
    stored: Result | None = field(default=None, kw_only=True, repr=False, compare=False)
    rows_in_figures: tuple[int, ...] = field(default=(), kw_only=True)

    def __repr__(self) -> str:
        return one_line(f"<Result of {self.study.name} in {self.path}: {plural(len(self.outcomes), 'design')}>")

    def __str__(self) -> str:
        """The chosen designs as a table, their number, and the command for all designs."""
        verdict = self.recommended(), self.first_choice()
        notes = presentation.better_motion_notes(self.problem.objectives, self.chosen(), self.better_motions)
        return self._summary().text(self.path, *verdict, self.code_differences, self.never_finite(), notes)

    def _summary(self) -> presentation.Summary:
        result, title = self.in_stated_units, self.study.title or self.study.name
        free = result.problem.space.names
        columns = [c for c in result.columns() if c.role == "objective" or (c.role == "parameter" and c.of in free)]
        return presentation.Summary(title, self.counts, len(self.front()), columns, self.chosen())

    @classmethod
    def open(
        cls, path: str | Path, study: StudyDefinition | None = None, *, data: Mapping[str, Path] | None = None
    ) -> Result:
        """The result in the folder `path`, without running code of the store. Raises `StoreError` if it is not a store.

        Plugins come from `study`, by default from the installed ones. `data` gives the folders of data roots, needed
        only to evaluate designs again.
        """
        path = Path(path)
        study = study or read_study(path, data)
        result = cls(path, study, Problem.from_study(study))
        with result._journal():
            pass
        return result

    def with_changes(self, overrides: Sequence[str]) -> Result:
        """The same evaluations scored by other objectives or limits, or presented in another way, without computation.

        `overrides` are ``"key=value"`` texts as for ``--set``, such as ``"objectives.0.over=mean"``. They may change
        objectives, constraints, the report, title and description, and use every recorded figure. Raises `StudyError`
        for texts that give an invalid study, `StoreError` for a change that needs a simulation.
        """
        if self.stored is not None:
            return self.stored.with_changes(overrides).in_stated_units
        original, changes = self.original or self, (*self.changes, *overrides)
        try:
            study = changed_study(original.study, self.path, changes, lambda: original.outcomes.figures)
        except StudyError as error:
            if files := plugin_files(self.path):
                store = f"open_store({str(self.path)!r}, plugin_files={files})"
                error.add_note(f"The run used {', '.join(files)}, which may be needed here too: {store}")
            raise
        return Result(self.path, study, Problem.from_study(study), original=original, changes=changes)

    def scored_by(self, study: StudyDefinition, changes: Sequence[str] = ()) -> Result:
        """The same evaluations scored by the objectives and limits of `study`, without computation; `changes` describe
        them. Raises `StoreError` if something else differs, or needs a simulation."""
        if self.stored is not None:
            return self.stored.scored_by(study, changes).in_stated_units
        original = self.original or self
        if not same_evaluations(original.study, study):
            raise StoreError(
                f"{self.path}: its model, space or scenarios differ from those of '{study.name}'", self.path
            )
        definition = with_scores_of(study, original.study, self.path, lambda: original.outcomes.figures)
        return Result(self.path, definition, Problem.from_study(definition), original=original, changes=tuple(changes))

    @property
    def recorded_problem(self) -> Problem:
        """The problem that wrote the store."""
        result = self.stored or self
        return result.original.problem if result.original else result.problem

    @cached_property
    def in_stated_units(self) -> Result:
        """This result with parameters in the units in which the study writes their ranges, for presentation; itself if
        these are the units of the store.

        Evaluations keep the units of the store: numbers converted to and fro may differ in the last digit.
        """
        study = in_stated_units(self.study)
        if self.stored is not None or study is self.study:
            return self
        original = self.original.in_stated_units if self.original else None
        return replace(self, study=study, problem=Problem.from_study(study), original=original, stored=self)

    def keys(self, rows: Rows | None = None) -> list[list[bytes]]:
        """Evaluation keys (16 bytes each) of designs (default: all), a list over scenarios per design."""
        X = (self.stored or self).outcomes.X
        return self.recorded_problem.keys(X if rows is None else X[np.asarray(rows, np.int64)])

    # ------------------------------------------------------------------------------------------------- designs

    @property
    def outcomes(self) -> Outcomes:
        """All distinct designs with their objectives, violations and figures, in ask order."""
        return self._record.outcomes

    @property
    def status(self) -> NDArray[np.str_]:
        """Status (one of `STATUSES`) of each design in each scenario (n, s)."""
        return self._record.status

    @property
    def missing(self) -> NDArray[np.int64]:
        """Number of scenarios (n,) without a result for each design; the study limits it."""
        return np.asarray((self.status != "ok").sum(axis=1), np.int64)

    @property
    def reason(self) -> NDArray[np.object_]:
        """Failure reasons (n, s) within one status; "" for successes."""
        return self._record.reason

    @property
    def stage(self) -> NDArray[np.str_]:
        """The stage (n,) that first requested each design."""
        return self._record.stage

    @property
    def wall(self) -> Floats:
        """Time of each evaluation (n, s) in s; 0 if not evaluated."""
        return self._record.wall

    def designs_of(self, stage: str) -> NDArray[np.int64]:
        """Rows of the designs requested by `stage`, in its ask order, with repetitions.

        -1 for an incomplete design; empty for a stage that has not begun. Raises `KeyError` for an unknown name.
        """
        if stage not in self._record.points:
            if stage in (s.name for s in self.study.stages):
                return np.empty(0, np.int64)
            raise KeyError(f"no stage named '{stage}' (known: {', '.join(s.name for s in self.study.stages)})")
        return self._record.designs_of(stage)

    def message(self, i: int, scenario: int | str = 0) -> str:
        """The message of design `i` in a scenario; "" for a success."""
        return self._evaluations.message(i, scenario)

    def printed(self, i: int, scenario: int | str = 0) -> str:
        """The last kilobytes printed on a worker by the evaluation of design `i` in a scenario."""
        return self._evaluations.printed(i, scenario)

    def arrays(self, i: int, scenario: int | str = 0) -> dict[str, NDArray[Any]]:
        """The stored arrays by name of design `i` in a scenario (number or name); empty without any.

        Raises `KeyError` for an unknown scenario, `IndexError` for an unknown design, and `StoreError` if arrays are
        missing or damaged.
        """
        return self._evaluations.arrays(i, scenario)

    @cached_property
    def _evaluations(self) -> SingleEvaluations:
        names, keys_of = [s.name for s in self.recorded_problem.scenarios], cache(lambda i: self.keys([i])[0])
        return SingleEvaluations(self.path, names, len(self.outcomes), keys_of, self._journal)

    # ------------------------------------------------------------------------------------------ what is good

    def front(self) -> NDArray[np.int64]:
        """Rows of the nondominated feasible designs, sorted by the first objective; empty without objectives."""
        return self._choices.front.copy()

    @cached_property
    def _choices(self) -> Choices:
        return Choices(self.study, self.problem, self.outcomes, self.tolerated, frozenset(self.baseline.values()))

    def compromise(self) -> int | None:
        """The row of the front nearest to its ideal point, with each objective's range on the front scaled to 1."""
        return self._choices.compromise()

    def least_violating(self) -> int | None:
        """The row of the design with the smallest violation of the limits; None if a design is feasible, or none has a
        result or an objective."""
        return self._choices.least_violating()

    def chosen(self) -> dict[str, int]:
        """Labelled rows: the best design of each objective, those selected by the study's rules of choice, the
        baseline.

        Without rules, or with `robust` alone, the compromise between several objectives is included. A rule without a
        result on this front (no knee) is omitted. The most robust design is also included if it is the `recommended`
        one.
        """
        rows, recommendation = self._choices.selections(), self.recommended()
        if recommendation is not None and recommendation[1] not in rows.values():
            rows[ROBUST] = recommendation[1]
        return {**rows, **{name: row for name, row in self.baseline.items() if name not in rows}}

    def rows_by_name(self) -> dict[str, int]:
        """Rows by every name that commands take for a design: the labels of `chosen`, the designs that the study
        names, the rules of the study (``knee``; of several with one name the first), and ``recommended``,
        ``compromise`` and, with a single objective, ``best``."""
        return {**self._choices.by_general_name(), **self.named, **self.chosen()}

    def recommended(self) -> tuple[str, int] | None:
        """The recommended design, label and row: the selection of the study's first rule of choice that has one, the
        compromise without rules, the best design of a single objective.

        If fewer than `ENOUGH` of its neighbours within the tolerances meet all limits, it is the most robust design
        other than the baseline, provided that at least `ENOUGH` of the neighbours of that design do. None without a
        feasible design; see also `first_choice`.
        """
        return self._choices.recommended()

    def first_choice(self) -> tuple[str, int] | None:
        """The `recommended` design without tolerances, label and row; None also if the stages only sample for
        sensitivity indices."""
        return self._choices.first_choice()

    @cached_property
    def baseline(self) -> dict[str, int]:
        """Rows of the baseline designs by name, as far as they have a result."""
        stage = self.study.baseline
        names = () if stage is None else listed_names(stage.solver)
        rows = {name: self.named[name] for name in names if name in self.named}
        return {name: row for name, row in rows.items() if not self.outcomes.failed[row]}

    @cached_property
    def named(self) -> dict[str, int]:
        """Rows of the designs that the study gives by name, as far as complete."""
        return rows_by_name([(stage.solver, self.designs_of(stage.name)) for stage in self.study.stages])

    def attained_bounds(self, rows: Rows | None = None, near: float = activity.NEAR) -> list[BoundShare]:
        """Bounds of the space that designs (default: the front) have reached, within the share `near` of the range:
        (parameter, "low" or "high", share)."""
        return activity.attained_bounds(self.problem.space, self.outcomes.X[self._rows_or_front(rows)], near)

    def constraint_activity(self, rows: Rows | None = None) -> list[Activity]:
        """The share of designs (default: the front) at the limit of each constraint, the share beyond, and the smallest
        margin in its unit."""
        return activity.constraint_activity(self.problem, self.outcomes, self._rows_or_front(rows))

    def _rows_or_front(self, rows: Rows | None) -> NDArray[np.int64]:
        return self.front() if rows is None else np.asarray(rows, np.int64)

    def validation(self) -> ValidationResults | None:
        """The chosen designs in the validation scenarios; None without any, or before they are evaluated."""
        return self._validation

    @cached_property
    def _validation(self) -> ValidationResults | None:
        if self.stored is not None:
            return self.stored.validation()
        validation, X, rows_by_label = self.study.validate, self.outcomes.X, self.chosen()
        if validation is None:
            return None
        with self._journal() as journal, scoring(self.path):
            return read_validation(journal, self.recorded_problem, self.problem, validation, X, rows_by_label)

    @cached_property
    def cheap(self) -> Outcomes | None:
        """The designs that a search evaluated cheaply (`designopt.plugin.Fidelity`), which other results exclude; None
        without any."""
        if self.stored is not None:
            return self.stored._with_stated_designs(self.stored.cheap) if self.stored.cheap is not None else None
        if self.recorded_problem.fidelity is None:
            return None
        with self._journal() as journal, scoring(self.path):
            return read_cheap(journal, self.recorded_problem)

    @cached_property
    def cheap_wall(self) -> float:
        """The total time (s) of the evaluations of `cheap`."""
        if self.cheap is None:
            return 0.0
        with self._journal() as journal:
            return sum(wall or 0.0 for (wall,) in journal.evaluations("wall", "cheap"))

    def tolerated(self) -> ToleranceResults | None:
        """Designs and their neighbours within the tolerances of the parameters; None before any are evaluated, and if
        the study asks for none."""
        return self._neighbours

    @cached_property
    def _neighbours(self) -> ToleranceResults | None:
        if self.stored is not None:
            return self.stored.tolerated()
        study = (self.original or self).study
        if study.tolerances is None or study.tolerances.neighbours == 0:  # neighbours on record are not shown either
            return None
        problems, rows = (self.recorded_problem, self.problem), self._record
        with self._journal() as journal, scoring(self.path):
            return read_neighbours(journal, *problems, study.tolerances, study.seed, rows.outcomes.X, rows.numbers)

    def most_robust(self) -> int | None:
        """The row of the feasible design with the most neighbours that meet all limits; ties go to the design whose
        worst neighbours are nearest to the ideal point. None if no feasible design has neighbours."""
        return self._choices.most_robust()

    def importance(self) -> Floats:
        """The share (m, d) of the variation of each objective that each free parameter explains alone, from 0 to 1: see
        `designopt.store.views.importance`."""
        return importance.importance(self.problem, self.outcomes)

    def programs(self) -> tuple[ProgramRecord, ...]:
        """The programs solved by solvers (`collocation`), with their solutions; empty without any."""
        return self._programs

    @cached_property
    def _programs(self) -> tuple[ProgramRecord, ...]:
        if self.stored is not None:
            return stated_programs(self.stored.programs(), self.stored.study.space)
        with self._journal() as journal:
            return read_programs(journal, self.recorded_problem, (self.original or self).study, self.path)

    def best_program(self) -> ProgramRecord | None:
        """The program with the best objective; None without a solved one."""
        programs = self.programs()
        return best_program(programs, self.problem.objectives[0].sign) if programs else None

    @cached_property
    def better_motions(self) -> Mapping[int, float]:
        """The objective of the motion that a program found for a design, by row, where it is better than that of the
        model's own evaluation; none after `with_changes`, for which programs have other objectives."""
        if self.stored is not None:
            return self.stored.better_motions
        programs = self.programs()
        if self.original is not None or not programs:
            return {}
        stages = {program.stage for program in programs}
        rows = [row for stage in stages for row in self.designs_of(stage).tolist() if row >= 0]
        return better_motions(programs, self.problem, self.outcomes, rows)

    # --------------------------------------------------------------------------------------------- hypervolume

    @property
    def study_reference_point(self) -> Mapping[str, float]:
        """The study's reference point, by objective in its own direction.

        ``report.reference``, else that of a stage's hypervolume budget.
        """
        return volume.study_reference_point(self.study, self.problem)

    def reference(self) -> Floats | None:
        """The fixed reference point (m,) of the hypervolume, for minimised objectives.

        The study's ``report.reference``, else that of a stage's hypervolume budget, else the worst values of the front
        plus a tenth of its range (None without a front of several objectives).
        """
        return volume.reference(self.problem, self.study_reference_point, self.outcomes.objectives[self.front()])

    def hypervolume(self, rows: Rows | None = None) -> float | None:
        """The hypervolume that designs (default: the front) dominate with respect to `reference`, in the objectives'
        units."""
        objectives, reference = self.outcomes.objectives[self._rows_or_front(rows)], self.reference()
        return None if reference is None else decision.hypervolume(objectives, reference)

    def hypervolume_history(self) -> tuple[NDArray[np.int64], Floats]:
        """Numbers of designs during the run, and the hypervolume at these times. Empty without a `reference`."""
        return volume.history(self.outcomes, self.reference())

    # --------------------------------------------------------------------------------------------- bookkeeping

    @property
    def _own_statuses(self) -> tuple[NDArray[np.str_], NDArray[np.object_]]:
        """Status and reason (n, k) in the scenarios with evaluations of their own."""
        columns = sorted(set(self.recorded_problem.first_occurrence))
        return self.status[:, columns], self.reason[:, columns]

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of points (proposals), designs, feasible designs, evaluations, and evaluations by status."""
        return {
            "points": sum(map(len, self._record.points.values())),
            "designs": len(self.outcomes),
            "feasible": int(self.outcomes.feasible.sum()),
            **statuses.counts(*self._own_statuses),
        }

    def failures(self) -> dict[tuple[str, str], int]:
        """Number of failed evaluations by status and reason, most frequent first."""
        return statuses.failures(*self._own_statuses)

    def never_finite(self) -> str:
        """The output that was not finite in any evaluation, in a clause; "" if some ended otherwise."""
        return statuses.never_finite(*self._own_statuses)

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Events: mappings with time, session, kind and text."""
        return self._records("event")

    @property
    def code_differences(self) -> list[str]:
        """Reports of code changed under the same version between the sessions, each once."""
        return list(dict.fromkeys(str(event["text"]) for event in self.events if event["kind"] == "code"))

    @cached_property
    def sessions(self) -> list[dict[str, Any]]:
        """The processes that worked on this store: start, end, reason of the end, executor, versions (a mapping)."""
        with reading(self.path):
            return [{**row, "versions": json.loads(row["versions"] or "{}")} for row in self._records("session")]

    @property
    def elapsed(self) -> float | None:
        """Elapsed time of all completed sessions (s); None without one."""
        spans = [s["ended"] - s["started"] for s in self.sessions if s.get("started") and s.get("ended")]
        return float(sum(spans)) if spans else None

    @property
    def ended(self) -> str:
        """The reason for the end of the last session: done, interrupted, failure policy, error; "not ended" while it
        runs."""
        last = self.sessions[-1] if self.sessions else {}
        return str(last.get("reason") or "not ended")

    @property
    def made_elsewhere(self) -> bool:
        """Whether evaluations were asked for, to be made in a laboratory or by another program."""
        return made_elsewhere(self.sessions)

    def _records(self, name: str) -> list[dict[str, Any]]:
        with self._journal() as journal:
            return journal.records(name)

    # ------------------------------------------------------------------------------------------------- showing

    def to_pandas(self, rows: Rows | None = None, *, scenarios: bool = True) -> pandas.DataFrame:
        """Designs as a table: parameters, objectives (in their own direction), violation, stage, figures by scenario.

        `rows` selects some, default all; without `scenarios` the columns of single scenarios are left out. Needs pandas
        (``pip install 'designopt[export]'``).
        """
        columns = self.columns() if scenarios else [column for column in self.columns() if not column.scenario]
        return table.to_pandas(columns, slice(None) if rows is None else rows, scenarios=self.status.shape[1])

    def columns(self) -> list[table.Column]:
        """The table of all designs, column by column, as in exports."""
        return table.columns(self.problem, self._record)

    def plot(
        self, part: str = "", number: int = 0, *, dark: bool = False, **settings: Any
    ) -> plotly.graph_objects.Figure:
        """Figure `number` of a report part as a Plotly figure for notebooks, with its first selection. `settings` are
        those of the part.

        The default `part` is the front, for one objective its convergence. Raises `ValueError` if the part has nothing
        to show or fewer figures, `PluginError` for an unknown part and `TypeError` for an unknown setting.
        """
        part = part or ("front" if len(self.problem.objectives) > 1 else "convergence")
        return presentation.figure(self.in_stated_units, part, number, dark, settings)

    def _repr_html_(self) -> str:
        """The chosen designs as a table, for notebooks."""
        return self._summary().html()

    # ------------------------------------------------------------------------------------------------- reading

    @contextlib.contextmanager
    def _journal(self) -> Iterator[JournalReader]:
        with reading(self.path), contextlib.closing(JournalReader.read(self.path, self.recorded_problem)) as journal:
            yield journal

    @cached_property
    def _record(self) -> recorded_designs.RecordedDesigns:
        if self.stored is not None:
            record = self.stored._record
            return replace(record, outcomes=self.stored._with_stated_designs(record.outcomes))
        with self._journal() as journal, scoring(self.path):
            contents = (self.original or self).contents or recorded_designs.read(journal, self.recorded_problem)
            return recorded_designs.combine(contents, journal.all_points(), self.recorded_problem, self.problem)

    def _with_stated_designs(self, outcomes: Outcomes) -> Outcomes:
        """`outcomes` with designs in stated units."""
        return replace(outcomes, X=stated_designs(self.study, outcomes.X))


RunError.opener = Result.open
