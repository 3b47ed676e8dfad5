"""A store that goes on with other code under the same version says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import designopt
from designopt.plugin.code import code_number
from designopt.report import write_report

MODEL = """
from typing import Annotated, TypedDict

from designopt.plugin import Quantity, model

class Answer(TypedDict):
    y: Annotated[float, Quantity("m")]

@model("edited_square", version={version})
class Square:
    def evaluate(self, design, scenario) -> Answer:
        return {{"y": {factor} * design["x"] ** 2}}
"""


def declared(text: str) -> Any:
    """The class that the text of a module declares, recompiled."""
    module: dict[str, Any] = {}
    exec(compile(text, "edited.py", "exec", dont_inherit=True), module)
    return module["Square"]


def searched(model: Any, folder: Path) -> designopt.Result:
    solver = {"use": "random", "samples": 5}
    return designopt.minimize(model, {"x": [1, 2]}, "y", solver=solver, store=folder / "run")


def code_warnings(result: designopt.Result) -> list[str]:
    return [event["text"] for event in result.events if event["kind"] == "code"]


def test_other_code_of_the_same_version_is_reported_in_events_table_and_page(tmp_path: Path) -> None:
    assert code_warnings(searched(declared(MODEL.format(factor=1.0, version=1)), tmp_path)) == []
    repeated = searched(declared(MODEL.format(factor=2.0, version=1)), tmp_path)

    (text,) = code_warnings(repeated)
    assert "model edited_square" in text
    assert f"warning: {text}" in str(repeated)
    assert text in write_report(repeated, tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_same_code_in_another_place_is_the_same(tmp_path: Path) -> None:
    text = MODEL.format(factor=1.0, version=1)
    searched(declared(text), tmp_path)

    assert code_warnings(searched(declared(f"# moved\n\n{text}"), tmp_path)) == []


def one(x: float) -> float:
    return 2.0 * x


@pytest.mark.parametrize("changed", [lambda x: 3.0 * x, lambda x: x * 2.0])
def test_the_number_of_code_follows_what_it_computes(changed: object) -> None:
    assert code_number(one) != code_number(changed)
    assert code_number(one) == code_number(one)
    assert code_number(len) == 0
