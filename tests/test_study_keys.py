"""The keys of the bundled studies are those that users' stores have: with other ones nothing on record is found again.

`results/reference/study_keys.json` has, for each study, the digest of its problem, a hash of the keys of five designs
in all scenarios, and of the keys of five programs of each stage that solves some.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import designopt
from designopt.problem import Problem

ROOT = Path(__file__).parents[1]
KEYS = json.loads((ROOT / "results" / "reference" / "study_keys.json").read_text())


@pytest.mark.parametrize("name", KEYS)
def test_the_keys_of_a_bundled_study_stay(name: str) -> None:
    study = designopt.load(ROOT / "studies" / name).definition
    problem = Problem.from_study(study)
    space = problem.space
    share = np.random.default_rng(0).random((5, len(space.free)))
    X = space.impute(space.from_search(space.lower + (space.upper - space.lower) * share))
    keys = hashlib.sha256(repr([list(row) for row in problem.keys(X)]).encode()).hexdigest()[:16]
    programs = [
        hashlib.sha256(repr(problem.program_keys(stage.solver, X, [0] * 5, list(range(5)))).encode()).hexdigest()[:12]
        for stage in study.stages
        if stage.solver.plugin.has_program
    ]
    assert [problem.digest, keys, programs] == KEYS[name]
