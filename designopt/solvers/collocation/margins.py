"""Safety margins on limits of a study, in standard deviations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from designopt.collocation.statement.added.margins import with_margins
from designopt.collocation.statement.added.peaks import rows_of
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.plugin import InvalidSetting

#: The parameter that bounds the objective of all scenarios, and is minimised.
WORST = "worst_of_scenarios"


@dataclass(frozen=True)
class LimitMargins:
    """`times` standard deviations by the name of a limit or the objective of the study, or of a path constraint or
    state of the trajectory problem; `deviations` are those of numbers of the trajectory problem, in its units."""

    times: Mapping[str, float] = field(default_factory=dict)
    deviations: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_settings(cls, times: Mapping[str, float], deviations: Mapping[str, float]) -> LimitMargins:
        """From the settings of the solver; no margins without `times`. Raises `InvalidSetting` for `times` without
        deviations."""
        if not times:
            return NONE
        if not any(deviation > 0.0 for deviation in deviations.values()):
            text = "are in standard deviations, but no number has one: give 'deviations'"
            raise InvalidSetting("margins", text)
        return cls(dict(times), dict(deviations))

    def applied(
        self,
        base: TrajectoryProblem,
        limits: Mapping[str, Sequence[str]],
        sizes: Mapping[str, float],
        objective: str,
        peaks: Mapping[str, AbstractSet[str]],
    ) -> TrajectoryProblem:
        """`base` with the margins. `limits` maps the study's limits to the names of their constraints, `sizes` gives
        their scales, `peaks` the peaks in limits and objective. Raises `InvalidSetting` for unknown names."""
        if not self.times:
            return base
        if objective in self.times and WORST in {v.name for v in base.extra}:
            text = (
                "the worst of several scenarios has no single standard deviation: use another aggregation, "
                "or make it a limit"
            )
            raise InvalidSetting(f"margins.{objective}", text)
        multiples: dict[str, float] = {}
        for name, times in self.times.items():
            for label in limits.get(name, () if name == objective else (name,)):
                multiples[label] = times
            for peak in (p for label, p in base.peaks.items() if label.split(": ")[-1] in peaks.get(name, ())):
                for row in rows_of(peak):  # the bounding variable lies above the values, which need the margin
                    multiples[row] = max(times, multiples.get(row, 0.0))
        try:
            with_margin = with_margins(base, self.deviations, multiples, cost=self.times.get(objective, 0.0))
        except ProblemError as error:
            raise InvalidSetting(error.where.split(": ")[-1], str(error).removeprefix(f"{error.where}: ")) from error
        figures = dict(with_margin.figures)
        for name, labels in limits.items():
            for label in labels:
                if (margin := figures.get(f"margin({label})")) is not None:
                    figures[f"margin({label})"] = _Times(margin, sizes[name])
        return replace(with_margin, figures=figures)


@dataclass(frozen=True)
class _Times:
    """A figure in the unit of a limit."""

    figure: Callable[[Any], Any]
    size: float

    def __call__(self, e: Any) -> Any:
        return self.size * self.figure(e)


#: No margins.
NONE = LimitMargins()
