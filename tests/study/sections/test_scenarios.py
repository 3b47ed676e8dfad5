"""Scenarios that are sampled: what they hold, where their numbers come from, and every mistake at its place."""

from dataclasses import replace

import numpy as np
import pytest

from designopt.plugin import find
from designopt.study.load import study_from_data
from designopt.study.sections.scenarios.sample import generator
from designopt.study.sections.scenarios.spread import AmongValues, Normal, UniformInteger, UniformReal

BASE = """\
study: trial
seed: 5
model: {use: test_field}
space:
  criterion: {values: [cubed, entropy]}
scenarios: SCENARIOS
objectives:
  - {name: a, minimize: rho}
solver: {use: test_search}
budget: {evaluations: 40}
"""


def sampled(load, text: str):
    return load(BASE.replace("SCENARIOS", text)).scenarios


def column(scenarios, name: str) -> list:
    return [s.values[name] for s in scenarios]


# ------------------------------------------------------------------------------------------------------- what is made


def test_a_sample_alone_stands_for_the_list(load) -> None:
    scenarios = sampled(load, "{use: test_sampler, count: 3, vary: {friction: [0.3, 0.9]}, with: {speed: 18 km/h}}")
    assert [s.name for s in scenarios] == ["sampled_0001", "sampled_0002", "sampled_0003"]
    assert column(scenarios, "friction") == pytest.approx([0.4, 0.6, 0.8])
    assert column(scenarios, "speed") == [5.0, 5.0, 5.0]


def test_a_sample_may_follow_a_scenario_so_that_nominal_is_the_first(load) -> None:
    scenarios = sampled(
        load,
        "[{name: nominal, speed: 1}, {use: test_sampler, count: 2, with: {speed: 2}, name: drawn}, {name: z, speed: 3}"
        "]",
    )
    assert [s.name for s in scenarios] == ["nominal", "drawn_0001", "drawn_0002", "z"]
    assert column(scenarios, "speed") == [1.0, 2.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("condition", "spread", "expected"),
    [
        ("mass", "[1 t, 5 t]", [1500.0, 2500.0, 3500.0, 4500.0]),
        ("mass", "{low: 1, high: 16, scale: log}", [2**0.5, 2**1.5, 2**2.5, 2**3.5]),
        ("wheels", "[4, 7]", [4, 5, 6, 7]),
        ("wheels", "{low: 4, high: 5, type: int}", [4, 4, 5, 5]),
        ("mass", "{low: 1, high: 2, type: int}", [1.0, 1.0, 2.0, 2.0]),
        ("terrain", "{values: [sand, snow]}", ["sand", "sand", "snow", "snow"]),
        ("mass", "{values: [1 t, 3]}", [1000.0, 1000.0, 3.0, 3.0]),
        # the inverse of the standard normal distribution at 0.125 and 0.375 (Abramowitz & Stegun, table 26.5)
        ("wind", "{mean: 0, deviation: 1}", [-1.15035, -0.31864, 0.31864, 1.15035]),
        ("heat", "{mean: 293.15 K, deviation: 1 K}", [20 - 1.15035, 20 - 0.31864, 20 + 0.31864, 20 + 1.15035]),
    ],
)
def test_how_a_condition_varies(load, condition, spread, expected) -> None:
    scenarios = sampled(load, f"{{use: test_sampler, count: 4, vary: {{{condition}: {spread}}}, with: {{speed: 1}}}}")
    conditions = column(scenarios, condition)
    if isinstance(expected[0], str):
        assert conditions == expected
    else:
        assert conditions == pytest.approx(expected, abs=5e-6)
    assert {type(v) for v in conditions} == {type(expected[0])}


def test_without_vary_the_conditions_vary_as_the_model_says(load) -> None:
    scenarios = sampled(load, "{use: test_sampler, count: 5, with: {speed: 1}}")
    assert column(scenarios, "friction") == pytest.approx([0.26, 0.38, 0.5, 0.62, 0.74])  # 0.2 to 0.8
    assert column(scenarios, "wheels") == [4, 5, 6, 7, 8]
    scenarios = sampled(load, "{use: test_sampler, count: 2, with: {speed: 1, wheels: 6}}")
    assert column(scenarios, "wheels") == [6, 6], "what is given does not vary"


def test_conditions_of_a_model_that_declares_none_are_plain_numbers(load) -> None:
    text = (
        "study: s\nmodel: {use: test_open}\nspace: {x: [0, 1]}\nobjectives: [{name: f, minimize: f}]\n"
        "scenarios: {use: test_sampler, count: 2, vary: {a: [0, 2], n: {low: 1, high: 2, type: int}}, with: {b: x}}\n"
        "solver: {use: test_grid}\n"
    )
    assert [s.values for s in load(text).scenarios] == [{"b": "x", "a": 0.5, "n": 1}, {"b": "x", "a": 1.5, "n": 2}]


@pytest.mark.parametrize("sampler", ["sobol", "latin_hypercube", "halton", "random"])
def test_the_installed_samplers_draw_scenarios(load, sampler) -> None:
    scenarios = sampled(
        load, f"{{use: {sampler}, count: 20, vary: {{friction: [0.3, 0.9], mass: [1, 2]}}, with: {{speed: 1}}}}"
    )
    friction = column(scenarios, "friction")
    assert len(set(friction)) == 20
    assert all(0.3 <= f <= 0.9 for f in friction)


def test_settings_of_the_sampler_stand_beside_those_of_the_sample(load) -> None:
    scenarios = sampled(load, "{use: sobol, scramble: false, count: 4, vary: {friction: [0.2, 0.6]}, with: {speed: 1}}")
    # the Sobol' sequence begins 0, 1/2, 3/4, 1/4
    assert column(scenarios, "friction") == pytest.approx([0.2, 0.4, 0.5, 0.3])


def test_a_sample_in_python_may_name_the_sampler_itself() -> None:
    sampler = find("solver", "test_sampler").target
    data = {
        "study": "python",
        "model": {"use": "test_field"},
        "space": {"criterion": {"values": ["cubed", "entropy"]}},
        "scenarios": {"use": sampler, "count": 2, "vary": {"friction": (0.2, np.float64(0.4))}, "with": {"speed": 1}},
        "objectives": [{"name": "a", "minimize": "rho"}],
        "solver": {"use": "test_search"},
        "budget": {"evaluations": 40},
    }
    study = study_from_data(data)
    assert column(study.scenarios, "friction") == pytest.approx([0.25, 0.35])


# ------------------------------------------------------------------------------------------------------ random numbers

RANDOM = "{use: test_sampler, jitter: true, count: 8, vary: {friction: [0.3, 0.9]}, with: {speed: 1}MORE}"


def test_the_same_file_gives_the_same_scenarios_in_every_process(load) -> None:
    scenarios = sampled(load, RANDOM.replace("MORE", ""))
    # SeedSequence(5, spawn_key=(a, b)), a and b from the BLAKE2b digests of 'scenarios' and 'sampled'
    key = (0x9D1CE8EB, 0x1F48B19F)
    rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=key))
    u = (np.arange(8) + rng.random((8, 1))[:, 0]) / 8
    assert column(scenarios, "friction") == pytest.approx(0.3 + 0.6 * u, rel=1e-12)


def test_the_seed_is_that_of_the_study_unless_the_sample_has_one(load) -> None:
    of_study, equal_seed, different_seed = (
        column(sampled(load, RANDOM.replace("MORE", more)), "friction") for more in ("", ", seed: 5", ", seed: 6")
    )
    assert of_study == equal_seed
    assert of_study != different_seed


def test_samples_with_different_names_differ_wherever_they_stand(load) -> None:
    a, b = (RANDOM.replace("MORE", f", name: {name}") for name in "ab")
    in_order, swapped = sampled(load, f"[{a}, {b}]"), sampled(load, f"[{b}, {a}]")
    assert {s.name: s.values for s in in_order} == {s.name: s.values for s in swapped}
    assert column(in_order[:8], "friction") != column(in_order[8:], "friction")


def test_scenarios_of_the_validation_are_others_than_those_of_the_search(load) -> None:
    text = BASE.replace("SCENARIOS", RANDOM.replace("MORE", ""))
    text += f"report: {{validate: {{scenarios: {RANDOM.replace('MORE', '')}}}}}\n"
    study = load(text)
    assert column(study.scenarios, "friction") != column(study.validate.scenarios, "friction")


def test_the_generator_of_a_sample_is_none_of_a_stage() -> None:
    stage = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(1,)))
    assert generator(5, "scenarios", "sampled").random() != stage.random()


# ------------------------------------------------------------------------------------------------------- distributions

U = (np.arange(4000) + 0.5) / 4000


def test_moments_of_the_distributions() -> None:
    assert np.mean(UniformReal(2.0, 4.0).values(U)) == pytest.approx(3.0, abs=1e-9)
    assert np.mean(np.log(UniformReal(1.0, np.e**2, log=True).values(U))) == pytest.approx(1.0, abs=1e-9)
    assert np.bincount(UniformInteger(0, 3).values(U)).tolist() == [1000] * 4
    assert AmongValues(("a", "b")).values(U).count("a") == 2000
    normal = np.array(Normal(1.0, 2.0).values(U))
    assert normal.mean() == pytest.approx(1.0, abs=1e-9)
    assert normal.std() == pytest.approx(2.0, rel=1e-3)  # 4000 strata cut the tails
    half = np.array(Normal(0.0, 1.0, low=0.0).values(U))  # the half-normal distribution: mean sqrt(2/pi)
    assert half.min() >= 0.0
    assert half.mean() == pytest.approx(np.sqrt(2.0 / np.pi), rel=1e-3)


@pytest.mark.parametrize(
    "spread",
    [
        UniformReal(-1.7e308, 1.7e308),
        UniformReal(5e-324, 1.7e308, log=True),
        UniformInteger(-(2**53), 2**53),
        Normal(0.0, 1.7e308),
        Normal(0.0, 5e-324),
        Normal(1.0, 1e6, 0.0, 2.0),
    ],
    ids=repr,
)
def test_extreme_distributions_stay_finite_and_within_their_bounds(spread) -> None:
    values = np.array(spread.values(np.array([0.0, 1e-300, 0.5, 1.0 - 2.0**-53, 1.0])), dtype=float)
    assert np.isfinite(values).all()
    assert (values[1:-1] <= values[2:]).all()
    for bound, sign in ((getattr(spread, "low", -np.inf), 1.0), (getattr(spread, "high", np.inf), -1.0)):
        assert (sign * values >= sign * bound).all()


def test_an_unscrambled_zero_is_the_middle_of_the_first_of_equal_parts() -> None:
    assert Normal(0.0, 1.0).values(np.array([0.0, 0.5]))[0] == pytest.approx(-0.67449, abs=5e-6)  # of 0.25


# ------------------------------------------------------------------------------------------------------------ mistakes

SAMPLE = "use: test_sampler, count: 4, vary: {friction: [0.3, 0.9]}, with: {speed: 1}"
P = "scenarios"

# the section, path, piece of the message
MISTAKES = [
    ("{use: «test_samplr», count: 4, with: {speed: 1}}", P, "no plugin named 'test_samplr'; did you mean"),
    ("{use: «test_grid», count: 4, with: {speed: 1}}", P, "solver 'test_grid' does not draw scenarios; use sobol"),
    ("{use: «[a]», count: 4, with: {speed: 1}}", P, "'use' must be the name of a sampler, not a list"),
    ("«{use: test_sampler, with: {speed: 1}}»", P, "'count' is missing (number of scenarios)"),
    ("«{name: a, speed: 1}»", P, "expected a list of scenarios, [{name: slow, speed: 2}, ...], or a sample"),
    ("«seven»", P, "expected a list, not the word 'seven'"),
    (f"{{{SAMPLE}, «sede»: 4}}", P, "unknown key 'sede'; did you mean 'seed'?"),
    (f"{{{SAMPLE}, «jiter»: true}}", P, "unknown key 'jiter'; did you mean 'jitter'?"),
    (f"{{{SAMPLE}, «samples»: 3}}", P, "unknown key 'samples'"),
    (f"{{{SAMPLE}, jitter: «1»}}", f"{P}.jitter", "expected true or false"),
    (f"{{{SAMPLE}, seed: «-1»}}", f"{P}.seed", "must be at least 0"),
    (f"{{{SAMPLE}, name: «a b»}}", f"{P}.name", "is not a name"),
    (f"{{{SAMPLE.replace('4', '«0»')}}}", f"{P}.count", "must be at least 1, not 0"),
    (f"{{{SAMPLE.replace('4', '«10001»')}}}", f"{P}.count", "at most 10000 scenarios are allowed"),
    (f"{{{SAMPLE.replace('4', '«30000»')}}}", f"{P}.count", "at most 10000 scenarios are allowed"),
    ("[{name: a, speed: 1}, {" + SAMPLE.replace("4", "«10000»") + "}]", f"{P}.1.count", "9999 are left"),
    ("[{name: sampled_0002, speed: 1}, {" + SAMPLE.replace("test_sampler", "«test_sampler»") + "}]", f"{P}.1",
     "there is another scenario named 'sampled_0002'"),
    ("[{" + SAMPLE + ", name: d}, {" + SAMPLE + ", name: «d»}]", f"{P}.1", "another scenario named 'd_0001'"),
    ("[{" + SAMPLE + "}, «7»]", f"{P}.1", "expected a mapping, not the number 7"),
    # what varies
    (SAMPLE.replace("friction:", "«fricton»:"), f"{P}.vary.fricton", "no scenario condition 'fricton'; did you mean"),
    (SAMPLE.replace("[0.3, 0.9]", "«[0.3]»"), f"{P}.vary.friction", "is [low, high], not 1"),
    (SAMPLE.replace("[0.3, 0.9]", "[«-1», 0.9]"), f"{P}.vary.friction.low", "must be above 0, not -1"),
    (SAMPLE.replace("[0.3, 0.9]", "[0.3, «9»]"), f"{P}.vary.friction.high", "must be at most 1.5, not 9"),
    (SAMPLE.replace("[0.3, 0.9]", "«[0.9, 0.3]»"), f"{P}.vary.friction", "low (0.9) must be below high (0.3)"),
    (SAMPLE.replace("[0.3, 0.9]", "«0.3»"), f"{P}.vary.friction", "expected a mapping with 'low' and 'high'"),
    (SAMPLE.replace("[0.3, 0.9]", "«{low: 0.3}»"), f"{P}.vary.friction", "'high' is missing"),
    (SAMPLE.replace("[0.3, 0.9]", "«{}»"), f"{P}.vary.friction", "give 'low' and 'high', 'values', or 'mean'"),
    (SAMPLE.replace("[0.3, 0.9]", "{low: 0.3, high: 0.9, «hgih»: 3}"), f"{P}.vary.friction", "did you mean 'high'?"),
    (SAMPLE.replace("[0.3, 0.9]", "{low: 0.3, high: «1 kg»}"), f"{P}.vary.friction.high", "incompatible units"),
    (SAMPLE.replace("friction: [0.3, 0.9]", "wind: {low: «-1», high: 1, scale: log}"), f"{P}.vary.wind.low", "log"),
    (SAMPLE.replace("[0.3, 0.9]", "{values: «[]»}"), f"{P}.vary.friction.values", "at least one value is needed"),
    (SAMPLE.replace("[0.3, 0.9]", "{values: [0.3, «x»]}"), f"{P}.vary.friction.values.1", "not the word 'x'"),
    (SAMPLE.replace("[0.3, 0.9]", "{values: [0.3], «low»: 1}"), f"{P}.vary.friction", "combined with 'values'"),
    (SAMPLE.replace("[0.3, 0.9]", "«{mean: 0.3}»"), f"{P}.vary.friction", "'deviation' is missing"),
    (SAMPLE.replace("[0.3, 0.9]", "{mean: 0.3, deviation: «0»}"), f"{P}.vary.friction.deviation", "must be above 0"),
    (SAMPLE.replace("[0.3, 0.9]", "{mean: 0.3, deviation: «1 kg»}"), f"{P}.vary.friction.deviation", "incompatible"),
    (SAMPLE.replace("[0.3, 0.9]", "{mean: «0.3», deviation: 1, low: 0.4}"), f"{P}.vary.friction.mean", "between"),
    (SAMPLE.replace("[0.3, 0.9]", "{mean: 0.3, deviation: 1, «scale»: log}"), f"{P}.vary.friction", "with 'mean'"),
    (SAMPLE.replace("friction: [0.3, 0.9]", "terrain: «[0.3, 0.9]»"), f"{P}.vary.terrain", "one of sand, snow, paved"),
    (SAMPLE.replace("friction: [0.3, 0.9]", "wheels: [4, «5.5»]"), f"{P}.vary.wheels.high", "an integer"),
    (SAMPLE.replace("friction: [0.3, 0.9]", "wheels: «{mean: 4, deviation: 1}»"), f"{P}.vary.wheels", "an integer"),
    (SAMPLE.replace("friction: [0.3, 0.9]", "wheels: {low: 4, high: 5, type: «real»}"), f"{P}.vary.wheels.type", "int"),
    (SAMPLE.replace("friction: [0.3, 0.9]", "wheels: {low: 4, high: 5, scale: «log»}"), f"{P}.vary.wheels.scale", ""),
    (SAMPLE.replace("{friction: [0.3, 0.9]}", "«{}»"), f"{P}.vary", "1 to 100 conditions may vary, not 0"),
    # what is the same in all
    (SAMPLE.replace("with: {speed: 1}", "with: {speed: «-1»}"), f"{P}.with.speed", "must be at least 0 m/s, not -1"),
    (SAMPLE.replace("with: {speed: 1}", "with: {speed: 1, «terain»: sand}"), f"{P}.with", "did you mean 'terrain'?"),
    (SAMPLE.replace("with: {speed: 1}", "with: {speed: 1, «friction»: 1}"), f"{P}.with.friction", "is also in 'vary'"),
    ("«{use: test_sampler, count: 4, vary: {friction: [0.3, 0.9]}}»", P, "'speed' is missing (speed, in m/s)"),
    # the sampler
    (SAMPLE.replace("test_sampler", "«test_sampler», broken: raises"), P, "RuntimeError: out of points"),
    (SAMPLE.replace("test_sampler", "«test_sampler», broken: shape"), P, "did not return 4 points of the unit cube"),
    (SAMPLE.replace("test_sampler", "«test_sampler», broken: range"), P, "did not return 4 points of the unit cube"),
    (SAMPLE.replace("count: 4", "count: «4», broken: setting"), f"{P}.count", "an odd number is needed"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "path", "fragment"), MISTAKES, ids=[f"{i}" for i, _ in enumerate(MISTAKES)])
def test_a_mistake_is_reported_once_at_its_place(refused_once, section, path, fragment) -> None:
    mapping = section if section[0] in "{[«" else f"{{{section}}}"
    refused_once(BASE, "SCENARIOS", mapping, path, fragment)


def test_a_sample_needs_vary_when_the_model_declares_no_conditions(mistakes, base_text) -> None:
    start, end = base_text.index("scenarios:"), base_text.index("figures:")
    text = base_text[:start] + "scenarios: {use: test_sampler, count: 4}\n" + base_text[end:]
    (issue,) = mistakes(text)
    assert issue.message == "'vary' is missing: model 'test_wheel' does not declare the ranges of its conditions"


def test_a_unit_of_an_undeclared_condition_is_refused(refused_once) -> None:
    base = (
        "study: s\nmodel: {use: test_open}\nspace: {x: [0, 1]}\nobjectives: [{name: f, minimize: f}]\n"
        "scenarios: {use: test_sampler, count: 2, vary: {a: RANGE}}\nsolver: {use: test_grid}\n"
    )
    for entry, key in (("[«1 m», 2]", "low"), ("{mean: 1, deviation: «2 m»}", "deviation")):
        refused_once(base, "RANGE", entry, f"scenarios.vary.a.{key}", "does not declare")
    refused_once(
        base, "RANGE", "{values: [1, «2 m»]}", "scenarios.vary.a.values.1", "write a plain number, or annotate"
    )
    entry = "vary: {a: [1, 2]}, with: {b: «5 m/s»}"
    refused_once(base, "vary: {a: RANGE}", entry, "scenarios.with.b", "does not declare its conditions")
    sample = "{use: test_sampler, count: 2, vary: {a: RANGE}}"
    for entry, key in (("a: «5 m/s»", "a"), ("a: [1, «2 kg»]", "a.1")):
        refused_once(base, sample, f"[{{name: one, {entry}}}]", f"scenarios.0.{key}", "a unit cannot be converted")


def test_units_of_conditions_are_no_mistake_of_a_model_that_is_not_known(mistakes) -> None:
    (issue,) = mistakes(
        "study: s\nmodel: {use: test_opn}\nspace: {x: [0, 1]}\nobjectives: [{name: f, minimize: f}]\n"
        "scenarios: [{name: a, speed: 5 m/s}]\nsolver: {use: test_grid}\n"
    )
    assert issue.path == "model"


def test_words_of_an_undeclared_condition_are_taken(load) -> None:
    text = (
        "study: s\nmodel: {use: test_open}\nspace: {x: [0, 1]}\nobjectives: [{name: f, minimize: f}]\n"
        "scenarios: [{name: a, soil: sand, grade: 3, made: 2024-11-05}]\nsolver: {use: test_grid}\n"
    )
    assert load(text).scenarios[0].values == {"soil": "sand", "grade": 3, "made": "2024-11-05"}


def test_the_default_aggregation_of_a_sample_is_the_worst(load) -> None:
    text = BASE.replace("SCENARIOS", "{" + SAMPLE + "}")
    study = load(text)
    assert study.objectives[0].over.plugin.name == "worst"
    overridden = load(study.text, overrides=["scenarios.count=5"])
    assert len(overridden.scenarios) == 5
    assert replace(load(overridden.text), text="") == replace(overridden, text="")


def test_ten_thousand_scenarios_are_made_in_seconds(load) -> None:
    import time

    load(BASE.replace("SCENARIOS", "{" + SAMPLE + "}"))
    started = time.process_time()
    scenarios = sampled(load, "{use: test_sampler, count: 10000, with: {speed: 1}}")
    assert len(scenarios) == 10_000
    assert time.process_time() - started < 10.0  # minutes where something is quadratic
