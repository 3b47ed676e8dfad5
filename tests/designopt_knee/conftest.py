"""What the tests of the knee share."""

import os
from pathlib import Path

import pytest
from designopt_knee.gait import bundled_text, read_gait
from designopt_knee.model import FourBarKnee
from designopt_knee.parameters import SUBSTITUTE_V1, complete

_SHARED = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[3] / "shared"))
GAIT_FOLDER = _SHARED / "data" / "gait"


@pytest.fixture(scope="session")
def base() -> dict[str, float]:
    """The parameter set substitute_v1."""
    return {name: parameter.value for name, parameter in SUBSTITUTE_V1.items()}


@pytest.fixture(scope="module")
def knee() -> FourBarKnee:
    """The model at its defaults."""
    model = FourBarKnee()
    model.check()
    model.prepare()
    return model


@pytest.fixture(scope="session")
def leg(base):
    """All parameters of the equations with a damper in the middle of the range."""
    return complete(base, {}, {"stiffness": 1.6e4, "damping_ratio": 0.05})


@pytest.fixture(scope="session")
def gait():
    """The bundled gait."""
    return read_gait(bundled_text())


@pytest.fixture(scope="session")
def gait_folder() -> Path:
    """The folder with the recorded cycles, beside the repository."""
    if not GAIT_FOLDER.is_dir():
        pytest.skip("the recorded gait cycles (../shared/data/gait, or DESIGNOPT_SHARED) are not there")
    return GAIT_FOLDER
