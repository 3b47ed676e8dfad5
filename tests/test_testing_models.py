"""The rules that models keep are checked: models that break one are found."""

import itertools
from typing import NotRequired, TypedDict

import numpy as np
import pytest

from designopt.plugin import Array, Diverged, InvalidDesign, discovery, model
from designopt.testing import check_model


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """Declarations of a test end with it."""
    monkeypatch.setattr(discovery, "_declared_plugins", dict(discovery._declared_plugins))


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


instances = itertools.count(5)


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
        (lambda array_names: {}, "no array 'path'"),
        (
            lambda array_names: {"path": np.ones(3), "more": np.ones(3)} if array_names else {},
            "gives an undeclared array 'more'",
        ),
        (
            lambda array_names: {"path": np.ones((3, 2))} if array_names else {},
            r"array path has 2 axes, declared are \('time',\)",
        ),
        (lambda array_names: {"path": np.ones(3)}, r"gives arrays \(path\) when none is wanted"),
    ],
)
def test_arrays_have_to_be_as_declared(arrays, message):
    @model("checked", version=1, arrays={"path": Array(("time",), "m")})
    def checked(design, scenario, array_names) -> tuple[Out, dict]:
        return {"y": 1.0, "z": 1.0}, arrays(array_names)

    with pytest.raises(AssertionError, match=message):
        check_model(checked, {}, [{}])


def test_outputs_may_not_depend_on_the_arrays_that_are_wanted():
    @model("checked", version=1, arrays={"path": Array(("time",), "m")})
    def checked(design, scenario, array_names) -> tuple[Out, dict]:
        return {"y": float(len(array_names)), "z": 1.0}, {"path": np.ones(3)} if array_names else {}

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


def test_a_model_may_report_a_missing_derivative():
    def gradient(design):
        raise Diverged("a kink")

    check_derivative(gradient, function=abs)


def test_a_model_with_random_numbers_keeps_the_rules_if_they_come_from_its_generator():
    @model("checked", version=1, arrays={"path": Array(("time",), "m")})
    def noisy(design, scenario, array_names, rng) -> tuple[Out, dict]:
        path = design["x"] + rng.standard_normal(4)
        return {"y": path.sum(), "z": 1.0}, {"path": path} if array_names else {}

    check_model(noisy, {}, [{"x": 1.0}, {"x": 2.0}])

    @model("checked", version=1)
    def worldly(design, scenario, rng) -> Out:
        return {"y": np.random.random(), "z": rng.random()}

    with pytest.raises(AssertionError, match=r"has another y .* when it is asked again"):
        check_model(worldly, {}, [{"x": 1.0}])
