"""Random loops as one state space of the open loop, and their margins by a scan, bisection and eigenvalues.

L = C (p - A)^-1 B + D with p = exp(j w T) or j w: crossings by a scan of 3000 frequencies and bisection, stability for
a factor k on the gain by the eigenvalues of A - k B (1 + k D)^-1 C. A gain margin is a factor at which they pass the
limit of stability.
"""

import numpy as np
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


def series(second, first):
    """State space of one behind the other, both (A, B, C, D)."""
    (A, B, C, D), (E, F, G, H) = second, first
    top = np.concatenate([A, B @ G], axis=1)
    bottom = np.concatenate([np.zeros((len(E), len(A))), E], axis=1)
    return (
        np.concatenate([top, bottom]), np.concatenate([B * H, F]), np.concatenate([C, D * G], axis=1), D * H
    )  # fmt: skip


def together(first, second, sign=1.0):
    """Side by side, the outputs added."""
    return (
        block_diag(first[0], second[0]), np.concatenate([first[1], second[1]]),
        np.concatenate([first[2], sign * second[2]], axis=1), first[3] + sign * second[3],
    )  # fmt: skip


def fed_back(forward, back):
    """``forward / (1 + back forward)``."""
    (A, B, C, D), (E, F, G, H) = forward, back
    one = 1.0 / (1.0 + H * D)
    return (
        np.block([[A - B @ C * (H * one), -B @ G * one], [F @ C * one, E - F @ G * (D * one)]]),
        np.concatenate([B * one, F * (D * one)]),
        np.concatenate([C * one, -G * (D * one)], axis=1),
        D * one,
    )


def late(samples):
    """A delay of whole samples."""
    if samples == 0:
        return np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), 1.0
    return np.eye(samples, k=-1), np.eye(samples)[:, :1], np.eye(samples)[-1:], 0.0


def closed(loop, k=1.0):
    """The matrix of the loop closed with a factor k on its gain."""
    A, B, C, D = loop
    return A - k / (1.0 + k * D) * B @ C


def biproper(top, bottom):
    """The controllable form of a transfer function whose numerator may have the degree of the denominator."""
    top = np.concatenate([np.zeros(len(bottom) - len(top)), np.atleast_1d(top)])
    direct = top[0] / bottom[0]
    A, B, C = companion((top - direct * np.asarray(bottom))[1:], bottom)
    return A, B, C, direct


def sampled_open_loop(top, bottom, delay):
    """Held plant, `delay` samples, and the controller of settings."""
    plant = sampled_plant(top, bottom, delay)
    return lambda s: series(plant, sampled_controller(s))


def sampled_plant(top, bottom, delay):
    """Held, measured just before the input changes; what passes at once is seen a sample later than the command."""
    A, B, C, D = biproper(top, bottom)
    A, B, *_ = cont2discrete((A, B, C, [[0.0]]), T)
    plant = (A, B, C, 0.0)
    if D != 0.0:
        plant = together(plant, series((np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), D), late(1)))
    return series(plant, late(delay))


def sampled_controller(s):
    """kp (1 + (T/ti)/(z - 1) + td (z - 1)/((tf + T) z - tf))."""
    a, fast = s["tf"] / (s["tf"] + T), s["td"] / (s["tf"] + T)
    parts = [(1.0, T / s["ti"], 1.0)] if np.isfinite(s["ti"]) else []
    parts += [(a, 1.0, fast * (a - 1.0))] if s["td"] > 0.0 else []
    return parallel(parts, s["kp"], 1.0 + fast)


def continuous_open_loop(top, bottom, _):
    plant = biproper(top, bottom)

    def loop(s):
        parts = [(0.0, 1.0 / s["ti"], 1.0)] if np.isfinite(s["ti"]) else []
        parts += [(-1.0 / s["tf"], 1.0 / s["tf"], -s["td"] / s["tf"])] if s["td"] > 0.0 else []
        return series(plant, parallel(parts, s["kp"], 1.0 + s["td"] / s["tf"]))

    return loop


def random_biproper(rng):
    """A plant that passes a share of its input at once."""
    _, bottom = random_plant(rng)
    zeros = rng.uniform(-5.0, -0.1, len(bottom) - 1)
    return rng.choice([-1.0, 1.0]) * rng.uniform(0.05, 2.0) * np.poly(zeros), bottom


def parallel(parts, gain, direct):
    """State space of first-order parts (pole, input, output) side by side."""
    n = len(parts)
    A = block_diag(*([[p] for p, _, _ in parts])) if n else np.zeros((0, 0))
    B, C = np.array([b for _, b, _ in parts]).reshape(n, 1), np.array([c for _, _, c in parts]).reshape(1, n)
    return A, B, gain * C, gain * direct


def reference(loop, point, w, ends, stable):
    """Gain margins up and down, phase margin, delay margin, crossover; `ends` are points where L is real besides."""
    A, B, C, D = loop

    def L(w):
        p = np.atleast_1d(point(w))
        inner = np.linalg.solve(p[:, None, None] * np.eye(len(A)) - A, np.broadcast_to(B, (len(p), *B.shape)))
        return (C @ inner)[:, 0, 0] + D

    response = L(w)

    def zeros(function):
        values = function(response)
        return [
            brentq(lambda x: float(function(L(np.exp(x)))[0]), np.log(w[i]), np.log(w[i + 1]), xtol=1e-14)
            for i in np.flatnonzero((values[:-1] > 0.0) != (values[1:] > 0.0))
        ]

    real = [float(L(np.exp(x))[0].real) for x in zeros(np.imag)]
    real += [float((C @ np.linalg.solve(p * np.eye(len(A)) - A, B))[0, 0] + D) for p in ends if np.isfinite(p)]
    real += [float(D) for p in ends if np.isinf(p)]
    factors = [-1.0 / v for v in real if -1e6 < v < 0.0]
    bounds = [k for k in factors if stable(closed(loop, k * (1.0 - 1e-5))) != stable(closed(loop, k * (1.0 + 1e-5)))]
    up, down = min((k for k in bounds if k > 1.0), default=np.inf), max((k for k in bounds if k < 1.0), default=0.0)
    ones = np.exp(zeros(lambda v: np.abs(v) - 1.0))
    ahead = [(one, float(np.angle(-L(one))[0])) for one in ones]
    phase = min((abs(angle) for _, angle in ahead), default=np.inf)
    delay = min(((angle if angle > 0.0 else angle + 2.0 * np.pi) / one for one, angle in ahead), default=np.inf)
    return up, down, phase, delay, max(ones, default=0.0)


def random_loops(seed, count, open_loop, stable, plants=random_plant):
    """Random plants with settings that keep them stable, a third of them open-loop unstable."""
    rng, left = np.random.default_rng(seed), {True: count // 3, False: count - count // 3}
    while any(left.values()):
        top, bottom = plants(rng)
        unstable = bool((np.roots(bottom).real > 1e-9).any())
        delay = int(rng.integers(0, 4))
        loop = open_loop(top, bottom, delay)
        for _ in range(30 if left[unstable] else 0):
            s = random_settings(rng)
            if stable(closed(loop(s))):
                left[unstable] -= 1
                yield top, bottom, delay, s, loop(s), unstable
                break


def sampled_stable(A):
    return bool(np.abs(np.linalg.eigvals(A)).max() < 1.0)


def sampled_reference(loop, ends):
    """`reference` of a sampled loop; `ends` are values of z at which it is real besides."""
    w = np.geomspace(1e-5, np.pi / T * (1.0 - 1e-9), 3_000)
    return reference(loop, lambda w: np.exp(1j * w * T), w, ends, sampled_stable)
