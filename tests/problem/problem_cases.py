"""Problems without a model that is ever evaluated, for all tests of this folder."""

from dataclasses import dataclass
from typing import Annotated, TypedDict

from designopt.plugin import InputFile, Quantity, Use, find, model, objective
from designopt.problem import Problem
from designopt.space import Space
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Objective, Scenario, StudyConstraint


class Figures(TypedDict):
    f: float
    g: float


@dataclass(frozen=True)
class Solver:
    """A group of settings inside a setting."""

    tolerance: float = 1e-8


@model("problem_test", version=3)
def problem_test(
    design, scenario, *, gain: float = 2.0, data: InputFile | None = None, solver: Solver = Solver()
) -> Figures:
    """Never evaluated."""
    raise AssertionError("declared to be checked, never to be run")


@objective("problem_test_peak", version=1)
def problem_test_peak(f, *, window: int = 3) -> Annotated[float, Quantity("", "peak")]:
    """Never evaluated."""
    raise AssertionError("declared to be checked, never to be run")


def over(name: str = "worst", **settings) -> Use:
    return Use(find("aggregation", name), settings)


def minimized(text: str, direction="minimize", aggregation: Use | None = None) -> Objective:
    return Objective(text, Expression.parse(text), direction, aggregation or over())


def limit(text: str, aggregation: Use | None = None, **limits: float) -> StudyConstraint:
    return StudyConstraint("limit", Expression.parse(text), aggregation or over(), **limits)


def real(name: str, low: float = 0.0, high: float = 1.0, **options) -> DesignVariable:
    return DesignVariable(name, "real", low, high, **options)


def problem(*parameters: DesignVariable, settings=None, relations=(), **options) -> Problem:
    return Problem(
        model=options.pop("model", Use(find("model", "problem_test"), settings or {})),
        space=Space(parameters or (real("x"),), tuple(Expression.parse(r) for r in relations)),
        scenarios=options.pop("scenarios", (Scenario("nominal"),)),
        objectives=options.pop("objectives", (minimized("f"),)),
        **options,
    )


MIXED = Space(
    (
        real("x", -1.0, 2.0),
        real("k", 0.3, 700.0, scale="log"),
        DesignVariable("mass", "fixed", values=(3.5,)),
        DesignVariable("n", "int", -2, 3),
        DesignVariable("kind", "choice", values=("soft", "hard", "none")),
    )
)


CONDITIONAL = (
    DesignVariable("kind", "choice", values=("spring", "rubber")),
    real("stiffness", 1.0, 9.0, when={"kind": ("spring",)}),
    real("x"),
)
