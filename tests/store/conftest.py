"""A small finished store, and a copy of the one that a file of tests has for each of them."""

import shutil

import pytest
from run_cases import listed, make_study

from designopt.run.runner import run_study


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    path = tmp_path_factory.mktemp("intact") / "s"
    run_study(make_study(names=("a",), stages=(listed([0.1, 0.2, 0.3]),)), path)
    return path


@pytest.fixture
def store(intact, tmp_path):
    shutil.copytree(intact, tmp_path / "s")
    return tmp_path / "s"
