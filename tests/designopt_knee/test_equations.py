"""The minimal form against the seven-coordinate form with multipliers, which shares nothing with it but numbers."""

import numpy as np
import pytest
from designopt_knee.equations import knee_system
from designopt_knee.parameters import EQUATION_PARAMETERS
from seven_coordinate import SevenCoordinates


def random_states(count):
    """Times and minimal states over the range of the knee, in the air and in the ground."""
    rng = np.random.default_rng(20)
    for _ in range(count):
        state = np.array([rng.uniform(-2.5, 0.3), rng.uniform(-1.0, 1.0), *(5.0 * rng.normal(size=2))])
        yield rng.uniform(0.0, 6.0), state


@pytest.mark.parametrize("smoothing", ["tanh", "atan"])
@pytest.mark.parametrize("shank_mass_terms", ["full", "as_printed"])
def test_both_forms_give_the_same_accelerations(leg, gait, smoothing, shank_mass_terms):
    system = knee_system(gait.harmonics, smoothing, shank_mass_terms)
    oracle = SevenCoordinates(leg, gait, smoothing=smoothing, as_printed=shank_mass_terms == "as_printed")
    p = np.array([leg[name] for name in EQUATION_PARAMETERS])
    for t, state in random_states(100):
        minimal = np.array(system.rhs(state, [], [], p, gait.data(), t))[2:, 0]
        full = oracle.consistent(t, *state)
        acceleration = oracle.accelerations(t, full[:4], full[4:])
        thigh = oracle.driven(t)[2][2]
        expected = np.array([acceleration[2] - thigh, acceleration[3]])
        assert np.abs(minimal - expected).max() < 1e-9 * np.abs(expected).max()


def test_printed_shank_terms_differ_from_the_full_ones(leg, gait):
    p = np.array([leg[name] for name in EQUATION_PARAMETERS])
    arguments = ([-1.0, 0.2, 0.0, 0.0], [], [], p, gait.data(), 0.4)
    full, printed = (knee_system(8, "tanh", terms).rhs(*arguments) for terms in ("full", "as_printed"))
    assert abs(float(full[2] - printed[2])) > 1.0


def test_corrected_matrices_conserve_energy(leg, gait):
    """M' - 2C is skew when C is the one of the text: the rate of M comes from finite differences here."""
    oracle = SevenCoordinates(leg, gait)
    rng = np.random.default_rng(3)
    q, v, h = rng.normal(size=7), rng.normal(size=7), 1e-6
    later, sooner = oracle.matrices(q + h * v, v)[0], oracle.matrices(q - h * v, v)[0]
    between = (later - sooner) / (2.0 * h) - 2.0 * oracle.matrices(q, v)[1]
    assert np.abs(between + between.T).max() < 1e-8


def test_mass_matrix_has_the_entry_missing_in_print_and_the_closed_form_of_the_text(leg, gait):
    rng = np.random.default_rng(4)
    q = rng.normal(size=7)
    M, C, N = SevenCoordinates(leg, gait).matrices(q, rng.normal(size=7))
    lever = (0.5 - leg["heel_fraction"]) * leg["foot_length"]
    assert M[4, 6] == pytest.approx(leg["ad_length"] * leg["foot_mass"] * lever * np.sin(q[4] - q[6]), rel=1e-12)
    assert C[2, 2] == pytest.approx(0.0, abs=1e-12)
    assert np.abs(M - M.T).max() < 1e-15
    assert N[0] == 0.0


def test_other_gait_and_other_numbers_need_no_new_equations(gait):
    assert knee_system(8, "tanh", "full") is knee_system(8, "tanh", "full")
    assert knee_system(8).rhs.size1_in("q") == len(gait.data())


def test_hip_moment_and_power_are_those_of_the_seven_coordinates(leg, gait, monkeypatch):
    """Generalised forces of hip and thigh with a thigh without mass: what the leg below it takes."""
    import seven_coordinate

    monkeypatch.setattr(seven_coordinate, "THIGH", dict.fromkeys(seven_coordinate.THIGH, 0.0))
    system, oracle = knee_system(gait.harmonics), SevenCoordinates(leg, gait)
    names = [v.name for v in system.outputs]
    p = np.array([leg[name] for name in EQUATION_PARAMETERS])
    for t, state in random_states(30):
        outputs = dict(zip(names, np.array(system.output(state, [], [], p, gait.data(), t)).ravel(), strict=True))
        q1, v1, a1, ankle0 = oracle.driven(t)
        full = oracle.consistent(t, *state)
        q, v = np.concatenate([q1, full[:4]]), np.concatenate([v1, full[4:]])
        a = np.concatenate([a1, oracle.accelerations(t, full[:4], full[4:])])
        M, C, N = oracle.matrices(q, v)
        _, phi, _ = oracle.closure(q, v)
        needed = M @ a + C @ v + N - oracle.forces(q, v, ankle0)
        multipliers = np.linalg.lstsq(phi[:, 3:].T, needed[3:], rcond=None)[0]
        hip = (needed - phi.T @ multipliers)[:3]
        scale = np.abs(needed).max()
        assert outputs["hip_moment"] == pytest.approx(hip[2], abs=1e-8 * scale)
        assert outputs["hip_power"] == pytest.approx(hip @ v1, abs=1e-8 * scale * np.abs(v1).max())


def test_flexion_extension_and_quadratic_damping_add_to_the_damper_force(leg, gait):
    """Against a damper without damping: the difference is the law of each direction times the damper's speed."""
    system = knee_system(gait.harmonics)
    names = [v.name for v in system.outputs]

    def outputs(state, **damper):
        g = {**leg, "damping": 0.0, "extension_damping": 0.0, "quadratic_damping": 0.0, **damper}
        p = np.array([g[name] for name in EQUATION_PARAMETERS])
        return dict(zip(names, np.array(system.output(state, [], [], p, gait.data(), 0.3)).ravel(), strict=True))

    for eta_rate in (-4.0, 4.0):  # the knee bends with falling eta, and the damper shortens
        state = [-0.8, 0.1, eta_rate, 0.0]
        spring = outputs(state)["damper_force"]
        unit = outputs(state, damping=1.0, extension_damping=1.0)["damper_force"] - spring  # the damper's speed
        assert np.sign(unit) == np.sign(eta_rate)
        c = 300.0 if unit < 0.0 else 700.0
        combined = outputs(state, damping=300.0, extension_damping=700.0, quadratic_damping=50.0)
        resistance = c * unit + 50.0 * unit * abs(unit)
        assert combined["damper_force"] - spring == pytest.approx(resistance, rel=1e-9)
        assert combined["damper_power"] == pytest.approx(resistance * unit, rel=1e-9)
        assert combined["damper_power"] > 0.0
