"""Sampled loops with sections, feedthrough, Smith predictor and cascade, against difference equations step by step."""

import numpy as np
import pytest
from designopt_regulator.linear_loop.model import LinearLoop, LinearPlant
from scipy.signal import bilinear, cont2discrete, lfilter, lfiltic, tf2ss

import designopt
from designopt.plugin import InvalidDesign, InvalidSetting
from designopt.study.language.errors import StudyError

T = 0.05
RESONANT = LinearPlant(type="transfer_function", numerator=(400.0,), denominator=(1.0, 1.0, 400.0), delay=2 * T)
LATE = LinearPlant(type="fopdt", gain=2.0, time_constant=1.5, delay=1.0)
SAMPLED = {"sample_time": T, "horizon": 9.0}
TRACE = frozenset({"time", "output", "command"})


def run(model, design, scenario=None):
    model.check()
    return model.evaluate(design, scenario or {}, TRACE)


class PlainPID:
    """The specification's difference equations (section 3), one number at a time."""

    def __init__(self, kp, ti=np.inf, td=0.0, tf=0.0, b=1.0, tt=None, low=-np.inf, high=np.inf):
        self.kp, self.ti, self.td, self.a, self.b = kp, ti, td, tf / (tf + T), b
        self.tt = tt or (np.sqrt(ti * td) if td > 0.0 else ti)
        self.low, self.high, self.D, self.integral, self.y = low, high, 0.0, 0.0, 0.0

    def __call__(self, r, y, behind=lambda u: u):
        self.D = self.a * self.D - self.kp * self.td * (1.0 - self.a) / T * (y - self.y)
        raw = behind(self.kp * (self.b * r - y) + self.integral + self.D)
        u = min(max(raw, self.low), self.high)
        self.integral += T * (self.kp / self.ti * (r - y) + (u - raw) / self.tt)
        self.y = y
        return u


class PlainPlant:
    """A held plant whose delay is a whole number of samples, seen just before its input changes."""

    def __init__(self, numerator, denominator, samples):
        A, B, C, D = tf2ss(np.atleast_1d(numerator), np.atleast_1d(denominator))
        self.A, self.B, _, _, _ = cont2discrete((A, B, C, D), T)
        self.C, self.D = C[0], float(D[0, 0])
        self.x, self.late, self.passed = np.zeros(len(A)), [0.0] * samples, 0.0

    @property
    def y(self):
        return float(self.C @ self.x) + self.D * self.passed

    def __call__(self, u):
        self.late.append(u)
        self.passed = self.late.pop(0)
        self.x = self.A @ self.x + self.B[:, 0] * self.passed


def section(b, a):
    state = {"z": lfiltic(b, a, [])}

    def behind(u):
        y, state["z"] = lfilter(b, a, [u], zi=state["z"])
        return float(y[0])

    return behind


def compare(arrays, outputs, commands):
    np.testing.assert_allclose(arrays["output"][:-1], outputs, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(arrays["command"][:-1], commands, rtol=1e-9, atol=1e-10)


def test_a_notch_and_a_lead_stand_before_the_limits():
    model = LinearLoop(plant=RESONANT, sample_time=T, horizon=8.0, load_at=4.0, limits=(-0.4, 0.9))
    design = {
        "kp": 0.2, "ti": 0.3, "td": 0.05, "tf": 0.1, "b": 0.6, "tt": 0.5, "sections": "lead_notch",
        "lead_frequency": 4.0, "lead_ratio": 2.5, "notch_frequency": 20.0, "notch_width": 0.4, "notch_depth": 0.1,
    }  # fmt: skip
    _, arrays = run(model, design)
    # Bilinear by SciPy; prewarped at the section's own frequency.
    lead = bilinear([2.5**0.5 / 4.0, 1.0], [1.0 / (2.5**0.5 * 4.0), 1.0], 0.5 * 4.0 / np.tan(0.5 * 4.0 * T))
    notch = bilinear([1.0, 0.8, 400.0], [1.0, 8.0, 400.0], 0.5 * 20.0 / np.tan(0.5 * 20.0 * T))
    first, second = section(*lead), section(*notch)
    pid = PlainPID(0.2, 0.3, 0.05, 0.1, 0.6, 0.5, -0.4, 0.9)
    plant, outputs, commands = PlainPlant([400.0], [1.0, 1.0, 400.0], 2), [], []
    for k in range(160):
        outputs.append(plant.y)
        u = pid(1.0, plant.y, lambda v: second(first(v)))
        commands.append(u)
        plant(u + (k >= 80))
    compare(arrays, outputs, commands)
    assert max(commands) == 0.9  # the limit acts


@pytest.mark.parametrize("delay", [0, 3])
def test_direct_feedthrough_of_a_plant_is_measured_a_sample_later(delay):
    plant = LinearPlant(type="transfer_function", numerator=(0.4, 1.0), denominator=(1.0, 1.0), delay=delay * T)
    model = LinearLoop(plant=plant, sample_time=T, horizon=10.0, load_at=5.0)
    outputs, arrays = run(model, {"kp": 0.6, "ti": 0.8})
    pid, plain, measured, commands = PlainPID(0.6, 0.8), PlainPlant([0.4, 1.0], [1.0, 1.0], delay), [], []
    for k in range(200):
        measured.append(plain.y)
        commands.append(pid(1.0, plain.y))
        plain(commands[-1] + (k >= 100))
    compare(arrays, measured, commands)
    assert outputs["stable"] == 1.0


def test_integrals_of_an_output_with_jumps_are_exact_where_it_is_a_gain():
    """A gain of 0.5 as (0.5 s + 0.5) / (s + 1): the error is constant but for jumps, here at 0.3 of each sample."""
    plant = LinearPlant(type="transfer_function", numerator=(0.5, 0.5), denominator=(1.0, 1.0), delay=0.3 * T)
    model = LinearLoop(plant=plant, sample_time=T, horizon=4.0, load_at=2.0, substeps=7)
    outputs, arrays = run(model, {"kp": 0.8, "ti": 0.4})
    u = arrays["command"][:40]
    before = np.concatenate([[0.0], u[:-1]])
    error = 0.3 * np.abs(1.0 - 0.5 * before) + 0.7 * np.abs(1.0 - 0.5 * u)
    assert outputs["iae_setpoint"] == pytest.approx(T * error.sum(), rel=1e-12)
    assert outputs["overshoot"] == pytest.approx(max(0.5 * u.max() - 1.0, 0.0), abs=1e-12)


@pytest.mark.parametrize("limits", [None, (-0.2, 0.7)])
def test_a_smith_predictor_sees_the_output_without_the_delay_of_its_model(limits):
    """The plant has other gain, pace and delay than the model within the controller."""
    model = LinearLoop(plant=LATE, sample_time=T, horizon=20.0, load_at=10.0, limits=limits)
    _, arrays = run(
        model,
        {"structure": "smith", "kp": 1.1, "ti": 1.2, "td": 0.1, "tf": 0.1, **({"tt": 0.7} if limits else {})},
        {"gain_factor": 1.2, "lag_factor": 0.8, "delay_factor": 1.1},
    )
    low, high = limits or (-np.inf, np.inf)
    pid = PlainPID(1.1, 1.2, 0.1, 0.1, tt=0.7 if limits else None, low=low, high=high)
    plant = PlainPlant([2.4], [1.2, 1.0], 22)
    prompt, late = PlainPlant([2.0], [1.5, 1.0], 0), PlainPlant([2.0], [1.5, 1.0], 20)
    outputs, commands = [], []
    for k in range(400):
        outputs.append(plant.y)
        u = pid(1.0, plant.y + prompt.y - late.y)
        commands.append(u)
        plant(u + (k >= 200))
        prompt(u)
        late(u)
    compare(arrays, outputs, commands)


def test_with_a_perfect_model_the_output_is_that_without_delay_only_later():
    """Smith (1957): the delay leaves the loop; a controller for the plant without it may be used."""
    design, late = {"kp": 2.0, "ti": 1.0}, round(1.0 / T)
    _, arrays = run(LinearLoop(plant=LATE, sample_time=T, horizon=12.0, load_at=11.0), {**design, "structure": "smith"})
    prompt = LinearPlant(type="fopdt", gain=2.0, time_constant=1.5)
    _, without = run(LinearLoop(plant=prompt, sample_time=T, horizon=12.0, load_at=11.0), design)
    np.testing.assert_allclose(arrays["output"][late:220], without["output"][: 220 - late], atol=1e-12)
    np.testing.assert_allclose(arrays["command"][:220], without["command"][:220], atol=1e-12)


def test_the_gain_that_a_predictor_allows_is_that_of_the_loop_without_delay():
    """PI at kp 2 is unstable around the delay, with the predictor it is not, but for a delay that is too wrong."""
    model = LinearLoop(plant=LATE, sample_time=T, horizon=12.0, load_at=11.0)
    design = {"kp": 2.0, "ti": 1.0}
    assert run(model, design)[0]["stable"] == 0.0
    exact = run(model, {**design, "structure": "smith"})[0]
    assert exact["stable"] == 1.0
    for share, stable in ((0.98, 1.0), (1.02, 0.0)):  # of the margin of delay
        wrong = {"delay_factor": 1.0 + share * exact["delay_margin"]}
        assert run(model, {**design, "structure": "smith"}, wrong)[0]["stable"] == stable


def test_two_controllers_in_cascade():
    """The outer command is the set-point of the inner one, within limits of its own; both plants are late."""
    inner = LinearPlant(type="fopdt", gain=1.5, time_constant=0.3, delay=T)
    outer = LinearPlant(type="ipdt", gain=0.8, delay=2 * T)
    model = LinearLoop(
        plant=outer, inner_plant=inner, sample_time=T, horizon=20.0, load_at=10.0, limits=(-2.0, 1.6),
        setpoint_limits=(-0.5, 0.7),
    )  # fmt: skip
    design = {
        "kp": 1.2,
        "b": 0.8,
        "kp_inner": 2.5,
        "ti_inner": 0.4,
        "tt_inner": 0.3,
        "td_inner": 0.02,
        "tf_inner": 0.05,
    }
    outputs, arrays = run(model, design)
    first = PlainPID(1.2, b=0.8, low=-0.5, high=0.7)
    second = PlainPID(2.5, 0.4, 0.02, 0.05, tt=0.3, low=-2.0, high=1.6)
    fast, slow = PlainPlant([1.5], [0.3, 1.0], 1), PlainPlant([1.2], [0.3, 1.0, 0.0], 3)
    measured, commands = [], []
    for k in range(400):
        measured.append(slow.y)
        u = second(first(1.0, slow.y), fast.y)
        commands.append(u)
        fast(u + (k >= 200))
        slow(u + (k >= 200))
    compare(arrays, measured, commands)
    assert max(commands) == 1.6
    assert {"inner_gm", "inner_pm", "outer_gm", "outer_pm"} <= outputs.keys()


def test_an_unstable_outer_loop_has_no_margins_and_leaves_the_inner_one_its_own():
    inner = LinearPlant(type="fopdt", gain=1.5, time_constant=0.3, delay=T)
    model = LinearLoop(plant=LinearPlant(type="ipdt", delay=0.5), inner_plant=inner, sample_time=T, horizon=2.0)
    calm, wild = (run(model, {"kp": kp, "kp_inner": 2.0, "ti_inner": 0.4})[0] for kp in (0.5, 20.0))
    assert wild["stable"] == 0.0
    assert wild["outer_ms"] == wild["ms"] == np.inf
    assert wild["outer_gm"] == wild["gm"] == -np.inf
    assert {k: v for k, v in wild.items() if k.startswith("inner_")} == {
        k: v for k, v in calm.items() if k.startswith("inner_")
    }
    assert calm["inner_gm"] > 1.0


def test_the_same_plant_with_one_controller_is_the_plants_in_series():
    inner = LinearPlant(type="fopdt", gain=-1.5, time_constant=0.3, delay=0.07)
    combined = LinearPlant(type="sopdt", gain=-3.0, time_constant=0.3, time_constant_2=2.0, delay=0.3)
    outer = LinearPlant(type="fopdt", gain=2.0, time_constant=2.0, delay=0.23)
    design = {"kp": 1.0, "ti": 2.0}
    settings = {"sample_time": T, "horizon": 20.0}
    one = run(LinearLoop(plant=outer, inner_plant=inner, **settings), design, {"gain_factor": 1.1, "lag_factor": 1.2})[
        0
    ]
    of_combined = run(LinearLoop(plant=combined, **settings), design, {"gain_factor": 1.1, "lag_factor": 1.2})[0]
    assert one == pytest.approx(of_combined, rel=1e-9, abs=1e-9)


def test_a_cascade_is_the_same_in_any_batch():
    inner = LinearPlant(type="fopdt", gain=1.5, time_constant=0.3, delay=0.07)
    model = LinearLoop(plant=LATE, inner_plant=inner, sample_time=T, horizon=10.0)
    rng = np.random.default_rng(3)
    designs = [
        {"kp": k, "ti": 2.0, **more}
        for k in rng.uniform(0.1, 1.0, 2)
        for more in ({}, {"kp_inner": 2.0, "ti_inner": 0.5}, {"structure": "smith"},
                     {"notch_frequency": 9.0, "notch_width": 0.5, "notch_depth": 0.2})
    ]  # fmt: skip
    alone = [run(model, design)[0] for design in designs]
    assert [answer[0] for answer in model.batch(designs, [{}] * len(designs), frozenset())] == alone


@pytest.mark.parametrize(
    ("settings", "design", "reason"),
    [
        ({"plant": LATE, **SAMPLED}, {"kp": 1.0, "kp_inner": 1.0}, "give the model an inner_plant"),
        ({"plant": LATE, "inner_plant": LATE, **SAMPLED}, {"kp": 1.0, "structure": "cascade"}, "kp_inner: is missing"),
        ({"plant": LATE}, {"kp": 1.0, "structure": "smith"}, "give the model a sample_time"),
        ({"plant": LinearPlant(type="ipdt", delay=1.0), **SAMPLED}, {"kp": 1.0, "structure": "smith"}, "stable plant"),
        ({"plant": LATE}, {"kp": 1.0, "notch_frequency": 3.0}, "notch_width: is missing"),
        ({"plant": LATE}, {"kp": 1.0, "sections": "lead"}, "lead_frequency: is missing"),
        ({"plant": LATE}, {"kp": 1.0, "sections": "none", "lead_frequency": 1.0, "lead_ratio": 2.0}, "has no effect"),
        ({"plant": LATE, **SAMPLED}, {"kp": 1.0, "lead_frequency": 70.0, "lead_ratio": 2.0}, "not below half"),
        ({"plant": LATE, "inner_plant": LATE, **SAMPLED}, {"kp": 1.0, "structure": "single", "kp_inner": 1.0},
         "the structure is single"),
    ],
)  # fmt: skip
def test_designs_whose_parts_do_not_fit_are_refused(settings, design, reason):
    model = LinearLoop(**settings)
    model.check()
    with pytest.raises(InvalidDesign, match=reason):
        model.evaluate(design, {}, frozenset())


def test_a_setting_of_the_inner_plant_is_refused_under_its_name():
    model = LinearLoop(plant=LATE, inner_plant=LinearPlant(type="fopdt"), sample_time=T, horizon=9.0)
    with pytest.raises(InvalidSetting, match=r"^inner_plant\.time_constant: is missing"):
        model.check()


STUDY = {
    "study": "parts",
    "model": {"use": "linear_loop", "plant": {"type": "fopdt", "time_constant": "1 s", "delay": "1 s"},
              "inner_plant": {"type": "fopdt", "time_constant": "0.1 s"}, "sample_time": "0.1 s", "horizon": "9 s"},
    "objectives": [{"name": "iae", "minimize": "iae_setpoint"}],
}  # fmt: skip
NOTCH = {"notch_frequency": 5.0, "notch_width": 0.5, "notch_depth": 0.1}


@pytest.mark.parametrize(
    ("space", "reason"),
    [
        (
            {"sections": {"values": ["none", "notch"]}, **NOTCH},
            "notch_width: is in every design, whatever the sections",
        ),
        ({"sections": {"value": "lead"}, **NOTCH}, "whatever the sections: leave it out"),
        ({"structure": {"values": ["single", "cascade"]}, "kp_inner": 1.0}, r"'when: {structure: \[cascade\]}'"),
        ({"notch_frequency": 5.0}, "notch_width: is missing"),
        ({"lead_frequency": [1.0, 40.0], "lead_ratio": 2.0}, "reaches 40 rad/s"),
    ],
)
def test_a_space_that_makes_designs_of_no_use_is_refused(space, reason):
    with pytest.raises(StudyError, match=reason):
        designopt.define(**STUDY, space={"kp": [0.1, 1.0], **space})


@pytest.mark.parametrize("change", [{"sample_time": None}, {"inner_plant": None}, {"plant": {"type": "ipdt"}}])
def test_a_structure_that_cannot_be_had_is_refused_when_the_study_is_checked(change):
    model = {k: v for k, v in {**STUDY["model"], **change}.items() if v is not None}
    if "sample_time" not in model:
        del model["horizon"]
    structures = ["single", "cascade"] if "inner_plant" not in model else ["single", "smith"]
    with pytest.raises(StudyError, match="structure"):
        designopt.define(**{**STUDY, "model": model}, space={"kp": [0.1, 1.0], "structure": {"values": structures}})
