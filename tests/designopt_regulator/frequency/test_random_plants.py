"""Margins of random loops, unstable and conditionally stable ones included, against an independent computation.

The reference is one state space of the open loop, L = C (p - A)^-1 B with p = exp(j w T) or j w: crossings by a scan of
3000 frequencies and bisection, stability for a factor k on the gain by the eigenvalues of A - k B C. A gain margin is
a factor at which these eigenvalues pass the limit of stability.
"""

import numpy as np
import pytest
from designopt_regulator.controllers.pid import pid
from designopt_regulator.frequency.sampled_loop import measures
from designopt_regulator.linear_loop.continuous import Loop, loop_margins
from designopt_regulator.plants.linear import transfer_function
from scipy.linalg import block_diag
from scipy.optimize import brentq
from scipy.signal import cont2discrete

T = 0.1
FIGURES = ("gm", "gm_down", "pm", "delay_margin", "crossover")


def random_plant(rng):
    """Numerator and denominator in s: up to six poles, some unstable, some in pairs, and up to two zeros."""
    poles = []
    for _ in range(rng.integers(1, 4)):
        size, side = 10.0 ** rng.uniform(-1.0, 0.7), rng.choice([-1.0, -1.0, 1.0])
        if rng.random() < 0.35:
            damping = rng.uniform(0.1, 0.9)
            pair = size * complex(side * damping, np.sqrt(1.0 - damping**2))
            poles += [pair, np.conj(pair)]
        else:
            poles.append(0.0 if rng.random() < 0.15 else side * size)
    zeros = [-(10.0 ** rng.uniform(-1.0, 0.7)) for _ in range(rng.integers(0, min(len(poles), 3)))]
    return rng.choice([1.0, 1.0, -1.0]) * np.atleast_1d(np.real(np.poly(zeros))), np.real(np.poly(poles))


def random_settings(rng):
    return {
        "kp": 10.0 ** rng.uniform(-1.0, 1.5),
        "ti": np.inf if rng.random() < 0.5 else 10.0 ** rng.uniform(-0.5, 1.5),
        "td": 0.0 if rng.random() < 0.3 else 10.0 ** rng.uniform(-1.5, 0.7),
        "tf": 10.0 ** rng.uniform(-2.0, -0.5),
    }


def companion(top, bottom):
    """The controllable form of a strictly proper transfer function."""
    n = len(bottom) - 1
    A = np.diag(np.ones(n - 1), 1)
    A[-1] = -bottom[:0:-1] / bottom[0]
    C = np.zeros(n)
    C[: len(top)] = top[::-1] / bottom[0]
    return A, np.eye(n)[:, -1:], C[None]


def series(plant, regulator):
    """State space of the plant behind the regulator, which may act at once."""
    (A, B, C), (E, F, G, H) = plant, regulator
    top = np.concatenate([A, B @ G], axis=1)
    bottom = np.concatenate([np.zeros((len(E), len(A))), E], axis=1)
    return np.concatenate([top, bottom]), np.concatenate([B * H, F]), np.concatenate([C, np.zeros((1, len(E)))], axis=1)


def sampled_open_loop(top, bottom, delay):
    """Held plant, `delay` samples, and kp (1 + (T/ti)/(z - 1) + td (z - 1)/((tf + T) z - tf)) of settings."""
    A, B, C = companion(top, bottom)
    A, B, *_ = cont2discrete((A, B, C, [[0.0]]), T)
    if delay:
        late = np.eye(delay, k=-1)
        A, B, C = series((A, B, C), (late, np.eye(delay)[:, :1], np.eye(delay)[-1:], 0.0))

    def loop(s):
        a, fast = s["tf"] / (s["tf"] + T), s["td"] / (s["tf"] + T)
        parts = [(1.0, T / s["ti"], 1.0)] if np.isfinite(s["ti"]) else []
        parts += [(a, 1.0, fast * (a - 1.0))] if s["td"] > 0.0 else []
        return series((A, B, C), parallel(parts, s["kp"], 1.0 + fast))

    return loop


def continuous_open_loop(top, bottom, _):
    plant = companion(top, bottom)

    def loop(s):
        parts = [(0.0, 1.0 / s["ti"], 1.0)] if np.isfinite(s["ti"]) else []
        parts += [(-1.0 / s["tf"], 1.0 / s["tf"], -s["td"] / s["tf"])] if s["td"] > 0.0 else []
        return series(plant, parallel(parts, s["kp"], 1.0 + s["td"] / s["tf"]))

    return loop


def parallel(parts, gain, direct):
    """State space of first-order parts (pole, input, output) side by side."""
    n = len(parts)
    A = block_diag(*([[p] for p, _, _ in parts])) if n else np.zeros((0, 0))
    B, C = np.array([b for _, b, _ in parts]).reshape(n, 1), np.array([c for _, _, c in parts]).reshape(1, n)
    return A, B, gain * C, gain * direct


def reference(loop, point, w, ends, stable):
    """Gain margins up and down, phase margin, delay margin, crossover; `ends` are points where L is real besides."""
    A, B, C = loop

    def L(w):
        p = np.atleast_1d(point(w))
        return (C @ np.linalg.solve(p[:, None, None] * np.eye(len(A)) - A, np.broadcast_to(B, (len(p), *B.shape))))[
            :, 0, 0
        ]

    response = L(w)

    def zeros(function):
        values = function(response)
        return [
            brentq(lambda x: float(function(L(np.exp(x)))[0]), np.log(w[i]), np.log(w[i + 1]), xtol=1e-14)
            for i in np.flatnonzero((values[:-1] > 0.0) != (values[1:] > 0.0))
        ]

    real = [float(L(np.exp(x))[0].real) for x in zeros(np.imag)]
    real += [float((C @ np.linalg.solve(p * np.eye(len(A)) - A, B))[0, 0]) for p in ends]
    factors = [-1.0 / v for v in real if -1e6 < v < 0.0]
    bounds = [k for k in factors if stable(A - k * (1.0 - 1e-5) * B @ C) != stable(A - k * (1.0 + 1e-5) * B @ C)]
    up, down = min((k for k in bounds if k > 1.0), default=np.inf), max((k for k in bounds if k < 1.0), default=0.0)
    ones = np.exp(zeros(lambda v: np.abs(v) - 1.0))
    ahead = [(one, float(np.angle(-L(one))[0])) for one in ones]
    phase = min((abs(angle) for _, angle in ahead), default=np.inf)
    delay = min(((angle if angle > 0.0 else angle + 2.0 * np.pi) / one for one, angle in ahead), default=np.inf)
    return up, down, phase, delay, max(ones, default=0.0)


def random_loops(seed, count, open_loop, stable):
    """Random plants with settings that keep them stable, a third of them open-loop unstable."""
    rng, left = np.random.default_rng(seed), {True: count // 3, False: count - count // 3}
    while any(left.values()):
        top, bottom = random_plant(rng)
        unstable = bool((np.roots(bottom).real > 1e-9).any())
        delay = int(rng.integers(0, 4))
        loop = open_loop(top, bottom, delay)
        for _ in range(30 if left[unstable] else 0):
            s = random_settings(rng)
            A, B, C = loop(s)
            if stable(A - B @ C):
                left[unstable] -= 1
                yield top, bottom, delay, s, (A, B, C), unstable
                break


def test_margins_of_200_random_sampled_loops_agree_with_the_reference():
    def stable(A):
        return bool(np.abs(np.linalg.eigvals(A)).max() < 1.0)

    w, conditional, unstable = np.geomspace(1e-5, np.pi / T * (1.0 - 1e-9), 3_000), 0, 0
    for top, bottom, delay, s, loop, open_unstable in random_loops(12, 200, sampled_open_loop, stable):
        plant = transfer_function(top, bottom)
        found = measures(plant.A[None], plant.B[None], plant.C[None], delay, pid(**s, sample_time=T), T)
        ends = [-1.0] + [1.0] * bool(np.isinf(s["ti"]) and bottom[-1] != 0.0)
        expected = reference(loop, lambda w: np.exp(1j * w * T), w, ends, stable)
        seen = tuple(float(getattr(found, name)[0]) for name in FIGURES)
        assert seen == pytest.approx(expected, rel=1e-6, abs=1e-7), (top, bottom, delay, s)
        conditional += seen[0] < np.inf and seen[1] > 0.0
        unstable += open_unstable
    assert unstable >= 60
    assert conditional >= 60


def test_margins_of_random_continuous_loops_agree_with_the_reference():
    def stable(A):
        return bool(np.linalg.eigvals(A).real.max() < 0.0)

    w = np.geomspace(1e-5, 1e4, 3_000)
    for top, bottom, _, s, loop, _ in random_loops(3, 60, continuous_open_loop, stable):
        (found,) = loop_margins([Loop(transfer_function(top, bottom), **s)])
        ends = [0.0] * bool(np.isinf(s["ti"]) and bottom[-1] != 0.0)
        expected = reference(loop, lambda w: 1j * w, w, ends, stable)
        assert tuple(float(getattr(found, name)[0]) for name in FIGURES) == pytest.approx(
            expected, rel=1e-6, abs=1e-7
        ), (top, bottom, s)


def test_a_loop_that_less_gain_makes_unstable_says_so():
    """kp (1 + s) / (s^2 - 9.81) is stable for kp above 9.81: at kp 10 a factor of 0.981 on the gain is too little."""
    (found,) = loop_margins([Loop(transfer_function([1.0], [1.0, 0.0, -9.81]), 10.0, td=1.0)])
    assert found is not None
    assert found.gm_down == pytest.approx([0.981], rel=1e-9)
    assert found.gm == pytest.approx([np.inf])
