"""The leg in the paper's seven coordinates with multipliers, in plain NumPy: an oracle for the minimal form.

q = (x, y, alpha1, alpha11, thetaA, thetaB, beta1); hip and thigh (first three) are driven, the others respond. M, C, N
and the contact Jacobian are those of the paper's appendix A (Lü et al. 2020) with its misprints corrected and the mass
of the shank entered everywhere. Every centre of mass is the hip plus a sum of ``c u(q_i + offset)``, so that

    M_ij = sum over bodies and pairs of terms of  m c_a c_b cos(q_i + o_a - q_j - o_b),
    C_ij = sum over bodies and pairs of terms of  m c_a c_b sin(q_i + o_a - q_j - o_b) q_j'.

Nothing here is shared with designopt_knee.equations but the parameter values and the gait's coefficients.
"""

from collections.abc import Mapping

import numpy as np

ALPHA1, ALPHA11, THETA_A, THETA_B, BETA1 = 2, 3, 4, 5, 6
BAUMGARTE = 50.0  # 1/s
THIGH = {"m_t": 7.0, "I_t": 0.12, "m_BE": 0.3, "I_BE": 3e-4}  # any: the thigh is driven


class SevenCoordinates:
    """The leg with the parameters `g` (`designopt_knee.parameters.EQUATION_PARAMETERS` by name) on a recorded gait."""

    def __init__(self, g: Mapping[str, float], gait, *, smoothing: str = "tanh", as_printed: bool = False) -> None:
        self.g = g
        self.omega = 2.0 * np.pi / gait.period
        self.belt_speed = gait.belt_speed
        names = ("hip_x", "hip_y", "thigh", "ankle")
        self.series = np.array([gait.coefficients[n] for n in names])
        self.series[1] *= g["hip_hike"]
        self.order = np.arange(1, gait.harmonics + 1)
        self.step = (
            (lambda s: 0.5 * (1.0 + np.tanh(s))) if smoothing == "tanh" else (lambda s: 0.5 + np.arctan(s) / np.pi)
        )
        g1, g2, sole = g["upper_body_angle"], g["lower_body_angle"], 0.5 * np.pi
        e = [(g["thigh_length"], ALPHA1, 0.0)]
        a = [*e, (-g["ae_length"], ALPHA1, g1)]
        b = [*a, (-g["ab_length"], ALPHA1, g1)]
        d = [*a, (g["ad_length"], THETA_A, 0.0)]
        f = [*d, (-g["df_length"], ALPHA11, g2)]
        ankle = [*f, (g["shank_length"], ALPHA11, 0.0)]
        length, heel = g["foot_length"], g["heel_fraction"]
        self.heel = [*ankle, (-heel * length, BETA1, sole)]
        self.toe = [*ankle, ((1.0 - heel) * length, BETA1, sole)]
        shank = [*f, (0.5 * g["shank_length"], ALPHA11, 0.0)]
        self.bodies = [
            (THIGH["m_t"], THIGH["I_t"], [(0.5 * g["thigh_length"], ALPHA1, 0.0)], ALPHA1, True),
            (THIGH["m_BE"], THIGH["I_BE"], [*e, (-0.5 * (g["ae_length"] + g["ab_length"]), ALPHA1, g1)], ALPHA1, True),
            (g["ad_mass"], g["ad_inertia"], [*a, (0.5 * g["ad_length"], THETA_A, 0.0)], THETA_A, True),
            (g["bc_mass"], g["bc_inertia"], [*b, (0.5 * g["bc_length"], THETA_B, 0.0)], THETA_B, True),
            (g["cd_mass"], g["cd_inertia"], [*d, (-0.5 * g["cd_length"], ALPHA11, g2)], ALPHA11, True),
            (g["shank_mass"], g["shank_inertia"], shank, ALPHA11, True),
            (g["foot_mass"], g["foot_inertia"], [*ankle, ((0.5 - heel) * length, BETA1, sole)], BETA1, True),
        ]
        if as_printed:  # the shank hangs from a fixed point: M44 and N41 alone hold its mass
            fixed = [(0.5 * g["shank_length"], ALPHA11, 0.0)]
            self.bodies[5] = (g["shank_mass"], g["shank_inertia"], fixed, ALPHA11, False)

    def driven(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """q1, q1', q1'' and the recorded ankle angle at time `t`."""
        angle = self.order * (self.omega * t)
        c, s, w = np.cos(angle), np.sin(angle), self.order * self.omega
        a, b = self.series[:, 1::2], self.series[:, 2::2]
        value = self.series[:, 0] + a @ c + b @ s
        rate = b @ (w * c) - a @ (w * s)
        second = -(a @ (w * w * c) + b @ (w * w * s))
        value[0] += self.belt_speed * t
        rate[0] += self.belt_speed
        return value[:3], rate[:3], second[:3], float(value[3])

    def matrices(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """M(q) (7, 7), C(q, q') (7, 7) and N(q) (7,)."""
        M, C, N = np.zeros((7, 7)), np.zeros((7, 7)), np.zeros(7)
        for mass, inertia, terms, turns, hangs_on_hip in self.bodies:
            M[turns, turns] += inertia
            if hangs_on_hip:
                M[0, 0] += mass
                M[1, 1] += mass
                N[1] += mass * self.g["gravity"]
            for ca, i, oa in terms:
                x, y = mass * ca * np.cos(q[i] + oa), mass * ca * np.sin(q[i] + oa)
                N[i] += self.g["gravity"] * y
                if hangs_on_hip:
                    M[0, i] += x
                    M[i, 0] += x
                    M[1, i] += y
                    M[i, 1] += y
                    C[0, i] -= y * v[i]
                    C[1, i] += x * v[i]
                for cb, j, ob in terms:
                    between = q[i] + oa - q[j] - ob
                    M[i, j] += mass * ca * cb * np.cos(between)
                    C[i, j] += mass * ca * cb * np.sin(between) * v[j]
        return M, C, N

    def point(self, terms: list, q: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Height of a point, and the gradients of its x and y in q."""
        height, jx, jy = q[1], np.zeros(7), np.zeros(7)
        jx[0] = jy[1] = 1.0
        for c, i, o in terms:
            jx[i] += c * np.cos(q[i] + o)
            jy[i] += c * np.sin(q[i] + o)
            height -= c * np.cos(q[i] + o)
        return height, jx, jy

    def closure(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(1), (2): xi (2,), its gradient Phi (2, 7), and Phi' q' (2,)."""
        g = self.g
        xi, phi, bias = np.zeros(2), np.zeros((2, 7)), np.zeros(2)
        for c, i, o in (
            (g["ad_length"], THETA_A, 0.0),
            (-g["cd_length"], ALPHA11, g["lower_body_angle"]),
            (g["ab_length"], ALPHA1, g["upper_body_angle"]),
            (-g["bc_length"], THETA_B, 0.0),
        ):
            s, k = c * np.sin(q[i] + o), c * np.cos(q[i] + o)
            xi += (s, k)
            phi[0, i] += k
            phi[1, i] -= s
            bias -= np.array([s, k]) * v[i] ** 2
        return xi, phi, bias

    def forces(self, q: np.ndarray, v: np.ndarray, ankle0: float) -> np.ndarray:
        """F_e + F_q, (14) and (15)."""
        g, force = self.g, np.zeros(7)
        for terms in (self.heel, self.toe):
            height, jx, jy = self.point(terms, q)
            normal = -g["ground_stiffness"] * height - g["ground_damping"] * (jy @ v)
            normal *= self.step(-g["ground_sharpness"] * height)
            force += jy * normal - jx * g["friction"] * normal * np.tanh(g["friction_sharpness"] * (jx @ v))
        eta, eta1 = q[THETA_B] - q[ALPHA1], v[THETA_B] - v[ALPHA1]
        depth, depth1 = g["stop_lever"] * np.sin(eta), g["stop_lever"] * np.cos(eta) * eta1
        stop = (g["stop_stiffness"] * depth + g["stop_damping"] * depth1) * self.step(g["stop_sharpness"] * depth)
        moment = stop * g["stop_lever"] * np.cos(eta)
        force[THETA_B] -= moment
        force[ALPHA1] += moment
        a, b = g["damper_upper_lever"], g["damper_lower_lever"]
        theta1 = 0.5 * np.pi - q[ALPHA1] + q[THETA_A]
        length = np.sqrt(a * a + b * b - 2.0 * a * b * np.cos(theta1 + g["damper_phase"]))
        arm = a * b * np.sin(theta1 + g["damper_phase"]) / length
        rate = arm * (v[THETA_A] - v[ALPHA1])
        tau = -arm * (g["stiffness"] * (length - g["damper_rest_length"]) + g["damping"] * rate)
        force[THETA_A] += tau
        force[ALPHA1] -= tau
        ankle = -g["ankle_stiffness"] * (q[BETA1] - q[ALPHA11] - ankle0)
        ankle -= g["ankle_damping"] * (v[BETA1] - v[ALPHA11])
        force[BETA1] += ankle
        force[ALPHA11] -= ankle
        return force

    def accelerations(self, t: float, q2: np.ndarray, v2: np.ndarray) -> np.ndarray:
        """q2'' (4,): (20) with the multipliers (21) and a Baumgarte term."""
        q1, v1, a1, ankle0 = self.driven(t)
        q, v = np.concatenate([q1, q2]), np.concatenate([v1, v2])
        M, C, N = self.matrices(q, v)
        xi, phi, bias = self.closure(q, v)
        h = (self.forces(q, v, ankle0) - C @ v - N)[3:] - M[3:, :3] @ a1
        phi1, phi2 = phi[:, :3], phi[:, 3:]
        bias = bias + 2.0 * BAUMGARTE * (phi @ v) + BAUMGARTE**2 * xi
        free = np.linalg.solve(M[3:, 3:], np.column_stack([h, phi2.T]))
        multipliers = -np.linalg.solve(phi2 @ free[:, 1:], phi2 @ free[:, 0] + phi1 @ a1 + bias)
        return free[:, 0] + free[:, 1:] @ multipliers

    def rhs(self, t: float, state: np.ndarray) -> np.ndarray:
        """(22): state (q2, q2') (8,)."""
        return np.concatenate([state[4:], self.accelerations(t, state[:4], state[4:])])

    def consistent(self, t: float, eta: float, beta1: float, eta1: float, beta11: float) -> np.ndarray:
        """The state (8,) on the closure, on the branch of the knee, that has these minimal coordinates and rates."""
        q1, v1, _, _ = self.driven(t)
        alpha1, theta_b = q1[2], q1[2] + eta
        g = self.g
        # C in the frame of A: two circles meet in D, the one in front is the knee's branch.
        up = alpha1 + g["upper_body_angle"]
        c = np.array([-g["ab_length"] * np.sin(up), g["ab_length"] * np.cos(up)])
        c = c + g["bc_length"] * np.array([np.sin(theta_b), -np.cos(theta_b)])
        r = np.hypot(*c)
        near = (g["ad_length"] ** 2 + r**2 - g["cd_length"] ** 2) / (2.0 * r)
        d = near * c / r + np.sqrt(g["ad_length"] ** 2 - near**2) * np.array([-c[1], c[0]]) / r
        theta_a = alpha1 + np.angle(np.exp(1j * (np.arctan2(d[0], -d[1]) - alpha1)))
        alpha11 = np.arctan2(d[0] - c[0], c[1] - d[1]) - g["lower_body_angle"]
        q = np.concatenate([q1, [alpha11, theta_a, theta_b, beta1]])
        v = np.concatenate([v1, [0.0, 0.0, v1[2] + eta1, beta11]])
        _, phi, _ = self.closure(q, v)
        v[[ALPHA11, THETA_A]] = np.linalg.solve(phi[:, [ALPHA11, THETA_A]], -phi @ v)
        return np.concatenate([q[3:], v[3:]])
