"""Problems for the conformance test of solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.plugin import Diverged, InvalidDesign
from designopt.problem import Problem
from designopt.study.study import DesignVariable, Scenario
from designopt.testing.evaluation import problem_from


def conformance_problems(objectives: int) -> tuple[Problem, ...]:
    """Problems with one or two objectives for the conformance test of solvers.

    All kinds of parameters with a limit, a relation, scenarios and a failing corner; conditional parameters with
    designs that the model rejects; a smooth problem of real parameters; and problems in which every design fails,
    violates the limit or violates the relation.
    """
    names = ("f", "g")[:objectives]
    plane = (DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0))

    def mixed(design: Mapping[str, Any], scenario: Mapping[str, Any]) -> Mapping[str, float]:
        x, k, n = design["x"], design["k"], design["n"]
        if x > 0.9 and n > 0:
            raise Diverged("no answer here")
        shift = {"soft": 0.0, "hard": 0.3}[design["kind"]] + 0.1 * scenario.get("slope", 0.0)
        return {"f": x**2 + 0.1 * n**2 + shift, "g": (x - 1.0) ** 2 + np.log10(k) ** 2 + 0.05 * n, "h": x * k}

    def conditional(design: Mapping[str, Any], scenario: Mapping[str, Any]) -> Mapping[str, float]:
        pressure = design.get("pressure", 0.5)
        if pressure > 1.9:
            raise InvalidDesign("it would burst")
        return {"f": (design["x"] - 0.2) ** 2 + pressure, "g": (design["x"] - 0.7) ** 2 - 0.1 * pressure * design["n"]}

    def smooth(design: Mapping[str, Any], scenario: Mapping[str, Any]) -> Mapping[str, float]:
        x, y = design["x"], design["y"]
        return {"f": (x - 0.3) ** 2 + x * y + y**2, "g": (x - 0.8) ** 2 + (y - 0.6) ** 2, "h": x + y}

    def hopeless(design: Mapping[str, Any], scenario: Mapping[str, Any]) -> Mapping[str, float]:
        raise Diverged("never an answer")

    return (
        problem_from(
            mixed,
            (
                DesignVariable("x", "real", -1.0, 2.0),
                DesignVariable("k", "real", 0.01, 100.0, scale="log"),
                DesignVariable("n", "int", -2, 3),
                DesignVariable("kind", "choice", values=("soft", "hard")),
                DesignVariable("mass", "fixed", values=(3.0,)),
            ),
            minimize=names,
            limits={"h": 50.0},
            relations=("n <= 3 + x",),
            scenarios=(Scenario("flat"), Scenario("steep", {"slope": 1.0})),
        ),
        problem_from(
            conditional,
            (
                DesignVariable("spring", "choice", values=("steel", "air")),
                DesignVariable("pressure", "real", 0.1, 2.0, scale="log", when={"spring": ("air",)}),
                DesignVariable("x", "real", 0.0, 1.0),
                DesignVariable("n", "int", 4, 4),
            ),
            minimize=names,
        ),
        problem_from(smooth, plane, minimize=names, limits={"h": 1.0}),
        problem_from(hopeless, plane, minimize=names),
        problem_from(smooth, plane, minimize=names, limits={"h": -1.0}),
        problem_from(smooth, plane, minimize=names, relations=("x + y >= 3",)),
    )
