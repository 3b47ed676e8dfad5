"""The swing-up of the cart-pole as Moco and designopt solve it: numbers, equations and reference optima.

M. Kelly, "An introduction to trajectory optimization", SIAM Review 59 (2017) 849-904, section 6. The states are the
cart's position q1, the pole's angle q2 (zero hangs down) and their rates v1 and v2; the control is the force u on the
cart. From rest at 0 m, hanging, to rest at 1 m, upright, in 2 s; minimise the integral of u^2.

The guess is the same for both: states on the straight line from start to end, rates and control zero.
"""

import math

CART_MASS, POLE_MASS, LENGTH, GRAVITY = 1.0, 0.3, 0.5, 9.81
DURATION = 2.0
FORCE_LIMIT, TRACK_LIMIT = 20.0, 2.0
START = {"q1": 0.0, "q2": 0.0, "v1": 0.0, "v2": 0.0}
END = {"q1": 1.0, "q2": math.pi, "v1": 0.0, "v2": 0.0}
GUESS = "straight line from start to end, rates and control zero"


def accelerations(q2, v2, u, sin, cos):
    """Accelerations of cart and pole [Kelly, eq. 6.1 and 6.2] in the arithmetic of `sin` and `cos`."""
    s, c = sin(q2), cos(q2)
    inertia = CART_MASS + POLE_MASS * s**2
    cart = (LENGTH * POLE_MASS * s * v2**2 + u + POLE_MASS * GRAVITY * c * s) / inertia
    pole = -(LENGTH * POLE_MASS * c * s * v2**2 + u * c + (CART_MASS + POLE_MASS) * GRAVITY * s) / (LENGTH * inertia)
    return cart, pole
