"""Everything in this folder is run by ``pytest -m faults``."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.faults)
            item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture
def hits(record_property):
    """Counts what the tests have done, for their report: ``hits("worker_lost", 12)``."""
    counts = {}

    def count(kind, number=1):
        counts[kind] = counts.get(kind, 0) + number
        return counts[kind]

    yield count
    for kind, number in counts.items():
        record_property(kind, number)
    print("counted:", ", ".join(f"{kind} {number}" for kind, number in counts.items()))
