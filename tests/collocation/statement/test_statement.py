"""Mistakes in a statement are told before anything is solved: what is wrong, where, and how to mend it."""

import math
from dataclasses import replace

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest

from designopt.collocation import (
    Constraint,
    Guess,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    Signal,
    TrajectoryProblem,
    periodic,
    solve,
)
from designopt.dynamics.system import System, Variable

BLOCK = problems.block_move()
PHASE = BLOCK.phases[0]


def with_phase(**changes):
    return replace(BLOCK, phases=[replace(PHASE, **changes)])


def refusal(problem, **options):
    """The status and the text with which `problem` is refused."""
    with pytest.raises(ProblemError) as raised:
        Program(problem(), Options(**options))
    return raised.value.status, str(raised.value)


def system(**changes):
    """x' = u k + d + z with one variable of each kind."""
    names = {"x": "x", "u": "u", "z": "z", "k": "k", "d": "d", "y": "y", **changes}
    x, u, z, k, d = (ca.SX.sym(n) for n in "xuzkd")
    return System.from_expressions(
        "plant",
        states=[(Variable(names["x"], "m"), x, u * k + d + z)],
        controls=[(Variable(names["u"], "N"), u)],
        algebraic=[(Variable(names["z"], "N"), z, z - x)],
        parameters=[(Variable(names["k"], "1"), k)],
        data=[(Variable(names["d"], "N"), d)],
        outputs=[(Variable(names["y"], "m"), x + u)],
    )


def problem_of(plant, **changes):
    phase = Phase(plant, **{"tf": 1.0, "data": {"d": 0.0}, **changes})
    return TrajectoryProblem([phase], lambda e: e.final[plant.states[0].name])


NAMES = {
    "in an integral": (
        lambda: with_phase(integrals={"effort": Integral(lambda v: v["force"] ** 2)}),
        "motion: integrals.effort: there is no variable 'force'; known: x, v, u",
    ),
    "in a path constraint": (
        lambda: with_phase(path={"speed": Constraint(lambda v: v["velocity"])}),
        "motion: path.speed: there is no variable 'velocity'; known: x, v, u",
    ),
    "of an integral": (
        lambda: replace(BLOCK, cost=lambda e: e.integral["work"]),
        "cost: there is no integral 'work'; known: effort",
    ),
    "of a variable at an end": (
        lambda: replace(BLOCK, cost=lambda e: e.final["y"]),
        "cost: there is no variable 'y'; known: x, v, u",
    ),
    "of a parameter": (
        lambda: replace(BLOCK, constraints={"stiff": Constraint(lambda e: e["k"])}),
        "constraints.stiff: there is no parameter 'k'; known: none",
    ),
    "of a phase": (
        lambda: replace(BLOCK, cost=lambda e: e.phase["flight"].duration),
        "cost: there is no phase 'flight'; known: motion",
    ),
    "of data": (
        lambda: replace(BLOCK, figures={"g": lambda e: e.data["g"]}),
        "figures.g: there is no data entry that is a number 'g'; known: none",
    ),
    "of an end": (lambda: replace(BLOCK, terms={"end": lambda e: e.last["x"]}), "terms.end: "),
    "in bounds": (
        lambda: with_phase(bounds={"w": (0.0, 1.0)}),
        "motion: bounds.w: there is no such variable; known: x, v, u",
    ),
    "in the initial states": (
        lambda: with_phase(initial={"w": 0.0}),
        "motion: initial.w: there is no such variable; known: x, v, u",
    ),
    "in the final states": (
        lambda: with_phase(final={"y": 0.0}),
        "motion: final.y: there is no such variable; known: x, v, u",
    ),
    "in the parameters": (
        lambda: replace(problems.damped_start(), parameters={"k": 1.0}),
        "parameters.k: there is no such parameter; known: c",
    ),
    "in the data": (
        lambda: with_phase(data={"g": 9.81}),
        "motion: data.g: there is no such data entry; known: none",
    ),
}


@pytest.mark.parametrize(("problem", "message"), NAMES.values(), ids=NAMES)
def test_an_unknown_name_is_reported_with_those_that_are_there(problem, message):
    status, text = refusal(problem)

    assert status in ("bad_statement", "bad_bounds")
    assert text.startswith(message)


def test_unknown_names_of_scales_are_refused():
    assert "scales.w: there is no such variable; known: u, v, x" in refusal(lambda: BLOCK, scales={"w": 1.0})[1]


def test_scales_of_free_times_may_be_given():
    problem = replace(BLOCK, phases=[replace(PHASE, tf=(0.5, 2.0))])
    assert Program(problem, Options(intervals=4, scales={"tf": 3.0})).solve().scales[f"{PHASE.name}.tf"] == 3.0
    assert "scales.tf: there is no such variable" in refusal(lambda: BLOCK, scales={"tf": 3.0})[1]  # it is fixed


def test_ends_of_several_phases_need_the_name_of_the_phase():
    first, second = replace(PHASE, name="a"), replace(PHASE, name="b")

    _, text = refusal(lambda: replace(BLOCK, phases=[first, second]))

    assert text == "cost: there are several phases: say which, e.phase[...].integral"


SHAPES = {
    "cost": (lambda: replace(BLOCK, cost=lambda e: ca.vertcat(e.tf, e.t0)), "cost: gives 2 x 1 numbers, not one"),
    "integral": (
        lambda: with_phase(integrals={"effort": Integral(lambda v: ca.vertcat(v["x"], v["v"]))}),
        "motion: integrals.effort: gives 2 x 1 numbers, not one",
    ),
    "figure": (
        lambda: replace(BLOCK, figures={"f": lambda e: ca.SX(0, 1)}),
        "figures.f: gives 0 x 1 numbers, not one",
    ),
    "row": (
        lambda: with_phase(path={"c": Constraint(lambda v: ca.horzcat(v["x"], v["v"]))}),
        "motion: path.c: gives 1 x 2 numbers, not a column: use ca.vertcat",
    ),
    "nothing": (
        lambda: replace(BLOCK, constraints={"c": Constraint(lambda e: ca.SX(0, 1))}),
        "constraints.c: gives 0 x 1 numbers, not a column",
    ),
    "None": (lambda: replace(BLOCK, cost=lambda e: None), "cost: gives NoneType, not an expression: return one"),
    "text": (lambda: replace(BLOCK, cost=lambda e: "effort"), "cost: gives str, not an expression"),
}


@pytest.mark.parametrize(("problem", "message"), SHAPES.values(), ids=SHAPES)
def test_a_function_of_the_wrong_shape_is_refused(problem, message):
    status, text = refusal(problem)

    assert status == "bad_statement"
    assert text.startswith(message)


PYTHON = {
    "math": (lambda v: math.sin(v["x"]), "is not a number (NaN) whatever the variables are"),
    "math within": (lambda v: v["v"] * (1.0 + math.exp(v["x"])), "is not a number (NaN) whatever the variables are"),
    "if": (lambda v: v["x"] if v["x"] > 0 else 0.0, "gives no expression ("),
    "complex": (lambda v: v["x"] + 1j, "gives no expression ("),
}


@pytest.mark.parametrize(("value", "message"), PYTHON.values(), ids=PYTHON)
def test_a_function_that_takes_numbers_only_is_referred_to_casadi(value, message):
    status, text = refusal(lambda: with_phase(path={"c": Constraint(value)}))

    assert status == "model_not_symbolic"
    assert text.startswith(f"motion: path.c: {message}")
    assert "ca.sin" in text


class Measured(ca.Callback):
    """A function of numbers: nothing is known of it but its values."""

    def __init__(self, function):
        ca.Callback.__init__(self)
        self.function = function
        self.construct("rhs", {})

    def get_n_in(self):
        return self.function.n_in()

    def get_n_out(self):
        return 1

    def get_sparsity_in(self, i):
        return self.function.sparsity_in(i)

    def get_sparsity_out(self, i):
        return self.function.sparsity_out(i)

    def get_name_in(self, i):
        return self.function.name_in(i)

    def eval(self, arguments):
        return [self.function(*arguments)]


def test_a_system_that_calls_numbers_is_referred_to_solvers_that_evaluate():
    opaque = Measured(PHASE.system.rhs)

    status, text = refusal(lambda: with_phase(system=replace(PHASE.system, rhs=opaque)))

    assert status == "model_not_symbolic"
    assert text.startswith("motion: system point_mass: it has functions without derivatives (")
    assert text.endswith("or use a solver that evaluates the model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"u": "x"}, "'x' is the name of a state and of a control"),
        ({"z": "u"}, "'u' is the name of a control and of a algebraic variable"),
        ({"k": "x"}, "'x' is the name of a state and of a parameter"),
        ({"d": "k"}, "'k' is the name of a parameter and of a data entry"),
        ({"y": "x"}, "'x' is the name of an output and of another variable"),
    ],
)
def test_a_name_that_means_two_things_is_refused(changes, message):
    status, text = refusal(lambda: problem_of(system(**changes), data={changes.get("d", "d"): 0.0}))

    assert status == "bad_statement"
    assert text == f"motion: system plant: {message}: rename one of them"


def test_an_output_may_repeat_a_state():
    x, u = ca.SX.sym("x"), ca.SX.sym("u")
    plant = System.from_expressions(
        "plant", states=[(Variable("x", ""), x, u)], controls=[(Variable("u", ""), u)], outputs=[(Variable("x", ""), x)]
    )
    phase = Phase(plant, tf=1.0, initial={"x": 0.0}, path={"c": Constraint(lambda v: v["x"] + v["u"] ** 2, high=1.0)})

    assert Program(TrajectoryProblem([phase], lambda e: -e.final["x"])).solve().success


def test_two_phases_of_one_name_are_refused():
    status, text = refusal(lambda: replace(BLOCK, phases=[PHASE, PHASE]))

    assert (status, text) == ("bad_statement", "phases: two are called 'motion': give each a name of its own")


def test_a_problem_without_phases_is_refused():
    assert refusal(lambda: replace(BLOCK, phases=[])) == ("bad_statement", "phases: there are none: give at least one")


def test_the_first_phase_has_a_beginning():
    status, text = refusal(lambda: with_phase(t0=None))

    assert (status, text) == ("bad_bounds", "motion: t0: there is no phase before it: give a number")


def test_a_shared_parameter_has_one_unit_and_one_range():
    spring = problems.damped_start().phases[0]

    def sharing(unit, high):
        parameter = Variable("c", unit, 0.05, high)
        second_system = replace(spring.system, parameters=(parameter,))
        return replace(
            problems.damped_start(),
            phases=[replace(spring, name="a"), replace(spring, name="b", system=second_system)],
            cost=lambda e: e.phase["a"].integral["square"],
        )

    assert refusal(lambda: sharing("N s/m", 10.0))[1] == (
        "parameters.c: its unit is '' in phase a and 'N s/m' in phase b: a shared parameter must have one unit"
    )
    assert refusal(lambda: sharing("", 5.0))[1].startswith(
        "parameters.c: its range is 0.05 to 10 in phase a and 0.05 to 5"
    )
    assert Program(replace(sharing("", 5.0), parameters={"c": (0.1, 4.0)}), Options(intervals=5)).problem is not None


NUMBERS = {
    "data that are missing": (
        lambda: problem_of(system(), data={}),
        "motion: data.d: has no value: give a number or a Signal",
    ),
    "data that are no number": (lambda: problem_of(system(), data={"d": "1"}), "motion: data.d: is str, not a number"),
    "data that are NaN": (
        lambda: problem_of(system(), data={"d": math.nan}),
        "motion: data.d: is nan: give a finite number",
    ),
    "bounds that are NaN": (lambda: with_phase(bounds={"u": (math.nan, 1.0)}), "motion: bounds.u: is nan to 1"),
    "bounds the wrong way round": (
        lambda: with_phase(bounds={"u": (1.0, -1.0)}),
        "motion: bounds.u: nothing lies between 1 and -1: swap or widen them",
    ),
    "an initial state that is NaN": (lambda: with_phase(initial={"x": math.nan}), "motion: initial.x: is nan"),
    "an initial state out of bounds": (
        lambda: with_phase(bounds={"x": (0.0, 1.0)}, initial={"x": 2.0}),
        "motion: initial.x: 2.0 is outside the bounds 0 to 1 of the state",
    ),
    "a time that is NaN": (lambda: with_phase(tf=math.nan), "motion: tf: "),
    "an end of a free time that is NaN": (lambda: with_phase(tf=(1.0, math.nan)), "motion: tf: is 1 to nan"),
    "an infinite time": (lambda: with_phase(tf=math.inf), "motion: tf: "),
    "a time too far away": (
        lambda: with_phase(tf=1e300),
        "motion: tf: 1e+300 s is too far away: times of a phase are at most 1e+15 s; give a smaller one",
    ),
    "a free time too far away": (lambda: with_phase(tf=(1.0, 1e300)), "motion: tf: 1e+300 s is too far away"),
    "a beginning too far away": (lambda: with_phase(t0=-1e300), "motion: t0: -1e+300 s is too far away"),
    "a control on too many pieces": (
        lambda: with_phase(held_controls={"u": 10**6}),
        "motion: held_controls.u: is 1000000: give the number of equal pieces of the phase, from 1 to 100000",
    ),
    "an end before the beginning": (lambda: with_phase(t0=2.0), "motion: tf: 1 is not after t0 = 2"),
    "a free end before the beginning": (
        lambda: with_phase(t0=2.0, tf=(0.5, 1.5)),
        "motion: tf: 1.5 is not after t0 = 2: a phase must have a positive duration",
    ),
    "a parameter that is NaN": (
        lambda: replace(problems.damped_start(), parameters={"c": math.nan}),
        "parameters.c: is nan",
    ),
    "an integral between nothing": (
        lambda: with_phase(integrals={"effort": Integral(lambda v: v["u"] ** 2, 1.0, 0.0)}),
        "motion: integrals.effort: nothing lies between 1 and 0",
    ),
    "a signal that is too short": (
        lambda: problem_of(system(), data={"d": Signal(np.linspace(0.0, 0.5, 4), np.zeros(4))}),
        "motion: data.d: the signal is defined from 0 to 0.5, not from 0.00310102 to 1",
    ),
    "a signal over time of a phase with a free end": (
        lambda: problem_of(system(), tf=(0.5, 1.0), data={"d": Signal(np.linspace(0.0, 1.0, 4), np.zeros(4))}),
        "motion: data.d: a phase with free ends needs a signal over its duration, 0 to 1",
    ),
    "a name with a bracket": (
        lambda: replace(BLOCK, constraints={"c[1]": Constraint(lambda e: e.tf)}),
        "constraints.c[1]: a name must not contain '[': rename it",
    ),
}


@pytest.mark.parametrize(("problem", "message"), NUMBERS.values(), ids=NUMBERS)
def test_invalid_numbers_are_refused(problem, message):
    status, text = refusal(problem)

    assert status in ("bad_bounds", "bad_statement")
    assert text.startswith(message)


@pytest.mark.parametrize("limits", [(math.nan, 1.0), (2.0, 1.0), (math.inf, math.inf)])
def test_invalid_limits_are_refused_when_the_problem_is_solved(limits):
    problem = replace(BLOCK, constraints={"c": Constraint(lambda e: e.final["x"], *limits)})

    with pytest.raises(ProblemError, match=r"^constraints\.c: "):
        Program(problem, Options(intervals=5)).solve()


def test_a_signal_with_invalid_numbers_is_refused():
    with pytest.raises(ValueError, match="times of a signal must increase"):
        Signal(np.array([0.0, 0.0]), np.zeros(2))
    with pytest.raises(ValueError, match="all its numbers must be finite"):
        Signal(np.array([0.0, 1.0]), np.array([0.0, math.nan]))
    with pytest.raises(ValueError, match="at least two times and one value for each"):
        Signal(np.array([0.0, 1.0]), np.zeros(3))


def test_a_periodic_motion_knows_its_variables():
    with pytest.raises(ProblemError, match=r"periodic: offsets\.y: it is not among the periodic variables x, v"):
        periodic(["x", "v"], offsets={"y": 1.0})
    _, text = refusal(lambda: replace(BLOCK, constraints={"again": periodic(["x", "w"])}))
    assert text == "constraints.again: there is no variable 'w'; known: x, v, u"


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            lambda: with_phase(path={"speed": lambda v: v["v"]}),
            "motion: path.speed: is a function, not Constraint(function, low, high)",
        ),
        (
            lambda: with_phase(integrals={"effort": Constraint(lambda v: v["u"] ** 2)}),
            "motion: integrals.effort: is a Constraint, not Integral(function, low, high)",
        ),
        (lambda: replace(BLOCK, constraints={"end": 1.0}), "constraints.end: is a float, not Constraint(function"),
    ],
)
def test_a_constraint_is_a_function_with_limits(problem, message):
    status, text = refusal(problem)
    assert status == "bad_statement"
    assert text.startswith(message)


@pytest.mark.parametrize("kind", [Constraint, Integral])
@pytest.mark.parametrize(("limits", "message"), [({"low": None}, "low is None"), ({"high": "1"}, "high is '1'")])
def test_limits_are_numbers(kind, limits, message):
    with pytest.raises(ValueError, match=f"{message}: give a number, an infinite one where there is no limit"):
        kind(lambda v: v["x"], **limits)


BOXES = {
    "a list of one": (lambda: with_phase(tf=[1.0]), "motion: tf: is [1.0]: "),
    "three numbers": (lambda: with_phase(initial={"x": (0.0, 1.0, 2.0)}), "motion: initial.x: is (0.0, 1.0, 2.0): "),
    "a text": (lambda: with_phase(final={"x": "1"}), "motion: final.x: is '1': "),
    "a text as an end": (lambda: with_phase(bounds={"x": ("0", 1.0)}), "motion: bounds.x: is ('0', 1.0): "),
    "nothing": (lambda: replace(problems.damped_start(), parameters={"c": None}), "parameters.c: is None: "),
    "an end that is nothing": (lambda: with_phase(t0=(None, 1.0)), "motion: t0: is (None, 1.0): "),
    "an expression": (lambda: with_phase(tf=ca.SX.sym("tf")), "motion: tf: is SX(tf): "),
    "an expression as an end": (lambda: with_phase(tf=(1.0, ca.SX.sym("tf"))), "motion: tf: is (1.0, SX(tf)): "),
}


@pytest.mark.parametrize(("problem", "message"), BOXES.values(), ids=BOXES)
def test_a_box_is_a_number_or_two(problem, message):
    with pytest.raises(ProblemError) as raised:
        problem()
    assert raised.value.status == "bad_bounds"
    assert str(raised.value) == f"{message}give a number or a range, (low, high)"


def test_two_numbers_of_any_kind_are_a_range():
    phase = with_phase(bounds={"x": [-1, 2], "u": 3}, initial={"x": np.array([0.0, 0.5])}, tf=np.float64(1.0)).phases[0]
    assert phase.bounds == {"x": (-1.0, 2.0), "u": (3.0, 3.0)}
    assert phase.initial == {"x": (0.0, 0.5)}
    assert phase.tf == 1.0


VARIANTS = {
    "phases": (lambda: replace(BLOCK, phases=[replace(PHASE, name="other")]), "phases: other were motion when"),
    "constraints": (
        lambda: replace(BLOCK, constraints={"new": Constraint(lambda e: e.tf)}),
        "constraints: new were none when the program was built: build it again",
    ),
    "path": (lambda: with_phase(path={"new": Constraint(lambda v: v["x"])}), "motion: path: new were none when"),
    "integrals": (lambda: with_phase(integrals={}), "motion: integrals: none were effort when"),
    "a limit of an integral that had none": (
        lambda: with_phase(integrals={"effort": replace(PHASE.integrals["effort"], high=13.0)}),
        "motion: integrals.effort: had no limits when the program was built: build it again",
    ),
    "a time that is free now": (
        lambda: with_phase(tf=(0.5, 1.5)),
        "motion: tf: was one number when the program was built: give one, or build it again",
    ),
}


@pytest.mark.parametrize(("variant", "message"), VARIANTS.values(), ids=VARIANTS)
def test_a_variant_differs_in_numbers_alone(variant, message):
    program = Program(BLOCK, Options(intervals=5))

    with pytest.raises(ProblemError) as raised:
        program.solve(variant())

    assert str(raised.value).startswith(message)


def test_phases_follow_one_another_in_variants_too():
    mass = problems.point_mass()
    effort = {"effort": Integral(lambda v: v["u"] ** 2)}
    first = Phase(mass, name="a", tf=0.5, initial={"x": 0.0, "v": 0.0}, final={"x": 1.0, "v": 0.0}, integrals=effort)
    second = replace(first, name="b", t0=None, tf=2.0)
    problem = TrajectoryProblem([first, second], lambda e: sum(p.integral["effort"] for p in e.phase.values()))

    program = Program(problem, Options(intervals=5))
    later = program.solve(replace(problem, phases=[replace(first, tf=1.0), problem.phases[1]]))

    assert program.solve().phases["b"].t0 == 0.5
    assert later.phases["b"].t0 == 1.0
    assert later.objective == pytest.approx(24.0, rel=1e-8)


def test_phases_with_overlapping_times_do_not_run_backwards():
    # a phase that may end before it begins would earn what it ought to pay
    line = problems.system("line", {"x": lambda s: s["u"]}, ["u"], bounds={"u": (-1.0, 1.0)})
    problem = TrajectoryProblem(
        [
            Phase(line, name="a", tf=(0.5, 2.0), initial={"x": 0.0}),
            Phase(line, name="b", t0=None, tf=(0.5, 2.0), integrals={"toll": Integral(lambda v: 1.0 + v["x"] ** 2)}),
        ],
        lambda e: e.phase["b"].integral["toll"],
        {"joined": Constraint(lambda e: e.phase["b"].initial["x"] - e.phase["a"].final["x"], 0.0, 0.0)},
    )

    program = Program(problem, Options(intervals=5))
    solution = program.solve()

    assert list(problem.constraints) == ["joined", "duration of b"]
    assert solution.objective == pytest.approx(0.0, abs=1e-6)
    assert solution.phases["b"].tf >= solution.phases["b"].t0 - 1e-7

    a, b = problem.phases
    apart = replace(problem, phases=[a, replace(b, tf=(2.5, 3.0))])
    assert list(apart.constraints) == ["joined"]
    assert program.solve(apart).objective == pytest.approx(0.5, rel=1e-6)  # from 2 to 2.5, x being 0
    with pytest.raises(ProblemError, match="b: tf: may lie before t0, which it could not"):
        Program(apart, Options(intervals=5)).solve(problem)


TABLES = {
    "phase": ("bounds", "initial", "final", "path", "integrals", "data", "guess", "held_controls", "samples"),
    "problem": ("constraints", "parameters", "guess", "terms", "figures", "peaks"),
}


@pytest.mark.parametrize("name", TABLES["phase"])
def test_named_entries_of_a_phase_are_a_mapping_or_none(name):
    assert getattr(replace(PHASE, **{name: None}), name) == {}
    for entries in (3, "x", ["x"]):
        status, text = refusal(lambda entries=entries: with_phase(**{name: entries}))
        expected = f"motion: {name}: is {entries!r}: give a mapping by names, as {{name: ...}}, or leave it out"
        assert (status, text) == ("bad_statement", expected)


@pytest.mark.parametrize("name", TABLES["problem"])
def test_named_entries_of_a_problem_are_a_mapping_or_none(name):
    assert not getattr(replace(BLOCK, **{name: None}), name)
    status, text = refusal(lambda: replace(BLOCK, **{name: 3}))
    assert (status, text.split(":")[:2]) == ("bad_statement", [name, " is 3"])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"phases": PHASE}, r"phases: is Phase\(system=.*: give a list of Phase\(...\)"),
        ({"phases": [3]}, r"phases: is \[3\]: give a list of Phase\(...\)"),
        ({"extra": None}, r"extra: is None: give a list of Variable\(...\)"),
    ],
)
def test_phases_and_extra_parameters_are_lists_of_them(changes, text):
    with pytest.raises(ProblemError, match=text) as raised:
        replace(BLOCK, **changes)
    assert len(str(raised.value)) < 120


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"system": None}, r"motion: system: is None: give a System, as System\.from_expressions\(...\)"),
        ({"name": 3}, "name: is 3: give the phase a word for a name"),
        ({"tf": None}, r"motion: tf: is None: give a number or a range, \(low, high\)"),
    ],
)
def test_a_phase_has_a_system_a_name_and_an_end(changes, text):
    with pytest.raises(ProblemError, match=text):
        replace(PHASE, **changes)


@pytest.mark.parametrize("do", [solve, Program])
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"problem": 3}, "problem: is 3: give a TrajectoryProblem"),
        ({"options": {}}, r"options: are {}: give Options\(...\), or none"),
        ({"guess": 3}, r"guess: is 3: give a Guess, as Guess\.from_solution\(solution\)"),
        ({"meshes": 3}, "meshes: are 3: give a list with a Mesh for each phase"),
    ],
)
def test_a_solve_refuses_arguments_of_wrong_types(do, arguments, text):
    with pytest.raises(ProblemError, match=text):
        do(**{"problem": BLOCK, **arguments})


def test_a_program_and_a_guess_check_the_types_of_their_arguments():
    with pytest.raises(ProblemError, match="guess: is 3"):
        Program(BLOCK, Options(intervals=2)).solve(guess=3)
    with pytest.raises(ProblemError, match="guess: phases: is 3: give a mapping"):
        Guess(phases=3)
