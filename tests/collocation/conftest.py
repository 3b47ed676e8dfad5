"""Tests of this folder, and benchmarks, share the modules of `problems`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "problems"))


@pytest.fixture
def silent(capfd):
    """Nothing is written to the terminal."""
    yield
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
