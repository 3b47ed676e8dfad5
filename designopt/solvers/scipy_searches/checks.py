"""Problems that a search through SciPy does not support, rejected when the study is checked."""

from __future__ import annotations

from designopt.plugin import InvalidSetting
from designopt.problem import Problem


def check_free(name: str, problem: Problem) -> None:
    """Raises `InvalidSetting` for a problem without a free parameter."""
    if not problem.space.free:
        raise InvalidSetting("use", f"{name} needs a free parameter")


def check_real(name: str, problem: Problem) -> None:
    """Raises `InvalidSetting` for parameters that are not real."""
    check_free(name, problem)
    for p in problem.space.free:
        if p.kind != "real":
            kind = "an integer" if p.kind == "int" else "a choice"
            raise InvalidSetting(
                "use", f"{name} moves real parameters only and '{p.name}' is {kind}; give it one value"
            )


def check_single(name: str, problem: Problem) -> None:
    """Raises `InvalidSetting` unless there is one objective."""
    if len(problem.objectives) != 1:
        raise InvalidSetting("use", f"{name} has one objective; this study has {len(problem.objectives)}")
