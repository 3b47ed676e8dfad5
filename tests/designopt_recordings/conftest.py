"""The shared recordings, where they are, and small files made for a test."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from designopt_recordings.files.text import input_file

from designopt.plugin import InputFile

_SHARED = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[3] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Callable[[str], InputFile]:
    """A file of ../shared/data by its path there; the test is skipped where it is absent."""

    def read(path: str) -> InputFile:
        if not (_SHARED / "data" / path).is_file():
            pytest.skip(f"the shared recordings (../shared/data/{path}, or DESIGNOPT_SHARED) are not there")
        return input_file(_SHARED / "data" / path)

    return read
