"""The error for a model that does not return what it declares names its file and both lists of names."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypedDict

import pytest

import designopt
from designopt import Array, Quantity
from designopt.report import summary_table

HERE = r"^test_return_values\.py:\d+: model 'answering' "


class Ride(TypedDict):
    """What is declared."""

    travel: Annotated[float, Quantity("m")]
    comfort: Annotated[float, Quantity("m/s^2")]


def study(returned: Any, **more: Any) -> designopt.Study:
    @designopt.model("answering", version=1, **more)
    def answering(design, scenario) -> Ride:
        """Returns what the test says."""
        return returned(design["a"]) if callable(returned) else returned

    @designopt.model("answering", version=1, arrays={"time": Array(("time",), "s")})
    def with_arrays(design, scenario, arrays) -> tuple[Ride, dict]:
        """The same for a model with arrays."""
        return returned

    return designopt.define(
        study="answers", model={"use": with_arrays if more else answering}, space={"a": [1, 2]},
        objectives=[{"minimize": "travel"}], solver={"use": "full_factorial", "levels": 4},
        execution={"executor": "serial"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"travl": 1.0, "comfort": 2.0},
         "did not return 'travel'; it returned 'travl', 'comfort' and declares 'travel', 'comfort'$"),
        ({}, "did not return 'travel', 'comfort'; it returned nothing and declares 'travel', 'comfort'$"),
        ({"travel": None, "comfort": 2.0},
         "did not return 'travel'; it returned 'travel' as None, 'comfort' and declares 'travel', 'comfort'$"),
        ({"travel": 10**400, "comfort": 2.0}, "returned no number as 'travel', but an integer of more than 60 digits$"),
        ({"travel": -(10**5000), "comfort": 2.0},
         "returned no number as 'travel', but an integer of more than 60 digits$"),
        ({"travel": "far", "comfort": 2.0}, "returned no number as 'travel', but 'far'$"),
        (None, "has to return its outputs by name, as a mapping; it returned None$"),
        ([1.0, 2.0], "has to return its outputs by name, as a mapping; it returned a list$"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_reported_without_a_traceback(returned: Any, message: str) -> None:
    evaluation = study(returned).evaluate({"a": 1.5})
    assert (evaluation.status, evaluation.reason) == ("error", "WrongAnswer")
    assert re.match(HERE + message, evaluation.message)


def test_a_model_with_arrays_that_returns_its_outputs_alone_is_told_so() -> None:
    evaluation = study({"travel": 1.0, "comfort": 2.0}, arrays={}).evaluate({"a": 1.5})
    message = r"declares arrays, so it has to return \(outputs, arrays\); it returned a dict$"
    assert re.match(HERE + message, evaluation.message)


def test_an_output_that_is_sometimes_no_number_is_named_as_one_that_never_is(tmp_path) -> None:
    some = study(lambda a: {"travel": float("nan") if a > 1.5 else 1.0, "comfort": 1.0}).run(tmp_path / "some")
    assert "note: 50 % of 4 evaluations failed: nonfinite (travel) 2, the first: travel is nan" in summary_table(some)
    never = study({"travel": float("nan"), "comfort": 1.0}).run(tmp_path / "never")
    assert summary_table(never).splitlines()[-1] == (
        "Most frequent failure: nonfinite (travel), 4 of 4, the first: travel is nan"
    )


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan")])
def test_an_infinite_output_is_no_result(tmp_path, value) -> None:
    result = study(lambda a: {"travel": value if a > 1.9 else a, "comfort": 2.0}).run(tmp_path / "s.study")
    assert result.status[:, 0].tolist() == ["ok", "ok", "ok", "nonfinite"]
    assert result.reason[3, 0] == "travel"
