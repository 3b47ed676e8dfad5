"""What the tests of muscles share: the reference cases, read from beside the repository."""

import os
from pathlib import Path

import pytest

_SHARED = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[3] / "shared"))
_OPENSIM = _SHARED / "data" / "opensim"


@pytest.fixture(scope="session")
def opensim() -> Path:
    """The folder with OpenSim models, motions and reference results."""
    if not _OPENSIM.is_dir():
        pytest.skip(
            "the OpenSim reference data (../shared/data/opensim) are not there; DESIGNOPT_SHARED names a folder"
        )
    return _OPENSIM
