"""Tests of this folder, and benchmarks, share the problems in its modules (`benchmark_problems`, `chains` ...)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def silent(capfd):
    """Nothing is written to the terminal."""
    yield
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
