"""What the tests of the mechanics share."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_SHARED = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[3] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with specifications and data beside the repository, which may be absent."""
    return _SHARED


@pytest.fixture(scope="session")
def skeletal(shared: Path) -> Path:
    """The folder with the reference cases of skeletal systems, beside the repository."""
    folder = shared / "data" / "skeletal"
    if not folder.is_dir():
        pytest.skip("the skeletal reference cases (../shared/data/skeletal) are not there")
    return folder
