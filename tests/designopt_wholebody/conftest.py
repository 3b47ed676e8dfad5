"""Subjects that several tests share."""

import pytest
from designopt_wholebody.model.library import load_model
from designopt_wholebody.subject import Subject, make_subject


@pytest.fixture(scope="session")
def full() -> Subject:
    return make_subject(load_model("wholebody21"))
