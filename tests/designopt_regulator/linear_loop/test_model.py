"""The model linear_loop: exact figures, the exact front of the double integrator, sampling, saturation, bad input."""

import numpy as np
import pytest
from designopt_regulator.linear_loop.model import LinearLoop, LinearPlant
from scipy.integrate import solve_ivp

from designopt import define
from designopt.plugin import Diverged, InvalidDesign, InvalidSetting
from designopt.study.language.checking.settings import validate
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text
from designopt.testing import check_model

LAG = LinearPlant(type="fopdt", time_constant=8.0, delay=1.0)
DOUBLE = LinearPlant(type="double_integrator")


def figures(model, design, scenario=None):
    return model.evaluate(design, scenario or {}, frozenset())[0]


def test_figures_of_a_continuous_loop_are_those_of_its_exact_solution():
    """The SIMC controller of 1/(8s+1), section 9.1."""
    outputs = figures(LinearLoop(plant=LAG), {"kp": 4.0, "ti": 8.0})
    assert outputs["iae_setpoint"] == pytest.approx(2.1686906, abs=2e-6)
    assert outputs["iae_load"] == pytest.approx(2.0, abs=2e-6)
    assert outputs["ms"] == pytest.approx(1.5904902, abs=1e-6)
    assert outputs["gm"] == pytest.approx(np.pi, abs=1e-9)
    assert np.degrees(outputs["pm"]) == pytest.approx(61.352110, abs=1e-5)


@pytest.mark.parametrize(("k1", "k2"), [(0.3, 5.0), (2.0, 2.0), (10.0, 0.5)])
def test_ise_and_effort_of_the_double_integrator(k1, k2):
    """Section 9.4, to 1e-6."""
    outputs = figures(LinearLoop(plant=DOUBLE), {"kp": k1, "kd": k2})
    assert outputs["ise_setpoint"] == pytest.approx((k2**2 + k1) / (2.0 * k1 * k2), rel=1e-6)
    assert outputs["effort"] == pytest.approx(k1**2 / (2.0 * k2), rel=1e-6)
    assert outputs["iae_load"] == np.inf


def double_integrator_study(low, high, evaluations, log):
    (k1, k2) = zip(low, high, strict=True)
    return define(
        study="double_integrator",
        seed=3,
        model={"use": "linear_loop", "plant": {"type": "double_integrator"}},
        space={
            "kp": {"low": k1[0], "high": k1[1], "scale": "log"},
            "kd": {"low": k2[0], "high": k2[1], "unit": "s", "scale": "log"},
        },
        objectives=[
            {"name": "J1", "minimize": "log(ise_setpoint / 1 [s])" if log else "ise_setpoint"},
            {"name": "J2", "minimize": "log(effort / 1 [s])" if log else "effort"},
        ],
        solver={"use": "nsga2", "population": 100},
        budget={"evaluations": evaluations},
        execution={"executor": "serial"},
    )


def share_of_exact_front(result):
    """Hypervolume of the archive's points in the box J1 in [0.4, 1.6], as a share of the exact one (section 9.4)."""
    F = np.stack([result.outcomes.figures[name][:, 0] for name in ("ise_setpoint", "effort")], axis=1)
    F = F[np.isfinite(F).all(axis=1)]
    assert (64.0 / 27.0 * F[:, 0] ** 3 * F[:, 1] >= 1.0 - 1e-9).all(), "nothing can lie below the front"
    reference = np.array([1.6, 6.591796875])
    inside = F[(F[:, 0] >= 0.4) & (reference > F).all(axis=1)]
    inside = inside[np.argsort(inside[:, 0])]
    best = np.minimum.accumulate(inside[:, 1])
    ends = np.append(inside[1:, 0], reference[0])
    return ((ends - inside[:, 0]) * (reference[1] - best)).sum() / 6.6741943359375


@pytest.mark.slow
def test_the_archive_of_a_study_covers_the_exact_front(tmp_path):
    """At least 0.99 with narrow bounds, after 800 evaluations already."""
    result = double_integrator_study((0.3, 0.5), (10.0, 5.0), 800, False).run(tmp_path / "s")
    assert share_of_exact_front(result) >= 0.99


@pytest.mark.slow
def test_logarithmic_objectives_cover_the_exact_front_from_wide_bounds(tmp_path):
    """At least 0.99 after 2 000 evaluations with wide bounds and log objectives."""
    result = double_integrator_study((0.05, 0.05), (100.0, 30.0), 2000, True).run(tmp_path / "s")
    assert share_of_exact_front(result) >= 0.99


#: Section 9.3: reference integrals, bounds of K_p and T_i, and the least J for five peaks of the sensitivity.
TRADE_OFF = {
    "fopdt_1": ({"type": "fopdt", "time_constant": 1.0, "delay": 1.0}, (2.0714, 2.0182), (0.1, 2.0), (0.4, 4.0)),
    "fopdt_8": ({"type": "fopdt", "time_constant": 8.0, "delay": 1.0}, (2.1692, 1.1345), (0.7, 8.0), (1.5, 15.0)),
    "ipdt": ({"type": "ipdt", "delay": 1.0}, (2.1692, 15.0942), (0.1, 0.8), (3.0, 30.0)),
}
BEST_INTEGRAL = {
    "fopdt_1": (2.3743, 1.3118, 1.0082, 0.8966, 0.8646),
    "fopdt_8": (2.8029, 1.5722, 1.2269, 1.0608, 0.9746),
    "ipdt": (4.5398, 2.0833, 1.5055, 1.2392, 1.1103),
}


@pytest.mark.slow
@pytest.mark.parametrize("process", TRADE_OFF)
def test_a_study_finds_the_trade_off_of_performance_and_robustness(process, tmp_path):
    """Within 1 % in J of every row of section 9.3.

    With J itself as the objective the steep end takes most of the front: 6 000 evaluations leave 1.2 % at the peak 1.2.
    """
    plant, (output, load), (k_low, k_high), (t_low, t_high) = TRADE_OFF[process]
    study = define(
        study="trade_off",
        seed=1,
        model={"use": "linear_loop", "plant": plant},
        space={
            "kp": {"low": k_low, "high": k_high, "scale": "log"},
            "ti": {"low": t_low, "high": t_high, "unit": "s", "scale": "log"},
        },
        objectives=[
            {"name": "ms", "minimize": "ms"},
            {"name": "log_J", "minimize": f"log(0.5*(iae_setpoint/{output} [s] + iae_load/{load} [s]))"},
        ],
        constraints=[{"name": "robust", "of": "ms", "max": 2.2}],
        solver={"use": "nsga2", "population": 100},
        budget={"evaluations": 3000},
        execution={"executor": "serial"},
    )
    figures = study.run(tmp_path / "s").outcomes.figures
    cost = 0.5 * (figures["iae_setpoint"] / output + figures["iae_load"] / load)[:, 0]
    for ms, least in zip((1.2, 1.4, 1.59, 1.8, 2.0), BEST_INTEGRAL[process], strict=True):
        lowest = cost[figures["ms"][:, 0] <= ms].min()
        assert least * (1.0 - 1e-3) < lowest < least * 1.01


# ---------------------------------------------------------------------------------------------------------- sampled


def sampled(plant, **settings):
    return LinearLoop(plant=plant, **{"sample_time": 0.05, "horizon": 60.0, **settings})


def test_a_loop_that_is_sampled_fast_behaves_as_the_continuous_one():
    """The hold delays by half a sample: the difference is of first order in the sample time."""
    design = {"kp": 3.0, "ti": 6.0, "b": 0.8}
    exact = figures(LinearLoop(plant=LAG), design)
    errors = []
    for T in (0.02, 0.01):
        outputs = figures(sampled(LAG, sample_time=T, horizon=120.0), design)
        errors.append(
            [outputs[name] - exact[name] for name in ("iae_setpoint", "ise_load", "tv_load", "ms", "pm", "gm")]
        )
    np.testing.assert_allclose(np.array(errors[0]) / errors[1], 2.0, rtol=0.05)
    assert np.abs(errors[1]).max() < 0.03
    assert outputs["iae_load"] == pytest.approx(exact["iae_load"], abs=1e-4)
    assert outputs["tv"] == pytest.approx(exact["tv"], abs=1e-4)


def test_a_limited_loop_is_that_of_an_integrator_of_ordinary_equations():
    """Sample by sample with solve_ivp, the discrete controller of section 3 written out, saturated at 1.5."""
    plant = LinearPlant(type="sopdt", gain=1.2, time_constant=2.0, time_constant_2=0.5, delay=0.12)
    kp, ti, td, tf, b, tt, T, limit = 4.0, 3.0, 0.3, 0.1, 0.7, 1.0, 0.05, 1.5
    model = LinearLoop(plant=plant, sample_time=T, horizon=6.0, load_at=3.0, limit=limit, substeps=20)
    outputs, arrays = model.evaluate(
        {"kp": kp, "ti": ti, "td": td, "tf": tf, "b": b, "tt": tt}, {}, frozenset({"time", "output", "command"})
    )
    x, integral, D, past = np.zeros(2), 0.0, 0.0, 0.0
    a, inputs, expected = tf / (tf + T), [0.0, 0.0, 0.0], []
    for k in range(120):
        y = x[1]
        D = a * D - kp * td * (1.0 - a) / T * (y - past)
        past = y
        raw = kp * (b - y) + integral + D
        u = np.clip(raw, -limit, limit)
        integral += T * (kp / ti * (1.0 - y) + (u - raw) / tt)
        expected.append((y, u))
        inputs.append(u + (k >= 60))
        # 0.12 s is two samples and 0.02 s: the input changes within the sample.
        for span, command in ((0.02, inputs[-4]), (0.03, inputs[-3])):
            x = solve_ivp(
                lambda _, s, command=command: [(1.2 * command - s[0]) / 2.0, (s[0] - s[1]) / 0.5],
                (0.0, span),
                x,
                rtol=1e-10,
                atol=1e-12,
            ).y[:, -1]
    np.testing.assert_allclose(arrays["output"][:-1], [y for y, _ in expected], atol=1e-8)
    np.testing.assert_allclose(arrays["command"][:-1], [u for _, u in expected], atol=1e-7)
    assert np.abs(arrays["command"]).max() == limit
    assert outputs["tv"] == pytest.approx(np.abs(np.diff([0.0, *[u for _, u in expected[:60]]])).sum(), abs=1e-6)


def test_asymmetric_and_rate_limits_bound_the_command():
    settings = {"limits": (-0.2, 2.5), "rate_limits": (3.0, 6.0)}
    _, arrays = sampled(LAG, **settings).evaluate({"kp": 8.0, "ti": 8.0, "tt": 2.0}, {}, frozenset({"command"}))
    command, T = arrays["command"], sampled(LAG).sample_time
    assert command.max() == 2.5
    assert command.min() >= -0.2
    assert np.diff(command, prepend=0.0).max() == pytest.approx(6.0 * T)
    assert np.diff(command).min() >= -3.0 * T - 1e-12
    free, _ = sampled(LAG, limit=1e6).evaluate({"kp": 2.0, "ti": 8.0}, {}, frozenset())
    wide, _ = sampled(LAG, limits=(-1e6, 1e6), rate_limit=1e9).evaluate({"kp": 2.0, "ti": 8.0}, {}, frozenset())
    assert wide == free


@pytest.mark.parametrize("size", [4.0, -4.0])
@pytest.mark.parametrize("sample_time", [None, 0.1])
def test_a_step_of_another_size_scales_signals_and_their_integrals(sample_time, size):
    more = {} if sample_time is None else {"sample_time": sample_time, "horizon": 120.0}
    names = frozenset({"time", "output", "command"})
    design = {"kp": 3.0, "ti": 6.0}
    unit, of_unit = LinearLoop(plant=LAG, **more).evaluate(design, {}, names)
    larger = LinearLoop(plant=LAG, setpoint_step=size, load_step=size, **more)
    figures, arrays = larger.evaluate(design, {}, names)
    powers = {"iae_setpoint": 1, "iae_load": 1, "ise_setpoint": 2, "ise_load": 2, "effort": 2}
    powers |= {"tv": 1, "tv_load": 1, "peak_command": 1}
    for name, value in unit.items():
        assert figures[name] == pytest.approx(abs(size) ** powers.get(name, 0) * value, rel=1e-9), name
    np.testing.assert_allclose(arrays["output"], size * of_unit["output"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(arrays["command"], size * of_unit["command"], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(arrays["time"], of_unit["time"])


@pytest.mark.parametrize("size", [4.0, -4.0])
def test_limits_hold_for_the_command_of_a_step_of_another_size(size):
    """The same controller without sizes runs between limits that are divided by the step; a negative one swaps them."""
    limits, rates = sorted([-0.5 * size, 1.5 * size]), (2.0, 8.0)
    design = {"kp": 8.0, "ti": 8.0, "tt": 2.0}
    model = sampled(LAG, limits=tuple(limits), rate_limits=rates, setpoint_step=size, load_step=0.5 * size)
    figures, arrays = model.evaluate(design, {}, frozenset({"command"}))
    rates_of_unit = tuple(rate / 4.0 for rate in (rates if size > 0.0 else rates[::-1]))
    unit_model = sampled(LAG, limits=(-0.5, 1.5), rate_limits=rates_of_unit, load_step=0.5)
    unit, of_unit = unit_model.evaluate(design, {}, frozenset({"command"}))
    np.testing.assert_allclose(arrays["command"], size * of_unit["command"], rtol=1e-9, atol=1e-12)
    assert np.abs(of_unit["command"]).max() == 1.5  # the limit acts
    assert figures["iae_load"] == pytest.approx(4.0 * unit["iae_load"], rel=1e-9)
    assert np.isclose(model.command_limits.high, limits[1])  # what an exported controller has


def test_an_unstable_sampled_loop_has_figures_but_no_margins():
    outputs = figures(sampled(LAG, limit=10.0), {"kp": 40.0, "ti": 8.0})
    assert (outputs["stable"], outputs["ms"], outputs["mt"]) == (0.0, np.inf, np.inf)
    assert (outputs["gm"], outputs["pm"], outputs["delay_margin"]) == (-np.inf, -np.inf, -np.inf)
    assert outputs["spectral_radius"] > 1.0


def test_an_unstable_loop_without_limit_ends_as_diverged():
    with pytest.raises(Diverged, match="diverged"):
        figures(sampled(LAG), {"kp": 40.0, "ti": 8.0})
    with pytest.raises(Diverged, match="unstable"):
        figures(LinearLoop(plant=LAG), {"kp": 40.0, "ti": 8.0})


# ------------------------------------------------------------------------------------------------------------ kinds

FULL = {"kp": 4.0, "ti": 8.0, "td": 0.3, "tf": 0.1, "b": 0.5}
#: What a kind takes of these settings (spec, section 3); I_PD is b = 0 and PI_D b = 1.
TAKEN = {
    "P": ("kp", "b"),
    "PI": ("kp", "ti", "b"),
    "PD": ("kp", "td", "tf", "b"),
    "PID": ("kp", "ti", "td", "tf", "b"),
    "I_PD": ("kp", "ti", "td", "tf"),
    "PI_D": ("kp", "ti", "td", "tf"),
}


@pytest.mark.parametrize("sample_time", [None, 0.1])
@pytest.mark.parametrize("kind", TAKEN)
def test_a_kind_is_the_controller_whose_other_parts_are_absent(kind, sample_time):
    settings = {"plant": LAG} if sample_time is None else {"plant": LAG, "sample_time": 0.1, "horizon": 20.0}
    design = {name: FULL[name] for name in TAKEN[kind]}
    weight = {"I_PD": {"b": 0.0}, "PI_D": {"b": 1.0}}.get(kind, {})
    assert figures(LinearLoop(**settings, kind=kind), design) == figures(LinearLoop(**settings), {**design, **weight})


@pytest.mark.parametrize(
    ("kind", "design", "reason"),
    [
        ("P", {"kp": 1.0, "ti": 3.0}, r"^ti: P controllers do not have it \(they have kp, b\)"),
        ("PI", {"kp": 1.0, "ti": 3.0, "tf": 0.1}, "^tf: PI controllers do not have it .they have kp, ti, b, tt, ki.$"),
        ("PI", {"kp": 1.0, "ti": 3.0, "kd": 0.1}, "^kd: PI controllers do not have it"),
        ("PD", {"kp": 1.0, "td": 0.1, "tf": 0.1, "ki": 0.1}, "^ki: PD controllers do not have it"),
        ("I_PD", {"kp": 1.0, "ti": 3.0, "td": 0.1, "tf": 0.1, "b": 0.0}, "^b: I_PD controllers do not have it"),
        ("PI", {"kp": 1.0}, "^ti: is missing; PI controllers need it or ki"),
        ("PID", {"kp": 1.0, "ti": 3.0}, "^td: is missing; PID controllers need it or kd"),
        ("PI", {"ti": 3.0}, "^kp: is missing"),
        (None, {"kp": 1.0, "ti": 3.0, "tt": 1.0}, "^tt: has no effect without 'limit'"),
    ],
)
def test_a_kind_without_the_parameter_refuses_it_and_asks_for_what_it_needs(kind, design, reason):
    with pytest.raises(InvalidDesign, match=reason):
        figures(LinearLoop(plant=LAG, kind=kind), design)


REFUSED = """\
study: refused
model:
  use: linear_loop
  plant: {type: fopdt, time_constant: 8 s, delay: 1 s}
space:
  kp: [1, 4]
  ti: [2 s, 9 s]
objectives:
  - {name: ms, minimize: ms}
  - {name: iae, minimize: iae_load}
solver: {use: random, samples: 4}
"""


@pytest.mark.parametrize(
    ("change", "line", "path", "message"),
    [
        (("linear_loop\n", "linear_loop\n  kind: P\n"), 8, "space.ti", "P controllers do not have it (they have kp"),
        (("linear_loop\n", "linear_loop\n  kind: PD\n"), 8, "space.ti", "PD controllers do not have it"),
        (("  ti: [2 s, 9 s]\n", "  tt: 3 s\n"), 7, "space.tt", "has no effect without 'limit'"),
        (("  kp: [1, 4]\n", ""), 5, "space", "kp: is missing; every controller needs it"),
        (("[2 s, 9 s]\n", "[2 s, 9 s]\n  ki: [1, 2]\n"), 8, "space.ki", "give it or ti, not both"),
        (("[2 s, 9 s]\n", "[2 s, 9 s]\n  td: [0 s, 2 s]\n"), 5, "space", "tf: is missing; the derivative of"),
        (("time_constant: 8 s, ", ""), 4, "model.plant.time_constant", "is missing; a plant of type fopdt needs it"),
        (("delay: 1 s", "order: 3"), 4, "model.plant.order", "a plant of type fopdt does not have it"),
        (("delay: 1 s", "gain: must not be 0"), 4, "model.plant.gain", "must not be 0"),
        (("delay: 1 s", "delay: -1 s"), 4, "model.plant.delay", "must be at least 0 s"),
    ],
)
def test_a_study_that_does_not_fit_the_controller_is_refused_before_it_runs(change, line, path, message):
    with pytest.raises(StudyError) as caught:
        study_from_text(REFUSED.replace(*change), "refused.yaml")
    (issue,) = {issue for issue in caught.value.issues if issue.path == path}
    assert issue.line == line
    assert message in issue.message


@pytest.mark.parametrize("more", ["  td: 0 s\n", "  td: [0 s, 2 s]\n  tf: 0.1 s\n", "  b: [0, 1]\n"])
def test_a_study_that_fits_the_controller_is_accepted(more):
    study_from_text(REFUSED.replace("[2 s, 9 s]\n", f"[2 s, 9 s]\n{more}"), "accepted.yaml")


def test_a_kind_takes_parallel_gains_too():
    standard, parallel = {"kp": 3.0, "ti": 6.0, "td": 0.2, "tf": 0.05}, {"kp": 3.0, "ki": 0.5, "kd": 0.6, "tf": 0.05}
    model = LinearLoop(plant=LAG, kind="PID")
    assert figures(model, parallel) == pytest.approx(figures(model, standard), rel=1e-9)


# ------------------------------------------------------------------------------------------------------ conventions


def test_conditions_change_gain_pace_and_delay_of_the_plant():
    design = {"kp": 0.8, "ti": 6.0}
    changed = figures(LinearLoop(plant=LAG), design, {"gain_factor": 1.2, "lag_factor": 0.5, "delay_factor": 2.0})
    same = figures(LinearLoop(plant=LinearPlant(type="fopdt", gain=1.2, time_constant=4.0, delay=2.0)), design)
    assert changed == pytest.approx(same, rel=1e-9)


def test_parallel_gains_are_another_way_to_say_the_same():
    model = LinearLoop(plant=LAG)
    one = figures(model, {"kp": 3.0, "ti": 6.0, "td": 0.2, "tf": 0.05})
    assert figures(model, {"kp": 3.0, "ki": 0.5, "kd": 0.6, "tf": 0.05}) == pytest.approx(one, rel=1e-9)


def test_arrays_show_the_step_and_then_the_load():
    model = LinearLoop(plant=LAG)
    _, arrays = model.evaluate({"kp": 3.0, "ti": 6.0}, {}, frozenset({"time", "output", "command"}))
    load_at = arrays["time"][np.argmax(arrays["command"] < 0.5 * arrays["command"].max())]
    assert arrays["output"][0] == pytest.approx(0.0, abs=1e-12)
    assert arrays["command"][0] == pytest.approx(3.0, abs=1e-12)
    assert arrays["output"][-1] == pytest.approx(1.0, abs=5e-3)
    assert arrays["command"][-1] == pytest.approx(0.0, abs=2e-2)
    assert 0.0 < load_at < arrays["time"][-1]


DESIGNS = [
    {"kp": 3.0, "ti": 6.0},
    {"kp": 4.0, "ti": 8.0, "td": 0.3, "tf": 0.1, "b": 0.5},
    {"kp": 2.0, "ki": 0.3},
]
SCENARIOS = [{}, {"gain_factor": 1.2, "delay_factor": 1.07}]


def test_the_sampled_model_keeps_the_rules():
    plant = {"type": "fopdt", "time_constant": 8.0, "delay": 1.0}
    settings = {"plant": plant, "sample_time": 0.1, "horizon": 30.0, "limit": 6.0, "substeps": 2}
    check_model(
        LinearLoop,
        validate(LinearLoop.__designopt__, settings)[0].settings,
        designs=DESIGNS,
        scenarios=SCENARIOS,
        refused=[{"ti": 3.0}, {"kp": 3.0, "ti": 6.0, "ki": 0.5}, {"kp": -1.0}],
    )


def test_the_continuous_model_keeps_the_rules():
    check_model(
        LinearLoop,
        validate(LinearLoop.__designopt__, {"plant": {"type": "fopdt", "time_constant": 8.0, "delay": 1.0}})[
            0
        ].settings,
        designs=DESIGNS,
        scenarios=SCENARIOS,
        refused=[{"ti": 3.0}, {"kp": 3.0, "td": 0.2}],
        diverging=[{"kp": 60.0, "ti": 6.0}],
    )


def test_an_unstable_continuous_loop_does_not_disturb_those_beside_it():
    model, wild = LinearLoop(plant=LAG), {"kp": 60.0, "ti": 6.0}
    first, middle, last = model.batch([DESIGNS[0], wild, DESIGNS[1]], [{}] * 3, frozenset())
    assert isinstance(middle, Diverged)
    assert [first[0], last[0]] == [figures(model, design) for design in DESIGNS[:2]]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"plant": LinearPlant(type="fopdt", delay=1.0)}, "time_constant: is missing"),
        ({"plant": LinearPlant(type="ipdt", time_constant=1.0)}, "time_constant: a plant of type ipdt does "
        "not have it"),
        ({"plant": LinearPlant(type="ipdt", gain=0.0)}, "gain: must not be 0"),
        ({"plant": LinearPlant(type="ipdt", gain=np.inf)}, "not finite"),
        ({"plant": LinearPlant(type="transfer_function", numerator=(1, 1, 1), denominator=(1, 1))}, "not be higher"),
        ({"plant": LAG, "setpoint_step": 0.0}, "setpoint_step: is 0; it must be a finite number other than 0"),
        ({"plant": LAG, "load_step": np.inf}, "load_step: is inf"),
        ({"plant": LAG, "horizon": 10.0}, "give its sample_time"),
        ({"plant": LAG, "limit": 10.0}, "give its sample_time"),
        ({"plant": LAG, "sample_time": 0.1, "limit": 1.0, "limits": (-1.0, 1.0)}, "limits: give it or limit"),
        ({"plant": LAG, "sample_time": 0.1, "limits": (1.0, 2.0)}, "limits: .* with 0"),
        ({"plant": LAG, "sample_time": 0.1, "limits": (1.0,)}, "limits: .* two numbers"),
        ({"plant": LAG, "sample_time": 0.1, "rate_limits": (-1.0, 1.0)}, "rate_limits: .* above 0"),
        ({"plant": LAG, "rate_limit": 1.0}, "give its sample_time"),
        ({"plant": LAG, "sample_time": 0.1}, "horizon: is missing"),
        ({"plant": LAG, "sample_time": 0.1, "horizon": 10.0, "load_at": 10.0}, "before the horizon"),
        ({"plant": LAG, "sample_time": 0.1, "horizon": 10.05, "load_at": 5.0}, "not a whole number of samples"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_are_refused(settings, reason):
    with pytest.raises(InvalidSetting, match=reason):
        LinearLoop(**settings).check()


def test_a_derivative_of_a_first_order_plant_needs_a_filter():
    with pytest.raises(InvalidDesign, match="needs a filter"):
        figures(LinearLoop(plant=LAG), {"kp": 3.0, "td": 0.2})
