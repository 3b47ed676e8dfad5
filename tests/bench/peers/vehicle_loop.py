"""The course manoeuvre of the tracked vehicle as somebody would write it for one vehicle, for SciPy and python-control.

Written from sections 2.3 to 4 of the specification in plain Python numbers, which are faster than arrays of five. Run:
``python vehicle_loop.py REPEATS`` prints one JSON line for python-control: for each manner of using it the seconds of a
run and the iae of each case.
"""

from __future__ import annotations

import json
import math
import sys
import time

T, SAMPLES, DELAY = 0.05, 600, 4
STEP_AT, LOAD_AT = 20, 300  # samples
TURN = math.radians(20.0)
WEIGHT = 10_000.0 * 9.80665

#: f, mu_max and adhesion of section 2.2.
GROUND = {"paved": (0.04, 0.60, 0.75), "turf": (0.09, 0.90, 0.80), "snow_road": (0.06, 0.30, 0.25)}

A = {"kp": 1.5, "ti": 8.0, "td": 0.6, "tf": 0.1, "b": 1.0, "tt": 3.0}
B = {"kp": 0.8, "ti": 30.0, "td": 0.4, "tf": 0.1, "b": 0.8, "tt": 3.0}

#: (terrain, speed in m/s, controller): quick and slow, with and without clips.
CASES = (("paved", 5.0, A), ("snow_road", 5.0, A), ("turf", 2.0, B))


class Vehicle:
    """Motion under held commands, and the controllers that give them."""

    def __init__(self, terrain, speed, controller):
        self.f, self.mu, adhesion = GROUND[terrain]
        self.grip = 0.5 * adhesion * WEIGHT
        self.g, self.speed = controller, speed
        self.trim = (WEIGHT * self.f * math.tanh(speed / 0.05) + 2.2 * speed**2) / 60e3

    def start(self):
        """Speed, yaw rate, course, forces of left and right, integral of the absolute error."""
        return [self.speed, 0.0, 0.0, 30e3 * self.trim, 30e3 * self.trim, 0.0]

    def rates(self, _, z, left, right, moment, reference):
        v, r, psi, force_l, force_r, _ = z
        bound, grip = 75e3 / max(abs(v), 0.5), self.grip
        a_l, a_r = min(max(force_l, -grip), grip), min(max(force_r, -grip), grip)
        turning = self.mu * WEIGHT * 2.67 * 2.16 * r / (4.0 * (0.925 * 2.16 * abs(r) + 0.15 * abs(v) + 0.02))
        return [
            (a_l + a_r - WEIGHT * self.f * math.tanh(v / 0.05) - 2.2 * v * abs(v)) / 11_500.0,
            ((a_r - a_l) * 1.08 - turning + moment) / 32_000.0,
            r,
            (min(max(left, -bound), bound) - force_l) / 0.35,
            (min(max(right, -bound), bound) - force_r) / 0.35,
            abs(reference - psi),
        ]

    def memory(self):
        """Last course, derivative, integrals of course and speed, then the forces that are on their way."""
        return [0.0, 0.0, 0.0, self.trim] + [30e3 * self.trim] * (2 * DELAY)

    def commands(self, v, psi, reference, memory):
        """Left and right force that act in this sample, and the controllers' memory for the next one."""
        last, D, course_i, speed_i, *waiting = memory
        g = self.g
        raw_v = -0.55 * (v - self.speed) + speed_i
        u_v = min(1.0, max(-1.0, raw_v))
        a = g["tf"] / (g["tf"] + T)
        D = a * D - g["kp"] * g["td"] * (1.0 - a) / T * (psi - last)
        raw = g["kp"] * (g["b"] * reference - psi) + course_i + D
        u = min(1.0, max(-1.0, raw))
        waiting += [30e3 * min(1.0, max(-1.0, u_v - u)), 30e3 * min(1.0, max(-1.0, u_v + u))]
        speed_i += T * (0.55 / 4.0 * (self.speed - v) + (u_v - raw_v) / 2.0)
        course_i += T * (g["kp"] / g["ti"] * (reference - psi) + (u - raw) / g["tt"])
        return waiting[0], waiting[1], [psi, D, course_i, speed_i, *waiting[2:]]


def with_scipy(case, rtol, method="RK45"):
    """iae in s: `solve_ivp` begun again at every sample."""
    from scipy.integrate import solve_ivp

    vehicle = Vehicle(*case)
    z, memory = vehicle.start(), vehicle.memory()
    for k in range(SAMPLES):
        reference = TURN if k >= STEP_AT else 0.0
        left, right, memory = vehicle.commands(z[0], z[2], reference, memory)
        inputs = left, right, 6000.0 if k >= LOAD_AT else 0.0, reference
        z = solve_ivp(vehicle.rates, (0.0, T), z, method, args=inputs, rtol=rtol, atol=1e-2 * rtol).y[:, -1].tolist()
    return z[5] / TURN


def with_control(case, steps):
    """iae in s: the loop as a discrete-time system of python-control, which integrates each sample by Runge-Kutta."""
    import control
    import numpy as np

    vehicle = Vehicle(*case)
    h = T / steps

    def update(_, x, u, params):
        z, memory, reference = x[:6].tolist(), x[6:].tolist(), float(u[0])
        left, right, memory = vehicle.commands(z[0], z[2], reference, memory)
        inputs = left, right, float(u[1]), reference
        for _ in range(steps):
            k1 = vehicle.rates(0.0, z, *inputs)
            k2 = vehicle.rates(0.0, [a + 0.5 * h * b for a, b in zip(z, k1)], *inputs)  # noqa: B905
            k3 = vehicle.rates(0.0, [a + 0.5 * h * b for a, b in zip(z, k2)], *inputs)  # noqa: B905
            k4 = vehicle.rates(0.0, [a + h * b for a, b in zip(z, k3)], *inputs)  # noqa: B905
            z = [a + h / 6.0 * (b + 2.0 * (c + d) + e) for a, b, c, d, e in zip(z, k1, k2, k3, k4)]  # noqa: B905
        return [*z, *memory]

    size = 6 + 4 + 2 * DELAY
    system = control.nlsys(update, lambda t, x, u, params: x[5:6], inputs=2, outputs=1, states=size, dt=T)
    k = np.arange(SAMPLES + 1)
    signals = np.stack([np.where(k >= STEP_AT, TURN, 0.0), np.where(k >= LOAD_AT, 6000.0, 0.0)])
    start = [*vehicle.start(), *vehicle.memory()]
    return float(control.input_output_response(system, k * T, signals, start).states[5, -1]) / TURN


def with_control_begun_again(case, rtol):
    """iae in s: `input_output_response` of the continuous vehicle, begun again at every sample."""
    import control
    import numpy as np

    vehicle = Vehicle(*case)
    system = control.nlsys(
        lambda t, x, u, params: vehicle.rates(t, x.tolist(), *u.tolist()), None, inputs=4, outputs=6, states=6
    )
    z, memory = vehicle.start(), vehicle.memory()
    for k in range(SAMPLES):
        reference = TURN if k >= STEP_AT else 0.0
        left, right, memory = vehicle.commands(z[0], z[2], reference, memory)
        inputs = np.array([[left], [right], [6000.0 if k >= LOAD_AT else 0.0], [reference]]).repeat(2, axis=1)
        response = control.input_output_response(
            system, [0.0, T], inputs, z, solve_ivp_kwargs={"rtol": rtol, "atol": 1e-2 * rtol}
        )
        z = response.states[:, -1].tolist()
    return z[5] / TURN


#: The coarsest settings with errors below a share of 1e-5 of the iae in all cases.
COARSEST_STEPS = 1
COARSEST_TOLERANCE = 1e-4


def timed(run, repeats):
    """Median processor seconds of a run over the cases, and the iae of each."""
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        iae = [run(case) for case in CASES]
        seconds.append((time.process_time() - began) / len(CASES))
    return sorted(seconds)[repeats // 2], iae


if __name__ == "__main__":
    import control  # noqa: F401  what is imported once is not timed

    repeats = int(sys.argv[1])
    print(
        json.dumps(
            {
                "discrete": timed(lambda case: with_control(case, COARSEST_STEPS), repeats),
                "begun again": timed(lambda case: with_control_begun_again(case, COARSEST_TOLERANCE), 1),
            }
        )
    )
