"""Errors of a run say where its store is."""

import pytest
from run_cases import listed, make_study

import designopt
from designopt.run.runner import run_study
from designopt.store.errors import StoreError


def test_an_error_leads_to_what_the_store_holds(tmp_path):
    study = make_study(stages=(listed([0.5]),), names=("a",))
    run_study(study, tmp_path / "s")
    with pytest.raises(StoreError) as caught:
        run_study(study, tmp_path / "s")
    assert designopt.open_store(caught.value.path).counts["designs"] == 1
    with pytest.warns(DeprecationWarning, match=r"use designopt\.open_store\(error\.path\)"):
        old = caught.value.result()
    assert old.counts["designs"] == 1
