"""The designs that ``validate --try`` evaluates."""

from typing import Annotated, TypedDict

import pytest

import designopt
from designopt import Quantity as Q
from designopt.workers.evaluation.single_designs import trial


class Bar(TypedDict):
    width: Annotated[float, Q("mm", "of the bar")]


class Weight(TypedDict):
    mass: Annotated[float, Q("kg", "of the bar")]


@designopt.model("tried_bar", version=1)
def tried_bar(design: Bar, scenario) -> Weight:
    """A bar."""
    return {"mass": 2.0 * design["width"]}


def lines(solver: dict | None, count: int, **further: object) -> list[str]:
    study = designopt.define(
        study="tried",
        model={"use": tried_bar},
        space={"width": [1, 9]},
        objectives=[{"minimize": "mass"}],
        **({"solver": solver} if solver else {}),
        **further,
    )
    return [line.partition(":")[0] for line in trial(study.definition, count)[0]]


@pytest.mark.parametrize(("count", "widths"), [(1, ["3"]), (2, ["3", "7"]), (9, ["3", "7", "5"])])
def test_a_study_that_lists_designs_is_tried_with_the_first_of_them(count: int, widths: list[str]) -> None:
    solver = {"use": "evaluate", "designs": [{"name": f"w{w}", "width": w} for w in (3, 7, 5)]}
    assert lines(solver, count) == [f"width = {width} mm" for width in widths]


def test_a_stage_may_have_the_name_of_the_baselines() -> None:
    stages = [{"name": "baseline", "solver": {"use": "evaluate", "designs": [{"name": "thin", "width": 3}]}}]
    assert lines(None, 1, stages=stages) == ["width = 3 mm"]


def test_a_search_is_tried_with_random_designs() -> None:
    baseline = {"name": "present", "width": 3}
    tried = lines({"use": "sobol", "samples": 4}, 3, baseline=baseline)
    assert len(set(tried)) == 3
    assert not {"width = 3 mm", "width = 7 mm"} & set(tried)
