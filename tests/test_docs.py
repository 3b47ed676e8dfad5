"""What the pages in docs/ show is accepted as written."""

import re
from pathlib import Path

import pytest
import yaml

from designopt import define

PAGE = (Path(__file__).parents[1] / "docs" / "study_files.md").read_text()

#: What a study needs besides a section that is shown by itself.
REST = {
    "study": "shown",
    "model": {"use": "four_bar_knee"},
    "space": {"stiffness": [12e3, 30e3], "damping_ratio": [0.02, 0.12]},
    "objectives": [{"name": "mismatch", "minimize": "1 - rho"}],
    "stages": [{"name": "look", "solver": {"use": "full_factorial", "levels": 2}}],
}


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL))
def test_every_example_of_a_section_is_a_valid_one(block: str) -> None:
    shown = yaml.safe_load(block)
    assert define(**{**REST, **shown}).definition.model.plugin.name == "four_bar_knee"


def test_the_example_of_a_report_is_a_valid_one() -> None:
    text = re.search(r"^`(\{plots: .*?\})`:", PAGE, flags=re.MULTILINE)
    assert text is not None
    report = yaml.safe_load(text.group(1))
    names = [use.plugin.name for use in define(**REST, report=report).definition.plots]
    assert names == ["front", "map", "knee_angle"]


def test_the_table_of_execution_lists_every_key_with_its_default() -> None:
    from designopt.study.schema import ExecutionSection

    section = PAGE[PAGE.index("## `execution`") : PAGE.index("What an evaluation can end in")]
    assert set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == set(ExecutionSection.__annotations__)


def test_the_table_of_failure_classes_lists_all_of_them_in_their_order() -> None:
    from designopt.problem import STATUSES

    section = PAGE[PAGE.index("What an evaluation can end in") : PAGE.index("## `report`")]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == STATUSES
