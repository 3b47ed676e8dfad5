"""Plugins: what a declaration yields, how installed ones are found without an import, how mistakes are told."""

import importlib.metadata
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, TypedDict

import pytest

from designopt.plugin import (
    GROUPS,
    Array,
    PluginError,
    Quantity,
    Use,
    aggregation,
    discovery,
    filled,
    find,
    installed_plugins,
    load_file,
    model,
    names,
    objective,
    report_part,
    solver,
)
from designopt.plugin.signature import typed_dict
from designopt.study.language.checking.settings import describe

Q = Quantity


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """Declarations of a test end with it."""
    monkeypatch.setattr(discovery, "_declared_plugins", dict(discovery._declared_plugins))


class Inputs(TypedDict, total=False):
    stiffness: Annotated[float, Q("N/m", "of the spring")]
    count: int


class Outputs(TypedDict):
    accel: Annotated[float, Q("m/s^2", "rms acceleration")]
    extra: NotRequired[Annotated[float, Q("m", "only sometimes")]]


# -------------------------------------------------------------------------------------------------------- declaration


class Weather(TypedDict, total=False):
    wind: Annotated[float, Q("m/s", "along the road", ge=0, default=3.0)]
    rain: Annotated[float, Q("mm", "in an hour", ge=0)]


def test_conditions_omitted_by_a_scenario_have_the_declared_default():
    assert filled(Weather, {}) == {"wind": 3.0}
    assert filled(Weather, {"wind": 5.0, "rain": 1.0}) == {"wind": 5.0, "rain": 1.0}

    @model("drive", version=1)
    def drive(design: Inputs, scenario: Weather) -> Outputs:
        """Drive."""
        return {"accel": filled(Weather, scenario)["wind"]}

    lines = describe(find("model", "drive")).splitlines()
    (wind,) = (line.split() for line in lines if "along the road" in line)
    (rain,) = (line.split() for line in lines if "in an hour" in line)
    assert wind == ["wind", "number", "m/s", "3", ">=", "0", "along", "the", "road"]
    assert rain == ["rain", "number", "mm", ">=", "0", "in", "an", "hour"]


def test_a_long_list_of_words_stands_behind_the_meaning():
    words = Literal["first_quantity", "second_quantity", "third_quantity"]

    @model("choice", version=1)
    def choice(design, scenario, *, which: Annotated[words, Q("", "what is computed")] = "first_quantity") -> Outputs:
        """Choice."""
        return {"accel": 0.0}

    assert "one of  first_quantity  what is computed: first_quantity, second_quantity" in describe(
        find("model", "choice")
    )


def test_a_default_out_of_range_or_of_a_required_setting_is_refused():
    with pytest.raises(PluginError, match="the default -1 is outside its own range"):
        Q("m/s", "along the road", ge=0, default=-1.0)
    with pytest.raises(PluginError, match="the usual range ends at 0 before it begins at 1"):
        Q("", "stable below 1", usual=(1.0, 0.0))
    with pytest.raises(PluginError, match="'wind' of Needed has a default"):
        typed_dict(TypedDict("Needed", {"wind": Annotated[float, Q("m/s", default=3.0)]}))


def test_a_model_function_declares_settings_inputs_and_outputs_with_units():
    @model("ride", version=2)
    def ride(
        design: Inputs,
        scenario,
        *,
        mass: Annotated[float, Q("kg", "of the body", gt=0)],
        road: Literal["a", "b"] = "b",
        horizon: Annotated[float, Q("s", "simulated time")] | None = None,
    ) -> Outputs:
        """Two-mass ride model.

        More text.
        """
        return {"accel": mass * design["stiffness"]}

    plugin = find("model", "ride")
    assert plugin is ride.__designopt__
    assert (plugin.kind, plugin.name, plugin.version) == ("model", "ride", 2)
    assert plugin.description == "Two-mass ride model.\n\nMore text."
    assert plugin.source is not None
    assert plugin.source.name == "test_plugin.py"
    mass, road, horizon = plugin.settings.values()
    assert (mass.name, mass.required, mass.quantity) == ("mass", True, Q("kg", "of the body", gt=0))
    assert (road.required, road.default, road.quantity) == (False, "b", None)
    assert (horizon.required, horizon.default, horizon.quantity) == (False, None, Q("s", "simulated time"))
    assert plugin.inputs is not None
    assert {n: (f.required, f.quantity) for n, f in plugin.inputs.items()} == {
        "stiffness": (False, Q("N/m", "of the spring")),
        "count": (False, None),
    }
    assert plugin.conditions is None  # not annotated: any name goes
    assert {n: (f.required, f.quantity) for n, f in plugin.outputs.items()} == {
        "accel": (True, Q("m/s^2", "rms acceleration")),
        "extra": (False, Q("m", "only sometimes")),
    }
    assert Use(plugin, {"mass": 2.0}).build().evaluate({"stiffness": 3.0}, {}) == {"accel": 6.0}


def test_a_model_class_has_its_fields_as_settings_and_is_built_but_not_prepared():
    @model("beam", version=1, arrays={"shape": Array(("x",), "m")})
    class Beam:
        length: Annotated[float, Q("m", "between supports", gt=0)]
        parts: int = 10

        def prepare(self):
            raise AssertionError("not by build")

        def evaluate(self, design, scenario, arrays) -> tuple[Outputs, dict]:
            return {"accel": self.length}, {}

    plugin = find("model", "beam")
    assert list(plugin.settings) == ["length", "parts"]
    assert plugin.settings["length"].required
    assert plugin.settings["parts"].default == 10
    assert plugin.takes_arrays
    assert plugin.arrays == {"shape": Array(("x",), "m")}
    assert set(plugin.outputs) == {"accel", "extra"}
    assert plugin.build({"length": 2.0}) == Beam(length=2.0, parts=10)


def test_a_subclass_of_a_plugin_has_settings_of_its_own():
    @model("parent", version=1, unchecked=True)
    class Parent:
        a: int = 1

        def evaluate(self, design, scenario):
            return {"a": self.a}

    @model("child", version=1, unchecked=True)
    class Child(Parent):
        b: int = 2

    assert list(find("model", "child").settings) == ["a", "b"]
    assert find("model", "child").build({"b": 3}) == Child(a=1, b=3)
    assert list(find("model", "parent").settings) == ["a"]


def test_a_dataclass_is_taken_as_it_is():
    @solver("frozen", version=1)
    @dataclass(frozen=True)
    class Frozen:
        n: int = 1

        def solve(self, problem, evaluate, rng, start):
            """Ask for nothing."""

    assert find("solver", "frozen").build({"n": 2}) == Frozen(2)


def test_an_objective_names_what_it_needs_and_its_unit():
    @objective("peak", version=1)
    def peak(force, time, *, share: Annotated[float, Q("", "of the cycle")] = 1.0) -> Annotated[float, Q("N", "peak")]:
        """Largest force."""
        return share * max(force)

    plugin = find("objective", "peak")
    assert plugin.needs == ("force", "time")
    assert plugin.unit == "N"
    assert list(plugin.settings) == ["share"]
    assert plugin.build({"share": 0.5})([1.0, 4.0], [0.0, 1.0]) == 2.0


def test_aggregations_and_reports_are_functions_with_settings_bound():
    @aggregation("plus", version=1)
    def plus(values, *, amount: float = 1.0):
        return values + amount

    @report_part("part", version=1)
    def part(result, *, title: str = "t"):
        return (result, title)

    assert find("aggregation", "plus").build({"amount": 2.0})(1.0) == 3.0
    assert find("report", "part").build({})("r") == ("r", "t")


@pytest.mark.parametrize(
    ("function", "takes_arrays", "takes_rng"),
    [
        (lambda design, scenario: {}, False, False),
        (lambda design, scenario, arrays: ({}, {}), True, False),
        (lambda design, scenario, rng: {}, False, True),
        (lambda design, scenario, arrays, rng: ({}, {}), True, True),
        (lambda design, scenario, *, rng=1: {}, False, False),  # a setting like any other
    ],
)
def test_a_model_is_given_arrays_and_random_numbers_when_it_asks_for_them(function, takes_arrays, takes_rng):
    declared = model("asking", version=1, unchecked=True)(function).__designopt__
    assert (declared.takes_arrays, declared.takes_rng) == (takes_arrays, takes_rng)


def test_a_model_class_knows_derivatives_when_it_has_the_method():
    @model("plain", version=1, unchecked=True)
    class Plain:
        gradient: float = 1.0  # a setting, not a method

        def evaluate(self, design, scenario):
            return {}

    @model("derived", version=1, unchecked=True)
    class Derived(Plain):
        def gradient(self, design, scenario):
            return {}

    assert not find("model", "plain").has("gradient")
    assert find("model", "derived").has("gradient")


def test_a_solver_wants_derivatives_always_never_or_by_its_settings():
    @solver("blind", version=1)
    class Blind:
        def solve(self, problem, evaluate, rng, start):
            return None

    @solver("steep", version=1)
    class Steep(Blind):
        wants_gradient = True

    @solver("either", version=1)
    class Either(Blind):
        slopes: bool = False

        def wants_gradient(self):
            return self.slopes

    wants = {name: find("solver", name).wants_gradient for name in ("blind", "steep", "either")}
    assert not wants["blind"]({})
    assert wants["steep"]({})
    assert not wants["either"]({})
    assert wants["either"]({"slopes": True})


def test_later_settings_have_defaults():
    with pytest.raises(PluginError, match="later_settings names 'slope', which is not a setting with a default"):

        @solver("misspelled", version=1)
        class Misspelled:
            slopes: bool = False
            later_settings = ("slope",)

            def solve(self, problem, evaluate, rng, start):
                return None


DerivativeNames = TypedDict("DerivativeNames", {"d(f)/d(x)": float})


class Counted(TypedDict):
    gaps: Annotated[float, Q("", "frames without a number", notable=True, listed_by="sentences")]


def lists_sentences(design, scenario) -> Counted:
    raise AssertionError("declared to be refused, never to be run")


def returns_derivatives(design, scenario) -> DerivativeNames:
    raise AssertionError("declared to be refused, never to be run")


def after_the_star(self, design, scenario, *, rng):
    raise AssertionError("declared to be refused, never to be run")


def settings_after_the_star(self, design, scenario, *, gain):
    raise AssertionError("declared to be refused, never to be run")


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            lambda: model("m", version=1)(lambda design, scenario: {}),
            "model 'm': annotate its return value with a TypedDict of numbers with units; or leave out @model",
        ),
        (
            lambda: model("m", version=1, unchecked=True)(lambda design: {}),
            r"model 'm': evaluate takes \(design, scenario\) or \(design, scenario, arrays\)",
        ),
        (
            lambda: model("m", version=1, unchecked=True)(lambda design, scenario, rng, arrays: {}),
            "model 'm': evaluate takes .*, followed by 'prepared' and 'rng'",
        ),
        (
            lambda: model("m", version=1, unchecked=True)(type("M", (), {"evaluate": after_the_star})),
            r"model 'm': evaluate has the keyword-only argument 'rng', which is never passed.*; put it last",
        ),
        (
            lambda: model("m", version=1, unchecked=True)(type("M", (), {"evaluate": settings_after_the_star})),
            r"model 'm': evaluate has the keyword-only argument 'gain', .*; settings of a class are its fields",
        ),
        (
            lambda: model("m", version=1)(returns_derivatives),
            r"model 'm': output 'd\(f\)/d\(x\)': names that begin with 'd\(' are reserved for derivatives",
        ),
        (
            lambda: model("m", version=1)(lists_sentences),
            "model 'm': the output 'gaps' is listed by the array 'sentences', which is not declared",
        ),
        (
            lambda: model("m", version=1, arrays={"sentences": Array(("gap",))})(lists_sentences),
            "'sentences', which has numbers; declare it with dtype='str'",
        ),
        (
            lambda: objective("o", version=1)(lambda force: 1.0),
            r"objective 'o': annotate its return value: Annotated\[float, Quantity\(unit, meaning\)\]",
        ),
        (
            lambda: solver("s", version=1)(lambda problem: None),
            r"solver 's': a solver is a class with solve\(problem, evaluate, rng, start\)",
        ),
        (
            lambda: solver("s", version=1)(type("Nothing", (), {})),
            r"solver 's': a solver is a class with solve\(problem, evaluate, rng, start\)",
        ),
        (
            lambda: aggregation("no-name", version=1)(lambda values: values),
            "aggregation 'no-name': a plugin's name has only letters, digits and underscores",
        ),
    ],
)
def test_a_wrong_declaration_fails_at_once_with_the_reason(declare, message):
    with pytest.raises(PluginError, match=message):
        declare()


# ---------------------------------------------------------------------------------------------------------- discovery

GOOD = """
from designopt.plugin import model
@model("{name}", version=1, unchecked=True)
def f(design, scenario):
    return {{"y": 1.0}}
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """install(distribution, version, {plugin name: (module, source)}) puts models where entry points are found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = set(sys.modules)

    def do(distribution: str, version: str, models: dict[str, tuple[str, str]]) -> None:
        info = tmp_path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [f"{name} = {module}:f" for name, (module, _) in models.items()]
        (info / "entry_points.txt").write_text("\n".join(["[designopt.models]", *lines]))
        for module, source in models.values():
            (tmp_path / f"{module}.py").write_text(source)

    yield do
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_installed_plugins_equal_those_of_the_standard_library():
    entry_points = importlib.metadata.entry_points()
    expected = {
        (kind, e.name, e.module, e.attr, e.dist.name, e.dist.version)
        for kind, group in GROUPS.items()
        for e in entry_points.select(group=group)
    }
    assert len(expected) > 50
    ours = {(p.kind, p.name, p.entry.module, p.entry.attribute, p.distribution, p.version) for p in installed_plugins()}
    assert ours == expected


def test_plugins_of_a_zip_archive_on_the_path_are_found(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("my_zip-2.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: my-zip\nVersion: 2.0\n")
        archive.writestr("my_zip-2.0.dist-info/entry_points.txt", "[designopt.models]\nzipped = my_zip:f\n")
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    assert ("zipped", "my-zip", "2.0") in {(p.name, p.distribution, p.version) for p in installed_plugins("model")}


def test_installed_plugins_are_listed_without_importing_them(install):
    install("my-pkg", "1.2", {"slow_ride": ("my_pkg_slow", "raise SystemError('imported')")})
    listed = {p.name: p for p in installed_plugins("model")}
    assert (listed["slow_ride"].distribution, listed["slow_ride"].version) == ("my-pkg", "1.2")
    assert "slow_ride" in names("model")
    assert "slow_ride" in {p.name for p in installed_plugins()}
    assert "slow_ride" not in names("solver")
    assert "my_pkg_slow" not in sys.modules


def test_a_plugin_is_imported_when_it_is_used(install):
    install("my-pkg", "1.2", {"my_ride": ("my_pkg_ride", GOOD.format(name="my_ride"))})
    assert find("model", "my_ride").build({}).evaluate({}, {}) == {"y": 1.0}
    assert find("model", "my-pkg:my_ride").name == "my_ride"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_package", "my_ride (my-pkg 1.2): ModuleNotFoundError: No module named 'no_such_package'"),
        ("raise ValueError('two\\nlines')", "my_ride (my-pkg 1.2): ValueError: two lines"),
        ("import sys; sys.exit('left')", "my_ride (my-pkg 1.2): SystemExit: left"),
        ("g = 1", "my_ride (my-pkg 1.2): AttributeError: module 'my_pkg_broken' has no attribute 'f'"),
        ("f = 1", "my_ride (my-pkg): the entry point is not a model plugin"),
        (GOOD.format(name="her_ride"), "my_ride (my-pkg): the plugin calls itself 'her_ride'"),
    ],
)
def test_a_broken_plugin_is_reported_in_one_line_with_its_distribution(install, source, message):
    install("my-pkg", "1.2", {"my_ride": ("my_pkg_broken", source)})
    with pytest.raises(PluginError) as error:
        find("model", "my_ride")
    assert str(error.value) == message


def test_a_broken_plugin_does_not_disturb_the_others(install):
    install("my-pkg", "1.2", {"bad": ("my_pkg_bad", "1/0"), "good": ("my_pkg_good", GOOD.format(name="good"))})
    assert find("model", "good").name == "good"


def test_a_name_offered_twice_is_refused_until_the_distribution_is_named(install):
    install("one-pkg", "1", {"twin": ("one_twin", GOOD.format(name="twin"))})
    install("two-pkg", "2", {"twin": ("two_twin", GOOD.format(name="twin"))})
    with pytest.raises(PluginError, match="model 'twin' is offered by one-pkg and two-pkg; write 'distribution:twin'"):
        find("model", "twin")
    assert find("model", "two-pkg:twin").target.__module__ == "two_twin"
    assert find("model", "one-pkg:twin").target.__module__ == "one_twin"


def test_an_unknown_name_is_answered_with_the_nearest_one():
    with pytest.raises(
        PluginError, match=r"^no plugin named 'nsga'; did you mean 'nsga2'\? \(installed: auto, cma_es, "
    ):
        find("solver", "nsga")
    with pytest.raises(PluginError, match=r"^no plugin named 'xyzzy' \(installed: cvar, .*mean, .*nominal, quantile"):
        find("aggregation", "xyzzy")
    with pytest.raises(PluginError, match=r"\(installed: amputee_walk, .* and \d+ more: designopt list models\)"):
        find("model", "xyzzy")
    with pytest.raises(PluginError, match="no plugin named 'elsewhere:nsga2'"):
        find("solver", "elsewhere:nsga2")


def test_a_model_is_not_found_as_a_solver():
    @model("only_a_model", version=1, unchecked=True)
    def only_a_model(design, scenario):
        return {}

    with pytest.raises(PluginError, match="no plugin named 'only_a_model'"):
        find("solver", "only_a_model")


@pytest.mark.parametrize("kind", ["model", "objective", "solver", "aggregation", "report"])
def test_every_bundled_plugin_loads_and_describes_itself(kind):
    for listed in installed_plugins(kind):
        if listed.distribution == "designopt":
            plugin = find(kind, listed.name)
            assert plugin.name == listed.name
            assert plugin.description, f"{kind} {listed.name} has no docstring"


def test_plugins_are_listed_without_numpys_big_brothers():
    code = (
        "import sys\nfrom designopt.plugin import names\n"
        "assert 'nsga2' in names('solver')\n"
        "print([m for m in ('numpy', 'scipy', 'pymoo', 'casadi', 'dask', 'pint', 'designopt.solvers.sampling')"
        " if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


# --------------------------------------------------------------------------------------------------------------- files


def test_a_file_given_by_the_user_declares_its_plugins():
    load_file("mine.py", GOOD.format(name="from_a_file").encode())
    assert find("model", "from_a_file").build({}).evaluate({}, {}) == {"y": 1.0}


def test_annotations_of_a_file_with_postponed_evaluation_are_understood():
    source = b"""
from __future__ import annotations
from typing import Annotated, NotRequired, TypedDict
from designopt.plugin import Quantity, model

class Out(TypedDict):
    y: Annotated[float, Quantity("m", "height")]
    z: NotRequired[float]

@model("postponed", version=1)
def f(design, scenario, *, gain: float = 1.0) -> Out:
    return {"y": gain}
"""
    load_file("postponed.py", source)
    plugin = find("model", "postponed")
    assert plugin.outputs["y"].quantity == Q("m", "height")
    assert [f.required for f in plugin.outputs.values()] == [True, False]
    assert plugin.settings["gain"].annotation is float


DECORATED = """
from typing import Annotated, TypedDict
from designopt.plugin import Quantity, model

class Outputs(TypedDict):
    y: Annotated[float, Quantity("m", "")]

@model("again_and_again", version=1)
def again(design, scenario) -> Outputs:
    return {{"y": {factor} * design["x"]}}
"""
PLAIN = """
def again_and_again(x):
    return {factor} * x
"""


@pytest.mark.parametrize("text", [DECORATED, PLAIN], ids=["decorated", "plain"])
def test_the_file_that_is_loaded_last_declares_the_model_also_where_its_content_was_loaded_before(text):
    for factor in (1.0, 2.0, 1.0):
        load_file("again.py", text.format(factor=factor).encode())
        evaluate = find("model", "again_and_again").build({}).evaluate
        assert list(evaluate({"x": 3.0}, {}).values()) == [3.0 * factor]


def test_the_same_file_is_run_once():
    source = b"import sys\nsys.designopt_test_runs = getattr(sys, 'designopt_test_runs', 0) + 1\n"
    try:
        load_file("a.py", source)
        load_file("b.py", source)
        assert sys.designopt_test_runs == 1
    finally:
        del sys.designopt_test_runs


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"1/0", "mine.py:1: ZeroDivisionError: division by zero"),
        (b"x = (", r"mine.py: SyntaxError: '\(' was never closed \(mine.py, line 1\)"),
        (b"raise SystemExit(3)", "mine.py:1: SystemExit: 3"),
        (b"\xff\xfe", "mine.py: SyntaxError: "),
    ],
)
def test_a_file_that_fails_is_reported_in_one_line_and_leaves_nothing_behind(source, message):
    modules = set(sys.modules)
    with pytest.raises(PluginError, match=message) as error:
        load_file("mine.py", source)
    assert "\n" not in str(error.value)
    assert not {m for m in set(sys.modules) - modules if m.startswith("designopt_plugin_")}
