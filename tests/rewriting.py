"""Test modules with their assertions rewritten, as pytest keeps them: each by one of the processes of a run.

All processes collect all tests, in one order and at the same time: in a fresh clone, each would rewrite each file.
"""

import os
from pathlib import Path

import pytest


def rewrite_share(config: pytest.Config) -> None:
    """Rewrite what falls to this process, where several run all tests and pytest works as known here."""
    number, count = os.environ.get("PYTEST_XDIST_WORKER", "")[2:], os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if not number.isdigit() or not count.isdigit() or [str(arg) for arg in config.args] != config.getini("testpaths"):
        return
    try:
        from _pytest.assertion import rewrite
        from _pytest.assertion.rewrite import _read_pyc, _rewrite_test, _write_pyc

        state = config.stash[rewrite.assertstate_key]
        files = sorted([*Path(__file__).parent.rglob("test_*.py"), *Path(__file__).parent.rglob("conftest.py")])
        for file in files[int(number) :: int(count)]:
            folder = rewrite.get_cache_dir(file)
            cached = folder / (file.stem + rewrite.PYC_TAIL)
            if rewrite.try_makedirs(folder) and _read_pyc(file, cached) is None:
                digest, code = _rewrite_test(file, config)
                _write_pyc(state, code, digest, cached)
    except (ImportError, AttributeError, KeyError, TypeError, ValueError):  # another version of pytest
        return
