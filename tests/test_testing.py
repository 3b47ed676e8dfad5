"""The conformance tests for authors find what they are made to find, and say it in a sentence."""

import itertools
import random
from dataclasses import replace
from typing import NotRequired, TypedDict

import numpy as np
import pytest

from designopt import plugin
from designopt.plugin import Array, Diverged, InvalidDesign, InvalidSetting, Use, model, solver
from designopt.problem import StageEnded
from designopt.study.study import Parameter, Scenario
from designopt.testing import InProcess, check_model, check_solver, no_outcomes, problem_from


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """Declarations of a test end with it."""
    monkeypatch.setattr(plugin, "_declared", dict(plugin._declared))


# ------------------------------------------------------------------------------------------------- in-process evaluate

SQUARE = (Parameter("x", "real", 0.0, 1.0), Parameter("y", "real", 0.0, 1.0))


def line(design, scenario):
    if design["x"] > 0.9:
        raise Diverged("too far")
    return {"f": design["x"] + scenario.get("shift", 0.0), "g": design["y"]}


def test_designs_are_evaluated_in_every_scenario():
    problem = problem_from(line, SQUARE, minimize="fg", scenarios=(Scenario("a"), Scenario("b", {"shift": 2.0})))
    out = InProcess(problem)(np.array([[0.5, 0.25], [0.95, 0.0]]))
    assert out.figures["f"][0].tolist() == [0.5, 2.5]
    assert out.objectives.tolist() == [[2.5, 0.25], [np.inf, np.inf]]
    assert out.failed.tolist() == [False, True]


def test_the_batch_that_exceeds_the_budget_is_evaluated_as_far_as_it_goes():
    evaluate = InProcess(problem_from(line, SQUARE, minimize="fg", relations=["x <= y"]), budget=3)
    X = np.array([[0.1, 0.2], [0.2, 0.1], [0.3, 0.4]])  # the second breaks the relation and costs nothing
    assert evaluate(X).invalid.tolist() == [False, True, False]
    with pytest.raises(StageEnded):
        evaluate(X)
    assert evaluate.X.tolist() == [*X.tolist(), [0.1, 0.2], [0.2, 0.1]]
    with pytest.raises(AssertionError, match="called again after it had raised StageEnded"):
        evaluate(X)


def test_a_budget_that_is_just_spent_ends_the_stage_at_the_next_design():
    evaluate = InProcess(problem_from(line, SQUARE, minimize="fg"), budget=2)
    assert len(evaluate(np.full((2, 2), 0.5))) == 2
    assert len(evaluate(np.empty((0, 2)))) == 0
    with pytest.raises(StageEnded):
        evaluate(np.full((1, 2), 0.5))


def test_a_bug_of_the_function_shows_itself():
    with pytest.raises(ZeroDivisionError):
        InProcess(problem_from(lambda d, s: {"f": 1 / 0}, SQUARE, minimize="f"))(np.full((1, 2), 0.5))
    with pytest.raises(KeyError, match=r"the model gives no 'h' \(it gives f, g\)"):
        InProcess(problem_from(line, SQUARE, minimize="h"))(np.full((1, 2), 0.5))


def test_no_outcomes_are_empty_outcomes():
    none = no_outcomes(problem_from(line, SQUARE, minimize="fg"))
    assert none.X.shape == (0, 2)
    assert none.objectives.shape == (0, 2)


def test_what_the_model_refuses_is_invalid_and_costs_no_budget():
    def function(design, scenario):
        if design["x"] > 0.5:
            raise InvalidDesign("too large")
        return {"f": design["x"]}

    evaluate = InProcess(problem_from(function, SQUARE, minimize="f"), budget=2)
    out = evaluate(np.array([[0.6, 0.0], [0.1, 0.0], [0.9, 0.0], [0.2, 0.0]]))
    assert out.invalid.tolist() == [True, False, True, False]
    assert out.violation.tolist() == [np.inf, 0.0, np.inf, 0.0]
    with pytest.raises(StageEnded):
        evaluate(np.array([[0.7, 0.0], [0.3, 0.0]]))


def test_inactive_parameters_are_imputed_and_not_given_to_the_model():
    space = (
        Parameter("kind", "choice", values=("a", "b")),
        Parameter("x", "real", 0.0, 1.0, when={"kind": ("b",)}),
    )
    evaluate = InProcess(problem_from(lambda d, s: {"f": d.get("x", 7.0)}, space, minimize="f"))
    out = evaluate(np.array([[0.0, 0.9], [1.0, 0.9]]))
    assert out.objectives[:, 0].tolist() == [7.0, 0.9]
    assert out.X.tolist() == [[0.0, 0.5], [1.0, 0.9]]


def test_random_numbers_of_a_model_follow_from_the_design():
    @model("chancy", version=1, unchecked=True)
    def chancy(design, scenario, rng):
        return {"f": rng.random()}

    problem = replace(problem_from(line, SQUARE, minimize="f"), model=Use(chancy.__designopt__), seed=1)
    X = np.array([[0.1, 0.2], [0.3, 0.4]])
    first, again = InProcess(problem)(X), InProcess(problem)(X[::-1])
    assert first.objectives.tolist() == again.objectives[::-1].tolist()
    assert first.objectives[0] != first.objectives[1]


# ------------------------------------------------------------------------------------------------------------- solvers


def declared(body):
    """A solver plugin whose `solve` is `body`."""
    return solver("declared", version=1)(type("Declared", (), {"solve": body}))


def draws(rng, problem, n=5):
    lower, upper = problem.space.lower, problem.space.upper
    return problem.space.from_search(lower + (upper - lower) * rng.random((n, len(lower))))


def test_a_random_search_keeps_all_rules():
    def search(self, problem, evaluate, rng, start):
        while True:
            evaluate(draws(rng, problem))

    check_solver(declared(search))


def test_a_search_that_learns_keeps_all_rules():
    def search(self, problem, evaluate, rng, start):
        out = evaluate(draws(rng, problem))
        while True:
            best = out.X[np.argmin(out.rank_violation)]
            out = evaluate(np.vstack([draws(rng, problem, 2), best]))

    check_solver(declared(search))


def of_global_numpy(self, problem, evaluate, rng, start):
    evaluate(draws(np.random, problem))


def of_global_random(self, problem, evaluate, rng, start):
    X = draws(rng, problem)
    X[:, 0] = 0.5 * random.random()
    evaluate(X)


def of_what_it_remembers(self, problem, evaluate, rng, start):
    self.count = getattr(self, "count", 0) + 1
    evaluate(draws(rng, problem, self.count))


instances = itertools.count(5)


def of_its_number(self, problem, evaluate, rng, start):
    if not hasattr(self, "number"):
        self.number = next(instances)
    evaluate(draws(rng, problem, self.number))


def beyond_the_bounds(self, problem, evaluate, rng, start):
    evaluate(draws(rng, problem) + 10.0)


def of_fractions(self, problem, evaluate, rng, start):
    evaluate(problem.space.lower + 0.7 * (problem.space.upper - problem.space.lower) * np.ones((1, 1)))


def of_nan(self, problem, evaluate, rng, start):
    evaluate(np.full((1, len(problem.space.free)), np.nan))


def of_one_row(self, problem, evaluate, rng, start):
    evaluate(draws(rng, problem)[0])


def of_nothing(self, problem, evaluate, rng, start):
    pass


def that_never_ends(self, problem, evaluate, rng, start):
    while True:
        evaluate(draws(rng, problem, 0))


def that_goes_on_after_the_end(self, problem, evaluate, rng, start):
    for _ in range(100):
        try:
            evaluate(draws(rng, problem))
        except StageEnded:
            evaluate(draws(rng, problem))


def that_catches_everything(self, problem, evaluate, rng, start):
    try:
        for _ in range(100):
            evaluate(draws(rng, problem))
    except Exception:
        pass


def that_catches_what_comes_later(self, problem, evaluate, rng, start):
    out = evaluate(draws(rng, problem))
    while len(out):
        try:
            evaluate(draws(rng, problem))
        except Exception:
            return


def that_changes_outcomes(self, problem, evaluate, rng, start):
    while True:
        evaluate(draws(rng, problem)).objectives[:] = 0.0


def that_seeds_numpy(self, problem, evaluate, rng, start):
    np.random.seed(1)
    evaluate(draws(rng, problem))


def that_returns_a_number(self, problem, evaluate, rng, start):
    evaluate(draws(rng, problem))
    return 3


def that_depends_on_the_budget(self, problem, evaluate, rng, start):
    evaluate(draws(rng, problem, 20 if getattr(evaluate, "_budget", 0) > 150 else 10))


def that_forgets_its_start(self, problem, evaluate, rng, start):
    evaluate(draws(rng if not len(start) else np.random.default_rng(next(instances)), problem))


def that_asks_ahead_for_two(self, problem, evaluate, rng, start):
    evaluate.ahead(lambda: draws(rng, problem, 2), lambda outcomes: None, 2)


def that_looks_no_design_ahead(self, problem, evaluate, rng, start):
    evaluate.ahead(lambda: draws(rng, problem, 1), lambda outcomes: None, 0)


def that_trips_over_failures(self, problem, evaluate, rng, start):
    for _ in range(100):
        out = evaluate(draws(rng, problem))
        assert np.isfinite(out.objectives).any(), "the solver's own mistake"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (of_global_numpy, "the same instance asked for other designs although its generator was equal"),
        (of_global_random, "the same instance asked for other designs"),
        (of_what_it_remembers, "the same instance asked for other designs"),
        (of_its_number, "a new instance asked for other designs"),
        (beyond_the_bounds, r"asked for x = .*; it has to be within its bounds, -1\.0 to 2\.0"),
        (of_fractions, r"asked for n = .*; it has to be a whole number within its bounds, -2 to 3"),
        (of_nan, "asked for x = nan; it has to be within its bounds"),
        (of_one_row, r"a batch has the shape \(designs, 4\), not \(4,\)"),
        (of_nothing, "asked for no design at all"),
        (that_never_ends, "batches did not spend a budget of 150 designs"),
        (that_goes_on_after_the_end, "evaluate was called again after it had raised StageEnded"),
        (that_catches_everything, "swallows StageEnded; what evaluate raises has to pass through solve"),
        (that_catches_what_comes_later, "swallows StageEnded; what evaluate raises has to pass through solve"),
        (that_changes_outcomes, "changes the objectives of the outcomes that it is given"),
        (that_seeds_numpy, r"uses the global generator of numpy.random or random; it has to use rng alone"),
        (that_returns_a_number, "solve returns 3; it may return a sentence that tells why it ended"),
        (that_depends_on_the_budget, "a new instance asked for other designs"),
        (that_forgets_its_start, "asked for other designs although its generator and start were equal"),
        (that_asks_ahead_for_two, "asks ahead for 2 designs at once; it has to be one or none"),
        (that_looks_no_design_ahead, "looks 0 designs ahead; it has to be a whole number from 1 on"),
        (that_trips_over_failures, "the solver's own mistake"),
    ],
)
def test_a_solver_that_breaks_a_rule_is_found(body, message):
    with pytest.raises(AssertionError, match=message):
        check_solver(declared(body))


def test_a_search_that_asks_ahead_keeps_all_rules():
    def search(self, problem, evaluate, rng, start):
        known = []
        evaluate.ahead(lambda: draws(rng, problem, 1) if len(known) < 99 else draws(rng, problem, 0), known.append, 3)
        return "has had enough"

    check_solver(declared(search))


def of_one_objective_alone(count):
    def check(self, problem):
        if len(problem.objectives) != count:
            raise InvalidSetting("use", f"needs {count} objectives")

    def search(self, problem, evaluate, rng, start):
        evaluate(draws(rng, problem))

    return solver("declared", version=1)(
        type("Declared", (), {"solve": search, "check": check, "minimum_budget": lambda self, problem: count - 1})
    )


def test_a_solver_is_tried_on_the_problems_that_it_accepts():
    with pytest.raises(AssertionError, match=r"refuses all problems \(use: needs 3 objectives\); give others"):
        check_solver(of_one_objective_alone(3))
    with pytest.raises(AssertionError, match="minimum_budget gives 0; it has to be a whole number from 1 on"):
        check_solver(of_one_objective_alone(1))
    check_solver(of_one_objective_alone(2))


def test_the_global_generators_are_left_as_they_were():
    def search(self, problem, evaluate, rng, start):
        evaluate(draws(rng, problem))

    random.seed(7)
    np.random.seed(7)
    expected = random.random(), np.random.random()
    random.seed(7)
    np.random.seed(7)
    check_solver(declared(search))
    assert (random.random(), np.random.random()) == expected


def test_what_is_no_solver_is_told_apart():
    with pytest.raises(AssertionError, match="int is not a solver plugin; decorate it"):
        check_solver(int)


# -------------------------------------------------------------------------------------------------------------- models


class Out(TypedDict):
    y: float
    z: float


def check(function, designs=({"x": 1.0}, {"x": 2.0}), **options):
    def modelled(design, scenario) -> Out:
        return function(design, scenario)

    check_model(model("checked", version=1)(modelled), {}, designs, **options)


def test_a_pure_function_with_refusals_keeps_all_rules():
    def function(design, scenario):
        if design["x"] < 0.0:
            raise InvalidDesign("x is negative")
        if design["x"] > 9.0:
            raise Diverged("no answer")
        return {"y": design["x"] + scenario.get("s", 0.0), "z": np.float64(2.0)}

    check(function, scenarios=({}, {"s": 1.0}), refused=[{"x": -1.0}], diverging=[{"x": 10.0}])


def test_a_class_with_settings_and_arrays_keeps_all_rules():
    @model("checked", version=1, arrays={"path": Array(("time",), "m")})
    class Checked:
        n: int

        def prepare(self):
            self.time = np.linspace(0.0, 1.0, self.n)

        def evaluate(self, design, scenario, arrays) -> tuple[Out, dict]:
            path = design["x"] * self.time
            return {"y": path[-1], "z": 1.0}, {"path": path} if "path" in arrays else {}

    check_model(Checked, {"n": 5}, [{"x": 1.0}, {"x": 2.0}])


calls: list[float] = []


def counting(design, scenario):
    calls.append(1.0)
    return {"y": float(len(calls)), "z": 0.0}


def remembering(design, scenario):
    calls[:] = [*calls, design["x"]][-2:]
    return {"y": sum(calls), "z": 0.0}


shared: dict[str, float] = {}


def sharing(design, scenario):
    shared.update(y=design["x"], z=0.0)
    return shared


def changing(design, scenario):
    return {"y": design.pop("x"), "z": 0.0}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (counting, r"has another y \(.*\) for design {'x': 2.0} when it is asked again"),
        (remembering, "has another y .* when it is asked again"),
        (sharing, r"has another y \(1.0, then 2.0\) for design {'x': 1.0} after others were evaluated: it shares"),
        (changing, "changes the design or scenario that it is given"),
        (lambda d, s: {"y": 1.0}, r"gives no output 'z' for design {'x': 1.0} in scenario {}"),
        (lambda d, s: {"y": 1.0, "z": 1.0, "w": 1.0}, "gives an undeclared output 'w'"),
        (lambda d, s: {"y": float("nan"), "z": 1.0}, "gives y = nan .*; an output is a finite number"),
        (lambda d, s: {"y": "1", "z": 1.0}, "gives y = '1' .*; an output is a finite number"),
        (lambda d, s: {"y": np.ones(2), "z": 1.0}, "gives y = .*; an output is a finite number"),
    ],
)
def test_a_model_that_breaks_a_rule_is_found(function, message):
    calls.clear()
    with pytest.raises(AssertionError, match=message):
        check(function)


class Sometimes(TypedDict):
    y: float
    margin: NotRequired[float]


@pytest.mark.parametrize("margin", [None, 2.0, np.inf, -np.inf])
def test_an_output_that_is_not_required_may_be_left_out_or_infinite(margin):
    @model("sometimes", version=1)
    def sometimes(design, scenario) -> Sometimes:
        return {"y": design["x"]} if margin is None else {"y": design["x"], "margin": margin}

    check_model(sometimes, designs=[{"x": 1.0}, {"x": 2.0}])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"margin": 1.0}, "gives no output 'y'"),
        ({"y": np.inf}, "gives y = inf .*; an output is a finite number"),
        ({"y": 1.0, "margin": np.nan}, "gives margin = nan .*; an output is a finite number"),
        ({"y": 1.0, "margn": 1.0}, "gives an undeclared output 'margn'"),
    ],
)
def test_an_output_that_is_not_required_has_rules_too(answer, message):
    @model("sometimes", version=1)
    def sometimes(design, scenario) -> Sometimes:
        return dict(answer)

    with pytest.raises(AssertionError, match=message):
        check_model(sometimes)


def test_instances_have_to_agree():
    @model("checked", version=1, unchecked=True)
    class Checked:
        def prepare(self):
            self.number = next(instances)

        def evaluate(self, design, scenario):
            return {"y": self.number}

    with pytest.raises(AssertionError, match=r"has another y .* in a new instance"):
        check_model(Checked)


def root(design, scenario):
    if design["x"] < 0.0:
        raise ValueError("negative")
    return {"y": design["x"], "z": 0.0}


def test_bad_input_has_to_raise_the_right_class():
    with pytest.raises(AssertionError, match=r"raises ValueError \(negative\) .*; it has to raise InvalidDesign"):
        check(root, refused=[{"x": -1.0}])
    with pytest.raises(AssertionError, match=r"answers design {'x': 3.0}; it has to raise InvalidDesign"):
        check(root, refused=[{"x": 3.0}])
    with pytest.raises(AssertionError, match=r"raises ValueError .*; it has to raise Diverged"):
        check(root, diverging=[{"x": -1.0}])


def test_a_refused_design_may_not_spoil_the_next_one():
    state = {"ok": True}

    def function(design, scenario):
        if design["x"] < 0.0:
            state["ok"] = False
            raise InvalidDesign("negative")
        return {"y": design["x"] if state["ok"] else 0.0, "z": 0.0}

    with pytest.raises(AssertionError, match=r"has another y .* after a design that it refused"):
        check(function, refused=[{"x": -1.0}])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (lambda wanted: {}, "gives no array 'path'"),
        (lambda wanted: {"path": np.ones(3), "more": np.ones(3)} if wanted else {}, "gives an undeclared array 'more'"),
        (
            lambda wanted: {"path": np.ones((3, 2))} if wanted else {},
            r"array path has 2 axes, declared are \('time',\)",
        ),
        (lambda wanted: {"path": np.ones(3)}, r"gives arrays \(path\) when none is wanted"),
    ],
)
def test_arrays_have_to_be_as_declared(arrays, message):
    @model("checked", version=1, arrays={"path": Array(("time",), "m")})
    def checked(design, scenario, wanted) -> tuple[Out, dict]:
        return {"y": 1.0, "z": 1.0}, arrays(wanted)

    with pytest.raises(AssertionError, match=message):
        check_model(checked, {}, [{}])


def test_outputs_may_not_depend_on_the_arrays_that_are_wanted():
    @model("checked", version=1, arrays={"path": Array(("time",), "m")})
    def checked(design, scenario, wanted) -> tuple[Out, dict]:
        return {"y": float(len(wanted)), "z": 1.0}, {"path": np.ones(3)} if wanted else {}

    with pytest.raises(AssertionError, match="has other outputs when no arrays are wanted"):
        check_model(checked, {}, [{}])


def test_settings_have_to_exist():
    @model("checked", version=1, unchecked=True)
    def checked(design, scenario, *, gain: float = 1.0):
        return {"y": gain}

    with pytest.raises(AssertionError, match=r"checked has no setting 'gian' \(it has gain\)"):
        check_model(checked, {"gian": 2.0})
    with pytest.raises(AssertionError, match="is not a model plugin; decorate it"):
        check_model(int)


# ------------------------------------------------------------------------------------- derivatives and random numbers


class Slope(TypedDict):
    y: float


def check_derivative(gradient, function=lambda x: x**3, designs=({"x": 1.5}, {"x": -2.0}, {"x": 0.0}), **options):
    @model("checked", version=1)
    class Checked:
        def evaluate(self, design, scenario) -> Slope:
            return {"y": function(design["x"])}

    Checked.gradient = lambda self, design, scenario: gradient(design)
    model("checked", version=1)(Checked)
    check_model(Checked, {}, designs, **options)


def cut(x):
    if x < 0.0:
        raise InvalidDesign("negative")
    return x**1.5


@pytest.mark.parametrize(
    ("gradient", "options"),
    [
        (lambda d: {"y": {"x": 3.0 * d["x"] ** 2}}, {}),
        (lambda d: {}, {}),
        (lambda d: {"y": {"x": float("nan")}}, {}),
        (lambda d: {"y": {"x": 3.003 * d["x"] ** 2}}, {"gradient_tolerance": 2e-3}),
        (lambda d: {"y": {"x": 1.5 * d["x"] ** 0.5}}, {"function": cut, "designs": ({"x": 0.0}, {"x": 2.0})}),
        (lambda d: {"y": {"x": 1e6}}, {"function": lambda x: 1e6 * x, "designs": ({"x": 1e-9},)}),
        (lambda d: {"y": {"x": np.exp(d["x"])}}, {"function": np.exp}),
    ],
)
def test_derivatives_that_agree_with_differences_are_passed(gradient, options):
    check_derivative(gradient, **options)


def spoiling(design):
    return {"y": {"x": design.pop("x")}}


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (lambda d: {"y": {"x": -3.0 * d["x"] ** 2}}, r"derivative of y by x as .*; central differences give 12"),
        (lambda d: {"y": {"x": 3.0003 * d["x"] ** 2}}, "central differences give"),
        (lambda d: {"z": {"x": 1.0}}, "gives the derivative of 'z', which is none of its outputs"),
        (lambda d: {"y": {"w": 1.0}}, "gives the derivative of y by 'w', which is no real input"),
        (spoiling, "gradient changes the design or scenario that it is given"),
    ],
)
def test_a_wrong_derivative_is_found(gradient, message):
    with pytest.raises(AssertionError, match=message):
        check_derivative(gradient)


def test_a_derivative_by_something_that_is_no_number_is_found():
    with pytest.raises(AssertionError, match="gives the derivative of y by 'kind', which is no real input"):
        check_derivative(lambda d: {"y": {"kind": 1.0}}, designs=({"x": 1.0, "kind": "a"},))


def test_where_a_model_knows_no_derivative_it_may_say_so():
    def gradient(design):
        raise Diverged("a kink")

    check_derivative(gradient, function=abs)


def test_a_model_with_random_numbers_keeps_the_rules_if_they_come_from_its_generator():
    @model("checked", version=1, arrays={"path": Array(("time",), "m")})
    def noisy(design, scenario, wanted, rng) -> tuple[Out, dict]:
        path = design["x"] + rng.standard_normal(4)
        return {"y": path.sum(), "z": 1.0}, {"path": path} if wanted else {}

    check_model(noisy, {}, [{"x": 1.0}, {"x": 2.0}])

    @model("checked", version=1)
    def worldly(design, scenario, rng) -> Out:
        return {"y": np.random.random(), "z": rng.random()}

    with pytest.raises(AssertionError, match=r"has another y .* when it is asked again"):
        check_model(worldly, {}, [{"x": 1.0}])
