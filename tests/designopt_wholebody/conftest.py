"""Subjects that several tests share."""

import sys
from pathlib import Path

import pytest
from designopt_wholebody.model.library import load_model
from designopt_wholebody.subject import Subject, make_subject

sys.path.insert(0, str(Path(__file__).parent))  # modules that tests share


@pytest.fixture(scope="session")
def full() -> Subject:
    return make_subject(load_model("wholebody21"))
