"""What dynamic sharing can be asked besides the least excitations: schemes, EMG, synergies, devices, factors."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_mechanics.sharing.statement.criteria import Tracking
from designopt_mechanics.sharing.statement.synergies import command_matrix, factorise_signals
from designopt_muscle.curves import activation_rate
from designopt_muscle.dynamic_sharing.information import identifiability, information
from designopt_muscle.dynamic_sharing.share import share_dynamic
from designopt_muscle.dynamic_sharing.terms import Device, DynamicReserves, DynamicTerms, Factor, MeasuredFibres
from designopt_muscle.models.dynamic.sharing import DynamicSharingModel
from one_joint import NAMES, one_joint
from scipy.integrate import solve_ivp

MILD = DynamicTerms(sharpness=0.1)


def wave(time):
    """Excitations of the three muscles, smooth and within their bounds."""
    return 0.4 + np.stack([0.2 * np.sin(9 * time), 0.15 * np.cos(11 * time + 0.3), 0.1 * np.sin(8 * time + 1)], -1)


@pytest.mark.parametrize(("scheme", "order", "intervals"), [("hermite_simpson", 4, 40), ("trapezoidal", 2, 40)])
def test_activations_converge_with_the_order_of_the_scheme(scheme, order, intervals):
    """With excitations tracked exactly the activations are the solution of a differential equation: DOP853 at 1e-12."""
    errors = []
    for n in (intervals, 2 * intervals):
        trial = one_joint(n, scheme=scheme, rigid=True)
        time = trial.balance.time
        terms = DynamicTerms(effort=0.0, sharpness=0.1, tracking=Tracking(wave(time)))
        reserves = DynamicReserves(np.array([100.0]), 1e-9, 100.0)
        sharing = share_dynamic(replace(trial, terms=terms, reserves=reserves), scheme=scheme, tolerance=1e-11)
        exact = solve_ivp(
            lambda t, a: activation_rate(wave(t), a, sharpness=0.1), (0.0, time[-1]), wave(0.0), t_eval=time,
            rtol=1e-12, atol=1e-13, method="DOP853",
        )  # fmt: skip
        assert np.abs(sharing.excitations - wave(time)).max() < 1e-7
        errors.append(np.abs(sharing.activations - exact.y.T).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


def test_the_schemes_agree():
    objectives = {
        scheme: share_dynamic(one_joint(n, scheme=scheme), scheme=scheme).objective
        for scheme, n in (("hermite_simpson", 24), ("trapezoidal", 48), ("radau", 24))
    }
    assert objectives["trapezoidal"] == pytest.approx(objectives["hermite_simpson"], rel=3e-3)
    assert objectives["radau"] == pytest.approx(objectives["hermite_simpson"], rel=3e-3)


def pulses_pay(sharpness, activation, rise=0.015, fall=0.060):
    """Whether small pulses about a steady excitation lower the mean of its squares at the same mean rate."""
    stretch = 0.5 + 1.5 * activation
    up, down = 1.0 / (rise * stretch), stretch / fall
    return 2.0 * activation * sharpness * (up - down) / (up + down) > 1.0


def test_a_sharp_switch_has_no_smooth_optimum():
    """Above 2.3 some activation is held at less effort by pulses: excitations then jump from point to point."""
    levels = np.linspace(0.01, 1.0, 200)
    assert not any(pulses_pay(2.2, a) for a in levels)
    assert any(pulses_pay(2.4, a) for a in levels)
    second = {}
    for sharpness in (1.0, 2.0, 3.0):
        sharing = share_dynamic(one_joint(24, rigid=True, terms=replace(MILD, sharpness=sharpness)))
        second[sharpness] = float(np.abs(np.diff(sharing.excitations[4:-4], 2, axis=0)).mean())
    assert second[1.0] < second[2.0] < 0.02
    assert second[3.0] > 0.2


def test_squares_of_activations_may_take_the_place_of_those_of_excitations():
    sharings = {
        word: share_dynamic(one_joint(12, terms=replace(MILD, charged=word))) for word in ("excitation", "activation")
    }
    squares = {word: float((s.activations**2).sum()) for word, s in sharings.items()}
    assert all(s.converged for s in sharings.values())
    assert squares["activation"] < squares["excitation"]


def test_a_heavier_muscle_works_less():
    plain = share_dynamic(one_joint(12))
    heavy = share_dynamic(one_joint(12, terms=replace(MILD, weights=np.array([10.0, 1.0, 1.0]))))
    assert heavy.excitations[:, 0].mean() < plain.excitations[:, 0].mean()


# ------------------------------------------------------------------------------------------------------------ EMG


def test_tracked_excitations_come_closer_the_more_they_weigh():
    trial = one_joint(12)
    signals = np.full((25, 3), np.nan)
    signals[:, 1] = 0.5
    errors = []
    for weight in (0.0, 1.0, 100.0):
        terms = replace(MILD, tracking=Tracking(signals, weight))
        errors.append(share_dynamic(replace(trial, terms=terms)).tracking)
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-2 * errors[0]


def test_frames_without_a_sample_are_not_tracked():
    trial = one_joint(12)
    bare = share_dynamic(trial)
    signals = np.full((25, 3), np.nan)
    signals[10, 1] = bare.excitations[10, 1]
    sharing = share_dynamic(replace(trial, terms=replace(MILD, tracking=Tracking(signals, 10.0))))
    assert sharing.excitations == pytest.approx(bare.excitations, abs=1e-4)
    assert sharing.tracking == pytest.approx(0.0, abs=1e-9)


def test_a_free_scale_is_found_with_the_excitations():
    """The signal is twice the excitations of a solution: the scale is 1/2, and they are tracked exactly."""
    trial = one_joint(12)
    bare = share_dynamic(trial)
    terms = replace(MILD, tracking=Tracking(2.0 * bare.excitations, 50.0, free_scale=True))
    scales = {f"signal_scale_{name}": (0.0, 10.0) for name in NAMES}
    sharing = share_dynamic(replace(trial, terms=terms), scales)
    assert [sharing.parameters[name] for name in scales] == pytest.approx([0.5] * 3, abs=2e-3)
    assert sharing.tracking < 1e-5


def test_a_band_keeps_excitations_about_their_signal():
    trial = one_joint(12)
    signals = np.full((25, 3), np.nan)
    signals[5:, 0] = 0.3
    band = Tracking(signals, 0.0, band=(-0.05, 0.1))
    free, bound = share_dynamic(trial), share_dynamic(replace(trial, terms=replace(MILD, tracking=band)))
    assert free.excitations[5:, 0].max() > 0.45
    assert bound.excitations[5:, 0].min() >= 0.25 - 1e-6
    assert bound.excitations[5:, 0].max() <= 0.4 + 1e-6
    assert bound.objective > free.objective


def test_a_band_that_leaves_nothing_is_reported_with_muscle_and_time():
    signals = np.full((25, 3), np.nan)
    signals[7, 2] = 1.4
    tracking = Tracking(signals, 0.0, band=(-0.1, 0.1))
    with pytest.raises(ValueError, match=r"'opposite' at 0\.11\d* s \(1\.4\) leaves none .* normalise the signal"):
        one_joint(12, terms=replace(MILD, tracking=tracking))


# ------------------------------------------------------------------------------------------------------ synergies


def test_excitations_of_synergies_are_combinations_of_their_commands():
    W = command_matrix({"extend": {"long": 1.0, "short": 0.5}}, NAMES)
    assert W.tolist() == [[1.0, 0.0], [0.5, 0.0], [0.0, 1.0]]
    free = share_dynamic(one_joint(12))
    sharing = share_dynamic(one_joint(12, terms=replace(MILD, synergies=W)))
    assert sharing.converged
    assert sharing.commands.shape == (25, 2)
    assert sharing.excitations == pytest.approx(sharing.commands @ W.T, abs=1e-12)
    assert sharing.excitations.min() >= 0.01 - 1e-6
    assert sharing.activations[0] == pytest.approx(sharing.excitations[0], abs=1e-8)
    assert sharing.objective > free.objective


def test_factors_of_synthetic_signals_are_those_they_were_made_of():
    """Synergies with a muscle of their own each have one factorisation but for their order (Donoho & Stodden 2003)."""
    time = np.linspace(0.0, 1.0, 80)
    commands = np.stack([np.maximum(np.sin(6 * time), 0.0), np.maximum(-np.sin(6 * time), 0.0) + 0.1 * time], -1)
    weights = np.array([[1.0, 0.0], [0.6, 0.3], [0.0, 1.0], [0.2, 0.8]])
    W, H, accounted = factorise_signals(commands @ weights.T, 2)
    order = np.argmax(W[[0, 2]], axis=1)
    assert W[:, order] == pytest.approx(weights, abs=2e-3)
    assert H[:, order] == pytest.approx(commands, abs=2e-3)
    assert accounted > 0.99999
    assert factorise_signals(commands @ weights.T, 1)[2] < 0.9


@pytest.mark.parametrize(
    ("signals", "count", "message"),
    [
        (-np.ones((5, 2)), 1, "not negative"),
        (np.full((5, 2), np.nan), 1, "finite"),
        (np.ones((5, 2)), 3, "3 synergies"),
    ],
)
def test_signals_that_have_no_factors_are_refused(signals, count, message):
    with pytest.raises(ValueError, match=message):
        factorise_signals(signals, count)


# --------------------------------------------------------------------------------------------- device and factors


def with_spring(intervals=12):
    trial = one_joint(intervals)
    time = trial.balance.time  # the angle goes with the needed moment, but for a part that no spring follows
    return replace(trial, device=Device("joint", -0.4 * np.sin(5.0 * time + 0.4) + 0.3 * np.cos(13.0 * time)))


def test_a_spring_chosen_with_the_motion_is_that_of_a_nested_search():
    """At the optimum of one program the derivatives of the nested objective vanish, and beside it it is higher."""
    trial = with_spring()
    sharing = share_dynamic(trial, {"stiffness": (0.0, 200.0), "rest": (-2.0, 2.0)})
    best = {name: sharing.parameters[name] for name in ("stiffness", "rest")}
    assert 1.0 < best["stiffness"] < 199.0
    nested = share_dynamic(trial, best)
    assert nested.objective == pytest.approx(sharing.objective, rel=1e-5)
    assert abs(nested.slopes["stiffness"]) * 10.0 < 1e-3 * nested.objective
    assert abs(nested.slopes["rest"]) * 0.1 < 1e-3 * nested.objective
    for name, step in (("stiffness", 8.0), ("rest", 0.03)):
        for sign in (-1.0, 1.0):
            beside = share_dynamic(trial, {**best, name: best[name] + sign * step})
            assert beside.objective > sharing.objective
    assert sharing.objective < share_dynamic(trial).objective


def test_a_spring_takes_its_moment_off_the_muscles():
    trial = with_spring()
    sharing = share_dynamic(trial, {"stiffness": 30.0, "rest": 0.4})
    angle = trial.device.angle
    assert sharing.device == pytest.approx(30.0 * (0.4 - angle))
    left = trial.balance.residual(sharing.forces)[:, 0] - sharing.device - 5.0 * sharing.reserves[:, 0]
    assert np.abs(left).max() < 1e-6


def test_measured_fibre_lengths_calibrate_the_tendon():
    """Lengths that the model itself made, without EMG: the slack length is found, and the lengths are followed."""
    factors = (Factor("fibre", "fibre", ("long",)), Factor("slack", "slack", ("long",)))
    trial = replace(one_joint(12), factors=factors)
    truth = {"fibre": 1.05, "slack": 0.98}
    measured = share_dynamic(trial, truth)
    lengths = np.full((25, 3), np.nan)
    lengths[:, 0] = measured.fibre_lengths[:, 0] * 1.05 * trial.muscles.optimal[0]
    fibres = MeasuredFibres(lengths, 1e4)
    sharing = share_dynamic(replace(trial, terms=replace(MILD, fibres=fibres)), truth | {"slack": (0.8, 1.2)})
    assert sharing.fibres < 1e-6
    assert sharing.parameters["slack"] == pytest.approx(0.98, abs=2e-3)
    wrong = share_dynamic(replace(trial, terms=replace(MILD, fibres=fibres)))
    assert wrong.fibres > 1e-5
    assert wrong.objective > sharing.objective


def test_derivatives_by_device_and_factors_are_those_of_differences():
    factors = (Factor("slack", "slack", ("long",)), Factor("fibre", "fibre", ("long", "short")),
               Factor("size", "force", ("short",)), Factor("give", "strain", ("long",)))  # fmt: skip
    trial = replace(with_spring(8), factors=factors)
    at = {"stiffness": 20.0, "rest": 0.1, "assistance": 0.1, "strength": 1.1} | {f.name: 1.0 for f in factors}
    slopes = share_dynamic(trial, at, tolerance=1e-10).slopes
    steps = {"stiffness": 0.1, "rest": 1e-3, "assistance": 1e-3, "strength": 1e-3}
    for name, value in at.items():
        step = steps.get(name, 3e-4)
        up, down = (share_dynamic(trial, at | {name: value + s * step}, tolerance=1e-10) for s in (1, -1))
        assert slopes[name] == pytest.approx((up.objective - down.objective) / (2 * step), rel=2e-3), name


def test_the_information_is_the_second_derivative_of_the_least_objective():
    factors = (Factor("slack", "slack", ("long",)), Factor("size", "force", ("short",)))
    trial = replace(one_joint(8), factors=factors)
    at = {"slack": 1.0, "size": 1.0}
    sharing = share_dynamic(trial, at, tolerance=1e-10)
    second = information(sharing.program, sharing.solution, list(at))
    for i, name in enumerate(at):
        up, down = (share_dynamic(trial, at | {name: 1.0 + s * 1e-3}, tolerance=1e-10).slopes for s in (1, -1))
        differences = [(up[column] - down[column]) / 2e-3 for column in at]
        assert second[i] == pytest.approx(differences, rel=0.05)


def test_factors_that_only_count_together_are_not_identified():
    """The sum of two numbers is determined, their difference is not."""
    together = identifiability(["a", "b"], [np.array([[1.0, 1.0], [1.0, 1.0]])], rise=0.02)
    assert np.isinf(together.widths).all()
    assert together.alone == pytest.approx([0.2, 0.2])
    assert np.abs(together.weakest) == pytest.approx([np.sqrt(0.5)] * 2)
    assert np.isinf(together.condition)
    apart = identifiability(["a", "b"], [np.diag([1.0, 0.0]), np.diag([0.0, 4.0])], rise=0.02)
    assert apart.widths == pytest.approx([0.2, 0.1])
    assert apart.condition == pytest.approx(4.0)


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"terms": replace(MILD, weights=np.ones(2))}, r"weights has the shape \(2,\)"),
        ({"terms": replace(MILD, synergies=np.ones((2, 1)))}, "synergies has the shape"),
        ({"terms": replace(MILD, tracking=Tracking(np.ones((3, 3))))}, "signals has the shape"),
        ({"terms": replace(MILD, fibres=MeasuredFibres(np.ones((3, 3))))}, "fibre lengths has the shape"),
        ({"terms": replace(MILD, fibres=MeasuredFibres(np.full((9, 3), 45.0)))}, "is 45 m at 0 s.*in metres"),
        ({"device": Device("hip", np.zeros(9))}, "about 'hip', no row"),
        ({"device": Device("joint", np.full(9, np.nan))}, "9 finite numbers"),
        ({"factors": (Factor("f", "force", ("psoas",)),)}, "no muscle 'psoas'"),
        ({"factors": (Factor("f", "force", ("long",)), Factor("g", "force", ("long",)))}, "already scaled by 'f'"),
        ({"reserves": DynamicReserves(np.ones(2))}, "2 reserves for 1 rows"),
    ],
)
def test_parts_that_do_not_fit_are_reported(change, message):
    with pytest.raises(ValueError, match=message):
        replace(one_joint(4), **change)


def test_a_parameter_that_is_not_there_is_reported():
    with pytest.raises(ValueError, match="no parameter 'stiffness'; known: strength"):
        share_dynamic(one_joint(4), {"stiffness": 1.0})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Factor("f", "length", ("long",)), "'length' cannot be scaled; force, fibre, slack, strain can"),
        (lambda: Factor("a b", "force", ("long",)), "letters, digits and _"),
        (lambda: Factor("reserve_hip", "force", ("long",)), "a name that a variable of the program may have"),
        (lambda: DynamicTerms(effort=-1.0), "effort is -1"),
        (lambda: DynamicTerms(sharpness=0.0), "sharpness is 0"),
        (lambda: DynamicTerms(synergies=np.array([[np.nan]])), "synergies must be finite"),
        (lambda: DynamicReserves(np.array([-1.0])), "not negative"),
    ],
)
def test_values_out_of_range_are_reported(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ------------------------------------------------------------------------------------------------------- invariance


def test_the_order_of_the_muscles_does_not_matter():
    """To the tolerance of the solver: another order is another elimination (specs section 7 asks 1e-9 of one frame)."""
    trial = one_joint(10)
    order = np.array([2, 0, 1])
    muscles = trial.muscles
    moved = replace(
        muscles,
        names=tuple(muscles.names[j] for j in order),
        **{
            name: getattr(muscles, name)[..., order]
            for name in ("lengths", "speeds", "force", "optimal", "slack", "pennation", "fastest", "rigid",
                         "tendon_strain", "width", "damping", "rise", "fall", "passive_strain", "min_activation")
        },
    )  # fmt: skip
    balance = replace(trial.balance, columns=moved.names, arms=trial.balance.arms[:, :, order])
    one, reordered = (
        share_dynamic(trial, tolerance=1e-11),
        share_dynamic(replace(trial, balance=balance, muscles=moved), tolerance=1e-11),
    )
    assert reordered.objective == pytest.approx(one.objective, rel=1e-9)
    assert reordered.activations == pytest.approx(one.activations[:, order], abs=1e-7)


def test_a_mirrored_joint_has_the_same_activations():
    """Angles, arms and moments with the other sign: the same lengths, and the same forces."""
    trial = one_joint(10)
    balance = replace(trial.balance, arms=-trial.balance.arms, moments=-trial.balance.moments)
    one = share_dynamic(trial, tolerance=1e-11)
    mirrored = share_dynamic(replace(trial, balance=balance), tolerance=1e-11)
    assert mirrored.objective == pytest.approx(one.objective, rel=1e-9)
    assert mirrored.activations == pytest.approx(one.activations, abs=1e-7)
    assert mirrored.reserves == pytest.approx(-one.reserves, abs=1e-7)


def test_the_unit_of_force_does_not_matter():
    """Forces, moments and reserves a thousandth of their numbers, as in kN."""
    trial = one_joint(10)
    balance = replace(trial.balance, moments=1e-3 * trial.balance.moments)
    small = replace(trial, balance=balance, muscles=replace(trial.muscles, force=1e-3 * trial.muscles.force),
                    reserves=replace(trial.reserves, optimal=1e-3 * trial.reserves.optimal))  # fmt: skip
    one, rescaled = share_dynamic(trial, tolerance=1e-11), share_dynamic(small, tolerance=1e-11)
    assert rescaled.objective == pytest.approx(one.objective, rel=1e-6)
    assert rescaled.activations == pytest.approx(one.activations, abs=1e-5)
    assert rescaled.forces == pytest.approx(1e-3 * one.forces, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("charged", "start"), [("excitation", [0.61, 0.73, 0.85]), ("activation", [0.356] * 3)])
def test_the_first_activation_depends_on_the_mesh_where_only_excitations_are_charged(charged, start):
    """It equals one excitation, whose cost falls with the interval; the activation that is charged has a limit."""
    terms = DynamicTerms(sharpness=0.1, charged=charged)
    first = [share_dynamic(one_joint(n, rigid=True, terms=terms)).activations[0, 0] for n in (16, 32, 64)]
    assert first == pytest.approx(start, abs=0.01)


def test_the_model_warns_of_a_cost_without_an_answer_on_finer_meshes():
    (warning,) = (remark for remark in DynamicSharingModel().remarks({}) if "costs ever less" in remark)
    assert "effort: activation" in warning
    assert not any("costs ever less" in remark for remark in DynamicSharingModel(effort="activation").remarks({}))
