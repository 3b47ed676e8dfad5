"""What the tests of the report share; `given_results` beside this file is importable by its name."""

from typing import Any

import pytest


@pytest.fixture
def grid_result() -> Any:
    """A swept grid and a search after it, with failures."""
    from given_results import grid

    return grid()
