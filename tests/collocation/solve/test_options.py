"""Settings of a solve. Specification: direct_collocation, section 3."""

from typing import Any

import benchmark_problems
import pytest

from designopt.collocation import Options, ProblemError, Refinement
from designopt.collocation.statement.options import CHOICES


def named(**settings: Any) -> tuple[str, int]:
    scheme = Options(**settings).scheme_for(benchmark_problems.cart_pole())
    return scheme.name, scheme.degree


@pytest.mark.parametrize(
    ("settings", "scheme"),
    [
        ({}, ("hermite_simpson", 0)),
        ({"scheme": "trapezoidal"}, ("trapezoidal", 0)),
        ({"refine": Refinement()}, ("radau", 3)),
        ({"refine": Refinement(1e-7)}, ("radau", 5)),
        ({"refine": Refinement(1e-7), "degree": 4}, ("radau", 4)),
        ({"refine": Refinement(), "scheme": "hermite_simpson"}, ("hermite_simpson", 0)),
        ({"refine": Refinement(), "midpoint_control": "linear"}, ("hermite_simpson", 0)),
        ({"degree": 2}, ("radau", 2)),
    ],
)
def test_the_automatic_scheme_follows_from_the_other_settings(
    settings: dict[str, Any], scheme: tuple[str, int]
) -> None:
    assert named(**settings) == scheme


def test_settings_reach_the_scheme() -> None:
    problem = benchmark_problems.cart_pole()
    assert len(Options(midpoint_control="linear").scheme_for(problem).control_rows) == 1
    assert len(Options().scheme_for(problem).control_rows) == 0


@pytest.mark.parametrize(
    ("settings", "where", "needed"),
    [
        ({"scheme": "hermite_simpson", "degree": 3}, "degree", "radau"),
        ({"scheme": "radau", "midpoint_control": "linear"}, "midpoint_control", "hermite_simpson"),
        ({"degree": 3, "midpoint_control": "linear"}, "degree", "radau"),
        ({"scheme": "hermite_simpson", "refine": Refinement(method="hp")}, "refine.method", "radau"),
        ({"midpoint_control": "linear", "refine": Refinement(method="hp")}, "refine.method", "radau"),
    ],
)
def test_a_setting_of_another_scheme_is_refused(settings: dict[str, Any], where: str, needed: str) -> None:
    with pytest.raises(ProblemError, match=f"is a setting of the scheme {needed}, not of") as refused:
        Options(**settings)
    assert (refused.value.status, refused.value.where) == ("bad_statement", where)


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_that_does_not_exist_is_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be one of {CHOICES[name][0]}, {CHOICES[name][1]}.* not 'euler'"):
        Options(**{name: "euler"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"intervals": 0}, "intervals must be at least 1, not 0"),
        ({"starts": 0}, "starts must be at least 1, not 0"),
        ({"intervals": 10**6}, "intervals must be at most 100000, not 1000000"),
        ({"starts": 10**6}, "starts must be at most 10000, not 1000000"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"tolerance": 0.0}, r"tolerance must be positive and finite, not 0\.0"),
        ({"time_limit": float("inf")}, "time_limit must be positive and finite, not inf"),
        ({"degree": 10}, "degree must be from 1 to 9, not 10"),
        ({"scales": {"x": -1.0}}, r"scales\.x must be positive and finite, not -1\.0"),
        ({"scales": {"x": "1"}}, r"scales\.x must be positive and finite, not '1'"),
        ({"intervals": 10.5}, r"intervals must be an integer, not 10\.5"),
        ({"intervals": "10"}, "intervals must be an integer, not '10'"),
        ({"seed": 1.5}, r"seed must be an integer, not 1\.5"),
        ({"degree": True}, "degree must be an integer, not True"),
        ({"tolerance": None}, "tolerance must be positive and finite, not None"),
        ({"refine": {"tolerance": 1e-5}}, r"refine must be a Refinement\(\.\.\.\), not \{'tolerance': 1e-05\}"),
    ],
)
def test_invalid_numbers_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options(**settings)
