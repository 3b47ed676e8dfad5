"""What the tests of the report share; `given_results` beside this file is importable by its name."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser import headless_browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with headless_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def grid_result() -> Any:
    """A swept grid and a search after it, with failures."""
    from given_results import grid

    return grid()
