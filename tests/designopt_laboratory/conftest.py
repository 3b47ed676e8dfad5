"""What the tests of laboratories share: a walker made by formula, its trials, and the public data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import walking_laboratory as laboratory
from designopt_laboratory.model import LaboratoryTrial

from designopt.plugin import InputFile

_SHARED = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[3] / "shared"))
Results = tuple[dict[str, float], dict[str, Any]]


@pytest.fixture(scope="session")
def shared() -> Callable[[str], InputFile]:
    """A file of ../shared/data by its path there; the test is skipped where it is absent."""

    def read(path: str) -> InputFile:
        if not (_SHARED / "data" / path).is_file():
            pytest.skip(f"the shared recordings (../shared/data/{path}, or DESIGNOPT_SHARED) are not there")
        return InputFile(Path(path).name, (_SHARED / "data" / path).read_bytes())

    return read


@pytest.fixture(scope="session")
def analysed() -> Callable[..., Results]:
    """Figures and arrays of a walk of the walker, or of conditions; settings and design by keyword."""

    def analyse(trial: Any, *names: str, design: dict[str, Any] | None = None, **settings: Any) -> Results:
        model = LaboratoryTrial(**{"model": InputFile("walker.osim", laboratory.model_text()), **settings})
        conditions = trial
        if isinstance(trial, laboratory.Walk):
            conditions = {
                "recording": InputFile("walk.trc", trial.trc()),
                "reactions": InputFile("walk.mot", trial.mot(10)),
            }
        assert not model.check()
        laboratory.raise_mistake(model, conditions)
        prepared = model.prepare_scenario(conditions)
        figures, arrays = model.evaluate(design or {}, conditions, frozenset({"time", *names}), prepared)
        return dict(figures), arrays

    return analyse
