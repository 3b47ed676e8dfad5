"""The bundled studies: keys as in users' stores, units, tolerances, and recommendations.

`results/reference/study_keys.json` has, for each study, the digest of its problem, a hash of the keys of five designs
in all scenarios, and of the keys of five programs of each stage that solves some.
"""

import functools
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import designopt
from designopt.problem import Problem
from designopt.report.parts.answer.limits import recommended_bounds
from designopt.store.views.tolerances import ENOUGH
from designopt.study.remarks import remarks

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "studies"
KEYS = json.loads((ROOT / "results" / "reference" / "study_keys.json").read_text())

#: Studies with limits on designs whose parameters can be off, and a budget of the last stage that a test can wait for.
LIMITED = {
    "bracket_calculix": None,
    "benchmark_integrating": None,
    "benchmark_plants": None,
    "benchmark_third_order": None,
    "identified_plant": 800,
    "own_plant": 1000,
    "speed_pi": 1000,
    "course_pid_2obj": 1000,
    "course_pid_3obj": 1000,
    "gain_schedule": 1000,
    "coupled_10var": 2000,
    "late_plant": None,
    "resonant_drive": None,
    "knee_damper": 500,
    "knee_hip_hiking": None,
    "knee_speeds": None,
    "knee_critical_stiffness": None,
    "exoskeleton_gait": 400,
    "delta_robot": 400,
    "tensegrity": 320,
    "slider_crank": None,
    "four_bar_path": 800,
}
#: Studies of things that are built or set, without limits: a neighbour is lost only where it has no result.
FREE = {
    "biped_step": None,
    "cable_robot": 400,
    "cart_pole": None,
    "device_with_motion": None,
    "exoskeleton_program": None,
    "knee_patella": None,
    "knee_stability": None,
    "quarter_car": None,
    "reach_arm": None,
    "squat_spring": None,
    "strength_margin": 400,
}
#: Real parameters that are never off, and why: nothing is built or set to them.
EXACT = {
    "andrews": ({"tolerance", "stabilisation"}, "settings of an integrator"),
    "calibration": (
        {"slack_soleus", "slack_gastrocnemius", "fibre_vasti", "force_hamstrings"},
        "unknowns that records determine",
    ),
    "pendulum_record": ({"length", "friction", "drag"}, "unknowns that a record determines"),
    "gait_consistency": ({"contact_weight", "cutoff"}, "settings of a method"),
    "pushup_consistency": ({"contact_weight", "cutoff"}, "settings of a method"),
    "marker_filter": ({"cutoff"}, "setting of a filter"),
    "shoulder_girdle": ({"ellipsoid"}, "size of a body's surface, which markers determine"),
}
#: Programs that studies run.
PROGRAMS = {"bracket_calculix": ["ccx"]}
#: Studies that recommend nothing that could be off: designs that are given, without an objective, or choices alone.
NOTHING = {
    "dynamic_sharing",
    "elbow_criteria",
    "elbow_load",
    "forward_formulations",
    "gait_sharing",
    "hidden_markers",
    "inertia_sensitivity",
    "muscles_walk_3d",
    "predicted_walk",
    "preprocessing",
    "pushup_loads",
    "segments_17_21",
    "shoulder_rhythm",
    "tracked_walk",
    "tracked_walk_3d",
    "wire_patterns",
    "wire_sharing",
}
#: Studies in which a design is a predicted walk: a recommendation takes an hour or more.
WALKS = {"exoskeleton_walks", "prosthesis_walks"}
#: Of those in `EXACT` a recommendation takes minutes, of all others there seconds.
LONG = {"gait_consistency", "pushup_consistency"}


@functools.cache
def definition(file):
    return designopt.load(file).definition


@pytest.mark.parametrize("name", KEYS)
def test_the_keys_of_a_bundled_study_stay(name):
    study = definition(STUDIES / name)
    problem = Problem.from_study(study)
    space = problem.space
    share = np.random.default_rng(0).random((5, len(space.free)))
    X = space.impute(space.from_search(space.lower + (space.upper - space.lower) * share))
    keys = hashlib.sha256(repr([list(row) for row in problem.keys(X)]).encode()).hexdigest()[:16]
    programs = [
        hashlib.sha256(repr(problem.program_keys(stage.solver, X, [0] * 5, list(range(5)))).encode()).hexdigest()[:12]
        for stage in study.stages
        if stage.solver.plugin.has("program")
    ]
    assert [problem.digest, keys, programs] == KEYS[name]


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.yaml")), ids=lambda path: path.stem)
def test_bundled_studies_name_their_units(path):
    if "opensim:" in path.read_text():
        pytest.skip("its files lie below a data root")
    assert [note for note in remarks(definition(path)) if "unit" in note] == []


def real(study):
    return {p.name for p in study.space if p.kind == "real"}


def test_every_study_with_real_parameters_states_tolerances_or_the_reason_why_nothing_is_off():
    judged = set()
    for file in sorted(STUDIES.glob("*.yaml")):
        judged.add(file.stem)
        if "opensim:" in (text := file.read_text()):  # its data are not bundled
            assert file.stem in NOTHING, file.stem
            assert "minimize" not in text, file.stem
            assert "maximize" not in text, file.stem
            continue
        study = definition(file)
        if not study.objectives or not real(study):
            assert file.stem in NOTHING, file.stem
            continue
        if file.stem in EXACT:
            assert study.tolerances is None or study.tolerances.assumed, file.stem
            assert real(study) == EXACT[file.stem][0], file.stem
            continue
        assert bool(study.constraints) == (file.stem in LIMITED) or file.stem in WALKS, file.stem
        assert study.tolerances is not None, file.stem
        assert not study.tolerances.assumed, file.stem
        assert {t.parameter for t in study.tolerances.of} == real(study), file.stem
        assert file.stem in FREE | dict.fromkeys(WALKS) or "robust" in [choice.method for choice in study.choose], (
            file.stem
        )
    assert judged == {*LIMITED, *FREE, *EXACT, *NOTHING, *WALKS}


def run(name, folder, evaluations):
    study = designopt.load(STUDIES / f"{name}.yaml")
    last = study.definition.stages[-1].name
    programs = PROGRAMS.get(name, [])
    if missing := [program for program in programs if shutil.which(program) is None]:
        pytest.skip(f"{missing[0]} is not installed")
    return study.run(folder / "s.study", budget={last: evaluations} if evaluations else {}, allow=programs)


def unexplained(result):
    """Parameters whose bound the recommended design has reached without a word in the study of why it is there."""
    why = {p.name: p.why for p in result.study.space}
    at = [clause.split(" ", 1)[0] for clause in recommended_bounds(result)]
    return [name for name in at if not why[name]]


@pytest.mark.slow
@pytest.mark.parametrize("name", {**LIMITED, **FREE})
def test_the_recommended_design_keeps_its_limits_in_nine_of_ten_neighbours_and_bounds_have_a_reason(name, tmp_path):
    result = run(name, tmp_path, {**LIMITED, **FREE}[name])
    (_, row), tolerated = result.recommended(), result.tolerated()
    assert tolerated.share[tolerated.index_of(row)] >= ENOUGH
    assert unexplained(result) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXACT.keys() - LONG))
def test_bounds_reached_by_the_recommended_design_have_a_reason(name, tmp_path):
    assert unexplained(run(name, tmp_path, None)) == []
