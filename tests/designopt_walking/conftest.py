"""Reference data of predicted walks, which tests skip where they are absent."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from designopt_walking.amputee import shared_walks

sys.path.insert(0, str(Path(__file__).parent))  # recorded_walks.py

_SHARED = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[3] / "shared"))


@pytest.fixture(scope="session")
def walking_data() -> Path:
    """The folder of models and reference solutions."""
    folder = _SHARED / "data" / "walking"
    if not folder.is_dir():
        pytest.skip("the reference walks (../shared/data/walking) are not there; DESIGNOPT_SHARED names a folder")
    return folder


@pytest.fixture(autouse=True)
def cache_without_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests solve their walks; those of other runs on this machine are not read."""
    monkeypatch.setattr(shared_walks, "cache_dir", lambda: Path(os.devnull))
