"""Results made of given numbers, so that what a report shows can be compared with what is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np

from designopt import aggregations
from designopt.plugin import Array, Plugin, Quantity, Use, find, model
from designopt.problem import Problem
from designopt.store.result import Result
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Objective, Scenario, Stage, StudyConstraint, StudyDefinition


class Given(TypedDict):
    """Figures whose numbers the tests give."""

    mass: Annotated[float, Quantity("kg", "mass of the beam")]
    sag: Annotated[float, Quantity("mm", "deflection at the end")]
    cost: Annotated[float, Quantity("", "relative price")]
    gaps: Annotated[float, Quantity("", "frames without a number", notable=True, listed_by="gap_sentences")]


@model("report_test_model", version=1, arrays={"gap_sentences": Array(("sentence",), dtype="str")})
def report_model(design: Mapping[str, float], scenario: Mapping[str, Any]) -> Given:
    """Never evaluated."""
    raise AssertionError("declared to be checked, never to be run")


def use(target: Any, **settings: Any) -> Use:
    plugin: Plugin = target.__designopt__
    return Use(plugin, settings)


WORST = use(aggregations.worst)
#: The solver of the only stage.
SAMPLER = Use(find("solver", "sobol"), {"samples": 4})
REAL = (
    DesignVariable("width", "real", low=10.0, high=100.0, unit="mm", scale="log"),
    DesignVariable("height", "real", low=0.0, high=1.0, unit="m"),
)


def minimize(name: str, unit: str = "") -> Objective:
    return Objective(name, Expression.parse(name), "minimize", WORST, unit)


def maximize(name: str, unit: str = "") -> Objective:
    return Objective(name, Expression.parse(name), "maximize", WORST, unit)


def at_most(name: str, limit: float, unit: str = "") -> StudyConstraint:
    return StudyConstraint(name, Expression.parse(name), WORST, maximum=limit, unit=unit)


@dataclass(frozen=True)
class GivenResult(Result):
    """A `Result` whose table is given instead of read from a journal; everything derived is the real thing."""

    table: Mapping[str, Any] = field(default_factory=dict)
    session: Mapping[str, Any] = field(default_factory=lambda: {"reason": "done"})

    outcomes = property(lambda self: self.table["outcomes"])
    status = property(lambda self: self.table["status"])
    reason = property(lambda self: self.table["reason"])
    stage = property(lambda self: self.table["stage"])
    wall = property(lambda self: self.table["wall"])
    counts = property(lambda self: {**self.counted(), "points": self.session.get("points", len(self.outcomes))})
    events = ()
    validated: Any = None

    def designs_of(self, stage: str) -> Any:
        """What the test gave for the stage, or each of its designs once."""
        requests = self.table.get("asked", {})
        return np.asarray(requests.get(stage, np.flatnonzero(self.stage == stage)), dtype=int)

    def validation(self) -> Any:
        return self.validated

    def programs(self) -> tuple[Any, ...]:
        return ()

    sessions = property(lambda self: ({"id": 1, "host": "<b>bench</b>", "versions": {"numpy": "2.4"}, **self.session},))

    def counted(self) -> dict[str, int]:
        designs, feasible = len(self.outcomes), int(self.outcomes.feasible.sum())
        return {"designs": designs, "feasible": feasible, "evaluations": self.status.size}

    def message(self, i: int, scenario: int = 0) -> str:
        return f"failed for <width> {self.outcomes.X[i, 0]:g}"

    def arrays(self, i: int, scenario: int = 0) -> dict[str, Any]:
        return {}


def beam_result(
    X: Any,
    figures: Mapping[str, Any],
    *,
    objectives: tuple[Objective, ...] = (minimize("mass", "kg"), minimize("sag", "mm")),
    constraints: tuple[StudyConstraint, ...] = (),
    space: tuple[DesignVariable, ...] = REAL,
    scenarios: tuple[str, ...] = ("nominal",),
    status: Any = None,
    stage: Any = None,
    plots: tuple[Use, ...] = (),
    title: str = "Beam",
    relations: tuple[str, ...] = (),
    stages: tuple[Stage, ...] | None = None,
    **more: Any,
) -> GivenResult:
    """A result with designs `X` (n, d) and `figures` (n,) or (n, s)."""
    X = np.array(X, dtype=float).reshape(-1, len([p for p in space if p.kind != "fixed"]))
    n, s = len(X), len(scenarios)
    study = StudyDefinition(
        name="beam",
        title=title,
        model=use(report_model),
        space=space,
        relations=tuple(Expression.parse(r) for r in relations),
        objectives=objectives,
        constraints=constraints,
        scenarios=tuple(Scenario(name) for name in scenarios),
        stages=(Stage("sweep", SAMPLER),) if stages is None else stages,
        plots=plots,
        text="study: beam",
        **more,
    )
    problem = Problem.from_study(study)
    given_values = {k: np.array(v, dtype=float).reshape(n, -1 if n else s) for k, v in figures.items()}
    values = {k: np.broadcast_to(v, (n, s)) for k, v in given_values.items()}
    statuses = np.full((n, s), "ok", dtype="U12") if status is None else np.array(status, dtype="U12").reshape(n, s)
    outside = problem.space.relation_violation(X) > 0.0
    statuses[outside] = "invalid"
    values = {k: np.where(statuses == "ok", v, np.nan) for k, v in values.items()}
    reason = np.where(statuses == "ok", "", "because").astype(object)
    reason[outside] = "relation"
    table = {
        "outcomes": problem.judge(X, values, statuses != "ok"),
        "status": statuses,
        "reason": reason,
        "stage": np.array(["sweep"] * n if stage is None else stage, dtype=str),
        "wall": np.full((n, s), 0.25),
    }
    return GivenResult(Path("beam.study"), study, problem, table)


def grid(**more: Any) -> GivenResult:
    """7 x 5 designs of known mass and sag, then 20 of a search, the last three of them failed."""
    width, height = np.geomspace(10, 100, 7), np.linspace(0, 1, 5)
    swept = np.array([(w, h) for w in width for h in height])
    searched = np.random.default_rng(4).uniform([10, 0], [100, 1], (20, 2))
    X = np.concatenate([swept, searched])
    status = ["ok"] * 52 + ["diverged", "diverged", "error"]
    scenarios = more.get("scenarios", ("nominal",))
    factor = 1.0 + 0.1 * np.arange(len(scenarios))
    figures = {
        "mass": X[:, :1] * (1 + X[:, 1:]) * factor,
        "sag": 100 / (1 + X[:, :1] * X[:, 1:]) * factor,
        "cost": (X[:, :1] - 40) ** 2 * factor,
    }
    return beam_result(
        X,
        figures,
        status=np.repeat(np.array(status)[:, None], len(scenarios), axis=1),
        stage=["sweep"] * 35 + ["search"] * 20,
        **more,
    )


#: Masses and sags: four designs on the front (0 to 3), one dominated, one that breaks mass <= 9.
POINTS = [(1.0, 8.0), (2.0, 4.0), (4.0, 2.0), (8.0, 1.0), (5.0, 5.0), (9.5, 0.5)]


def six_designs(**more: Any) -> GivenResult:
    """The designs of `POINTS`, whose front is known."""
    mass, sag = np.array(POINTS).T
    X = np.column_stack([10 + mass, sag / 10])
    return beam_result(X, {"mass": mass, "sag": sag}, constraints=(at_most("mass", 9.0, "kg"),), **more)
