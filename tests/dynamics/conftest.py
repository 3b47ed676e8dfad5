"""Systems with known solutions, and a cache of compiled systems that belongs to this run of the tests."""

import os

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import System, Variable
from designopt.dynamics.compile import find_compiler


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """The folder of compiled systems, empty at the beginning of the tests; their processes share it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled"
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DESIGNOPT_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def compiler():
    """The command of the C compiler; the test is skipped without."""
    command = find_compiler()
    if command is None:
        pytest.skip("no C compiler: Rosenbrock methods run compiled only")
    return command


def symbols(names):
    return [ca.SX.sym(name) for name in names.split()]


@pytest.fixture(scope="session")
def smooth():
    """Nonlinear, with explicit time; from (1/4, 1/16) at t = 0 the solution is a = 1/(1 + 3 exp(-sin t)), b = a^2."""
    a, b, k, t = symbols("a b k t")
    rate = a * (1 - a) * ca.cos(t)
    return System.from_expressions(
        "smooth",
        states=[(Variable("a", ""), a, rate), (Variable("b", ""), b, 2 * a * rate - k * (b - a**2))],
        parameters=[(Variable("k", ""), k)],
        outputs=[(Variable("sum", ""), a + b), (Variable("shifted", ""), a + t)],
        time=t,
    )


@pytest.fixture(scope="session")
def prothero_robinson():
    """x' = -stiffness (x - sin t) + cos t; Prothero & Robinson (1974): the solution from 0 is sin t."""
    x, stiffness, t = symbols("x stiffness t")
    return System.from_expressions(
        "prothero_robinson",
        states=[(Variable("x", ""), x, -stiffness * (x - ca.sin(t)) + ca.cos(t))],
        parameters=[(Variable("stiffness", "1/s"), stiffness)],
        time=t,
    )


@pytest.fixture(scope="session")
def van_der_pol():
    """VDPOL of Hairer & Wanner (1996), section IV.10: eps = 1e-6."""
    x, y, eps = symbols("x y eps")
    return System.from_expressions(
        "van_der_pol",
        states=[(Variable("x", ""), x, y), (Variable("y", ""), y, ((1 - x**2) * y - x) / eps)],
        parameters=[(Variable("eps", ""), eps)],
    )


@pytest.fixture(scope="session")
def robertson():
    """ROBER of Hairer & Wanner (1996), section IV.10: Robertson's chemical reaction."""
    a, b, c = symbols("a b c")
    slow, fast, back = 0.04 * a, 3e7 * b**2, 1e4 * b * c
    return System.from_expressions(
        "robertson",
        states=[
            (Variable("a", ""), a, -slow + back),
            (Variable("b", ""), b, slow - back - fast),
            (Variable("c", ""), c, fast),
        ],
    )


@pytest.fixture(scope="session")
def falling():
    """A mass falls from a height; the guard `ground` closes at height 0, `fast` at a speed of `limit`."""
    height, speed, gravity, limit = symbols("height speed gravity limit")
    return System.from_expressions(
        "falling",
        states=[(Variable("height", "m"), height, speed), (Variable("speed", "m/s"), speed, -gravity)],
        parameters=[(Variable("gravity", "m/s^2"), gravity), (Variable("limit", "m/s"), limit)],
        outputs=[(Variable("energy", "J/kg"), gravity * height + speed**2 / 2)],
        guards={"ground": height, "fast": limit + speed},
    )


def smooth_solution(t):
    a = 1 / (1 + 3 * np.exp(-np.sin(t)))
    return np.column_stack([a, a**2])


@pytest.fixture(scope="session")
def smooth_exact():
    """Solution (n, 2) of `smooth` at times (n,)."""
    return smooth_solution
