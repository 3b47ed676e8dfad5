"""What the solver collocation cannot do is refused when the study is checked, at its place in the file."""

from pathlib import Path

import pytest

from designopt import define
from designopt.api import Study
from designopt.plugin import load_file
from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text

MODELS = Path(__file__).with_name("collocation_models.py")


@pytest.fixture(autouse=True)
def _models():
    load_file(str(MODELS), MODELS.read_bytes())


TEXT = """\
study: damped
model: {use: damped_start}
space:
  damping: {low: 0.2, high: 5, unit: N s/m}
objectives:
  - {name: decay, minimize: error}
solver: {use: collocation}
"""


def refused(text):
    with pytest.raises(StudyError) as caught:
        study_from_text(text, "damped.yaml", problem_of=Problem.from_study)
    (issue,) = caught.value.issues
    return f"{issue.line}:{issue.column}: {issue.message}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "use: collocation",
            "use: collocation, ipopt: {no_such_setting: 3}",
            "7:53: IPOPT rejects 3: see its list of options",
        ),
        (
            "damped_start",
            "no_equations",
            "7:15: model_not_symbolic: model 'no_equations' states no equations for a program (it has no"
            " 'trajectory_problem'); use a solver that evaluates designs: slsqp, cma_es, nsga2 ...",
        ),
        (
            "minimize: error}",
            "minimize: error}\n  - {name: heat, minimize: loss}",
            "8:15: collocation minimises one objective, not 2; make the others limits under "
            "'constraints', or use a solver for fronts (nsga2)",
        ),
        (
            "minimize: error",
            "minimize: 'error + 1 [m s]*peak'",
            "7:15: objective 'decay' uses 'peak', which is not a figure of the trajectory problem (it has error, loss);"
            " use a solver that evaluates designs",
        ),
        (
            "damped_start",
            "two_units",
            "7:15: 'damping' is in 'N s/m' in the model and in 'kN s/m' in its trajectory problem; they must be"
            " the same",
        ),
        (
            "unit: N s/m}",
            "unit: N s/m}\n  stiffness: {values: [1, 2]}\nrelations: [stiffness > 3]",
            "9:15: no combination of the fixed parameters satisfies the relations",
        ),
        (
            "use: collocation}",
            "use: collocation, sweep: {dumping: 3}}",
            "7:45: there is no free parameter 'dumping'; did you mean 'damping'? (known: damping)",
        ),
        (
            "use: collocation}",
            "use: collocation, sweep: {damping: [1, 7]}}",
            "7:45: 7 is outside the range 0.2 to 5",
        ),
        (
            "unit: N s/m}",
            "unit: N s/m}\n  colour: 500 nm",
            "8:15: the trajectory problem of model 'damped_start' has no parameter 'colour' (it has damping,"
            " stiffness); take it out of 'space', or use a solver that evaluates designs",
        ),
        (
            "unit: N s/m}",
            "unit: N s/m, when: {stiffness: 2}}\n  stiffness: {values: [1, 2]}",
            "8:15: 'damping' has a condition; where it does not hold, the trajectory problem must give it a number,"
            " but it gives a range",
        ),
        (
            "use: damped_start}",
            "use: damped_start, any_stiffness: true}",
            "7:15: 'stiffness' would be chosen by the program; add it to 'space' (with one value, to fix it)",
        ),
        (
            "minimize: error",
            "minimize: heat_share",
            "7:15: objective 'decay' uses 'heat_share', which is computed from results; a program needs its equations;"
            " use a solver that evaluates designs",
        ),
        (
            "damped_start",
            "stray",
            "7:15: the model's 'trajectory_problem' gives NoneType, not a TrajectoryProblem",
        ),
        (
            "use: damped_start",
            "use: stray, ends: true",
            "7:15: the model's 'trajectory_problem' called sys.exit(3)",
        ),
        (
            "use: collocation}",
            "use: collocation, scheme: trapezoidal, degree: 3}",
            "7:57: is a setting of the scheme radau, not of trapezoidal: leave it out or change the scheme",
        ),
        (
            "use: collocation}",
            "use: collocation, midpoint_control: linear, refine: {method: hp}}",
            "7:71: is a setting of the scheme radau, not of hermite_simpson: leave it out or change the scheme",
        ),
        (
            "use: collocation}",
            "use: collocation, starts: 6000, sweep: {damping: 2}}",
            "7:36: with 2 points of the sweep they make 12000 programs; at most 10000 are allowed",
        ),
        (
            "use: collocation}",
            "use: collocation, form: residual}",
            "7:34: no system of the problem has a residual form",
        ),
        (
            "use: damped_start}",
            "use: damped_start, duration: -1}",
            "7:15: bad_bounds: decay: tf: -1 is not after t0 = 0: a phase must have a positive duration",
        ),
        (
            "minimize: error}",
            "minimize: error}\nrelations: [damping == 2]",
            "8:15: no program meets the relation 'damping == 2' exactly; express one parameter by the other",
        ),
        (
            "use: collocation}",
            "use: collocation, sweep: {damping: 1}}",
            "7:45: at least 2 levels are needed, not 1; for a single level, fix the value",
        ),
        (
            "use: collocation}",
            "use: collocation, sweep: {damping: 20000}}",
            "7:35: the values of damping make 20000 programs; at most 10000 are allowed; give fewer levels",
        ),
        (
            "use: collocation}",
            "use: collocation, sweep: {damping: 10000000000000000}}",
            "7:35: the values of damping make 10000000000000000 programs; at most 10000 are allowed; give fewer levels",
        ),
        (
            "use: collocation}",
            "use: collocation, scales: {spin: 1}}",
            "7:43: the trajectory problem has no such variable; known: position, speed, damping, stiffness",
        ),
        (
            "solver: {use: collocation}",
            "solver: {use: collocation, sweep: {damping: 4}}\nbudget: {evaluations: 3}",
            "8:23: solver 'collocation' needs at least 4 designs, not 3",
        ),
    ],
)
def test_an_invalid_program_is_refused_with_its_place(old, new, message):
    assert old in TEXT
    assert refused(TEXT.replace(old, new)) == message


def test_an_aggregation_without_a_smooth_program_is_refused():
    text = TEXT.replace("minimize: error", "minimize: error, over: {use: cvar, level: 0.5}")
    text += "scenarios: [{name: a, mass: 1}, {name: b, mass: 2}]\n"
    assert refused(text) == (
        "7:15: objective 'decay' is taken over scenarios by 'cvar'; collocation knows nominal, mean, worst,"
        " mean_plus_deviation"
    )


def test_python_and_files_make_the_same_study():
    by_file = study_from_text(TEXT, "damped.yaml", problem_of=Problem.from_study)
    by_hand = define(
        study="damped",
        model={"use": "damped_start"},
        space={"damping": {"low": 0.2, "high": 5, "unit": "N s/m"}},
        objectives=[{"name": "decay", "minimize": "error"}],
        solver={"use": "collocation"},
    )
    assert isinstance(by_hand, Study)
    assert Problem.from_study(by_file).digest == by_hand.problem.digest


@pytest.mark.parametrize("mass", ["-1", ".nan", "x"])
def test_of_a_scenario_with_a_wrong_value_that_alone_is_reported(mass):
    assert refused(TEXT + f"scenarios: [{{name: a, mass: {mass}}}]\n").startswith("8:")


def test_neighbours_of_a_robust_study_are_refused_where_the_solver_is_named():
    text = TEXT.replace("unit: N s/m}", "unit: N s/m, tolerance: 2 %}") + "robust: 4\n"
    assert refused(text).startswith("7:15: 'robust' evaluates each design with its neighbours")
