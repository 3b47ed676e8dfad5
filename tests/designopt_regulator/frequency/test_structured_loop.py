"""Loops with sections, feedthrough, Smith predictor and cascade against state spaces that are put together by hand."""

import numpy as np
import pytest
from designopt_regulator.controllers.sections import lead, notch
from designopt_regulator.linear_loop.assembly import Parts, Plants, loop_of
from designopt_regulator.plants.linear import series as plants_in_series
from designopt_regulator.plants.linear import transfer_function
from random_loops import (
    FIGURES,
    T,
    biproper,
    closed,
    fed_back,
    late,
    random_biproper,
    random_plant,
    random_settings,
    sampled_controller,
    sampled_plant,
    sampled_reference,
    sampled_stable,
    series,
    together,
)
from scipy.linalg import solve_discrete_lyapunov

ONE = (np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), 1.0)


def in_z(numerator, denominator, w):
    """A section with s = (w / tan(w T / 2)) (z - 1) / (z + 1) put in, as a state space."""
    k, n = w / np.tan(0.5 * w * T), len(denominator) - 1

    def substituted(coefficients):
        powers = [
            c * k**p * np.poly([1.0] * p + [-1.0] * (n - p))
            for p, c in zip(range(n, -1, -1), coefficients, strict=True)
        ]
        return np.sum(powers, axis=0)

    return biproper(substituted(numerator), substituted(denominator))


def random_sections(rng):
    w, width, depth = 10.0 ** rng.uniform(-0.3, 1.2), 10.0 ** rng.uniform(-1.5, 0.3), rng.choice([0.0, 0.1, 0.5])
    at, ratio = 10.0 ** rng.uniform(-0.3, 1.2), 10.0 ** rng.uniform(-1.0, 1.0)
    root = np.sqrt(ratio)
    state_space = series(
        in_z([1.0, depth * width * w, w * w], [1.0, width * w, w * w], w),
        in_z([root / at, 1.0], [1.0 / (root * at), 1.0], at),
    )
    return (lead(at, ratio), notch(w, width, depth)), state_space


def outer(s):
    return {**s, "b": 1.0, "tt": np.nan}


def with_sections(rng):
    (top, bottom), delay, s = random_plant(rng), int(rng.integers(0, 4)), random_settings(rng)
    sections, behind = random_sections(rng)
    K, G = series(behind, sampled_controller(s)), sampled_plant(top, bottom, delay)
    plant = transfer_function(top, bottom, delay * T)
    return Plants(plant), Parts("single", outer(s), None, sections), plant, K, G, None


def with_feedthrough(rng):
    top, bottom = random_biproper(rng)
    delay, s = int(rng.integers(0, 4)), random_settings(rng)
    plant = transfer_function(top, bottom, delay * T)
    return (
        Plants(plant), Parts("single", outer(s)), plant, sampled_controller(s), sampled_plant(top, bottom, delay), None
    )  # fmt: skip


def with_predictor(rng):
    """The model has another gain, and its delay is up to three samples longer or shorter."""
    while (np.roots((candidate := random_plant(rng))[1]).real > -1e-9).any():
        pass
    (top, bottom), s = candidate, random_settings(rng)
    delay = int(rng.integers(3, 12))
    assumed, factor = delay + int(rng.integers(-3, 4)), rng.uniform(0.7, 1.4)
    plant, model = (transfer_function(k * top, bottom, d * T) for k, d in ((1.0, delay), (factor, assumed)))
    A, B, C, D = late(assumed)
    ahead = series((A, B, -C, 1.0 - D), sampled_plant(factor * top, bottom, 0))
    K = fed_back(sampled_controller(s), ahead)
    return Plants(plant), Parts("smith", outer(s)), model, K, sampled_plant(top, bottom, delay), None


def with_inner_loop(rng):
    """A fast inner plant and a slow outer one, both late."""
    (top, bottom), (top_2, bottom_2) = (
        ([1.0], np.poly(-(10.0 ** rng.uniform(*w, 2)))) for w in ((0.0, 1.0), (-1.0, 0.5))
    )
    delay, more = int(rng.integers(0, 3)), int(rng.integers(0, 3))
    s, s_inner = random_settings(rng), {**random_settings(rng), "b": rng.uniform(0.0, 1.0)}
    inner = transfer_function(top, bottom, delay * T)
    combined = plants_in_series(inner, transfer_function(top_2, bottom_2, more * T))
    sections, behind = random_sections(rng)
    G1 = sampled_plant(top, bottom, delay)
    G = sampled_plant(np.polymul(top, top_2), np.polymul(bottom, bottom_2), delay + more)
    # From the set-point the inner controller has b on P and no D.
    kp = s_inner["kp"]
    A, B, C, _ = sampled_controller({**s_inner, "td": 0.0})
    from_setpoint = series(behind, (A, B, C, kp * s_inner["b"]))
    K = series(from_setpoint, sampled_controller(s))
    parts = Parts("cascade", outer(s), {**s_inner, "tt": np.nan}, sections)
    within = series(G1, series(behind, sampled_controller({k: s_inner[k] for k in ("kp", "ti", "td", "tf")})))
    return Plants(combined, inner), parts, combined, K, G, within


STRUCTURES = [with_sections, with_feedthrough, with_predictor, with_inner_loop]


def random_structures(build, count):
    """Stable loops, and what the reference says of them; of a few unstable ones the spectral radius alone is asked."""
    rng, unstable = np.random.default_rng(5), 0
    while count:
        with np.errstate(all="ignore"):
            plants, parts, nominal, K, G, within = build(rng)
        L = series(G, K) if within is None else together(series(G, K), within)
        radius = np.abs(np.linalg.eigvals(closed(L))).max()
        if radius >= 1.0 and (unstable := unstable + 1) > 5:
            continue
        loop = loop_of(plants, parts, nominal, T)
        if within is None:  # the reference of a cascade has the inner plant twice
            assert np.abs(np.linalg.eigvals(loop.closed.M)).max() == pytest.approx(radius, rel=1e-6, abs=1e-4)
        if not loop.measures().stable[0]:
            continue
        count -= 1
        yield loop, parts, K, G, L, within


def real_ends(plants_poles, laws):
    return [-1.0] + [1.0] * bool(all(np.isinf(s["ti"]) for s in laws) and (np.abs(plants_poles) > 1e-9).all())


@pytest.mark.parametrize("structure", STRUCTURES)
def test_margins_of_random_loops_agree_with_the_reference(structure):
    conditional = 0
    for loop, parts, _, _, L, within in random_structures(structure, 16):
        laws = [parts.outer] if parts.inner is None else [parts.outer, parts.inner]
        ends = real_ends(loop.plant.poles(), laws)
        if within is None:
            margins = loop.measures()
            assert [float(getattr(margins, name)[0]) for name in FIGURES] == pytest.approx(
                sampled_reference(L, ends), rel=2e-6, abs=1e-7
            ), parts
            conditional += margins.gm[0] < np.inf and margins.gm_down[0] > 0.0
        else:
            w = np.geomspace(1e-3, 0.999 * np.pi / T, 50)
            np.testing.assert_allclose(loop.response(w), response(L, w), rtol=1e-6)
    assert structure not in STRUCTURES[:2] or conditional >= 2


def response(loop, w):
    A, B, C, D = loop
    z = np.exp(1j * w * T)
    return np.array([(C @ np.linalg.solve(p * np.eye(len(A)) - A, B))[0, 0] + D for p in z])


@pytest.mark.parametrize("structure", STRUCTURES[:3])
def test_noise_of_random_loops_is_that_of_the_lyapunov_equation(structure):
    for loop, _, K, G, _, _ in random_structures(structure, 10):
        A, B, C, D = fed_back(K, G)
        if np.abs(np.linalg.eigvals(A)).max() > 0.999:
            continue
        variance = float((C @ solve_discrete_lyapunov(A, B @ B.T) @ C.T)[0, 0] + D * D)
        assert loop.measures().noise_gain[0] == pytest.approx(np.sqrt(variance), rel=1e-6)


@pytest.mark.parametrize("structure", STRUCTURES[:3])
def test_peaks_are_those_of_a_dense_curve(structure):
    for loop, _, K, G, _, _ in random_structures(structure, 10):
        w = np.geomspace(1e-5, np.pi / T * (1.0 - 1e-9), 20_000)
        k, g = response(K, w[::10]), response(G, w[::10])
        L = loop.response(w)
        margins, (ks, gs) = loop.measures(), loop.sensitivity_peaks()
        assert margins.ms[0] == pytest.approx(np.abs(1.0 / (1.0 + L)).max(), rel=1e-4)
        assert margins.mt[0] == pytest.approx(max(np.abs(L / (1.0 + L)).max(), 0.0), rel=2e-4)
        assert ks >= np.abs(k / (1.0 + k * g)).max() * (1.0 - 1e-7)
        assert gs >= np.abs(g / (1.0 + k * g)).max() * (1.0 - 1e-7)
        assert ks == pytest.approx(np.abs(k / (1.0 + k * g)).max(), rel=2e-2)


def test_both_loops_of_a_cascade_have_the_margins_of_their_own():
    """The inner loop alone is K1 G1; the outer one sees the inner one closed: K2 K1r G / (1 + K1 G1)."""
    for loop, _, K, G, _, within in random_structures(with_inner_loop, 10):
        w = np.geomspace(1e-3, 0.999 * np.pi / T, 50)
        np.testing.assert_allclose(loop.inner().response(w), response(within, w), rtol=1e-6)
        expected = response(K, w) * response(G, w) / (1.0 + response(within, w))
        np.testing.assert_allclose(loop.outer_response(w), expected, rtol=1e-5)
        outer_loop = loop.outer_margins()
        if np.isfinite(outer_loop.gm[0]):
            assert limit_of(loop, outer_loop.gm[0])
        alone = loop.inner()
        stable = sampled_stable(closed(within))
        assert bool(alone.measures().stable[0]) == stable


def limit_of(loop, k):
    """Whether a factor k on the outer controller is the limit of stability."""

    def radius(factor):
        law = loop.structure.law
        scaled = law._replace(kp=law.kp * factor, ki=law.ki * factor, kd=law.kd * factor)
        scaled_loop = type(loop)(loop.plant, loop.structure._replace(law=scaled), loop.model)
        return np.abs(np.linalg.eigvals(scaled_loop.closed.M)).max()

    return radius(k * (1.0 - 1e-4)) < 1.0 < radius(k * (1.0 + 1e-4))
