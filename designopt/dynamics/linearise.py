"""Exact linearisation of a system about a point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.arrays import Floats
from designopt.dynamics.residual import ResidualForm
from designopt.dynamics.system import System
from designopt.lazy import casadi as ca

#: Tables of a system whose names a linearisation contains.
_NAMED = ("states", "controls", "outputs", "parameters", "data")


@dataclass(frozen=True, eq=False)
class Linearisation:
    """``d(xdot) = A dx + B du + P dp + Q dq`` and ``dy = C dx + D du`` about a point where xdot is `rates`.

    Shapes: A (nx, nx), B (nx, nu), P (nx, np), Q (nx, nq), C (ny, nx), D (ny, nu), `rates` (nx,). Algebraic variables
    are eliminated. `states`, `controls`, `outputs`, `parameters` and `data` name rows and columns.
    """

    A: NDArray[np.float64]
    B: NDArray[np.float64]
    C: NDArray[np.float64]
    D: NDArray[np.float64]
    P: NDArray[np.float64]
    Q: NDArray[np.float64]
    rates: NDArray[np.float64]
    states: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes of the free motion, slowest first; one for each conjugate pair of eigenvalues."""
        values = [complex(v) for v in np.linalg.eigvals(self.A) if v.imag >= 0.0]
        return tuple(Mode(v) for v in sorted(values, key=lambda v: (abs(v), v.real)))

    @property
    def stable(self) -> bool:
        """Whether every mode decays."""
        return all(mode.eigenvalue.real < 0.0 for mode in self.modes)

    def __str__(self) -> str:
        return "\n".join([f"{'eigenvalue (1/s)':<22}{'frequency (Hz)':<16}damping ratio", *map(str, self.modes)])


@dataclass(frozen=True)
class Mode:
    """A mode exp(s t) of a linear motion by its `eigenvalue` s (1/s)."""

    eigenvalue: complex

    @property
    def frequency(self) -> float:
        """The natural frequency |s| / 2 pi (Hz)."""
        return abs(self.eigenvalue) / (2.0 * math.pi)

    @property
    def damping_ratio(self) -> float:
        """-Re s / |s|: 1 does not oscillate, below 0 grows; 0 for s = 0, which neither grows nor decays."""
        size = abs(self.eigenvalue)
        return -self.eigenvalue.real / size if size else 0.0

    def __str__(self) -> str:
        s = self.eigenvalue
        value = f"{s.real:.5g}" + (f" +- {s.imag:.5g}i" if s.imag else "")
        return f"{value:<22}{self.frequency:<16.5g}{self.damping_ratio:.4g}"


def linearise(
    system: System,
    x: ArrayLike | Mapping[str, float],
    *,
    u: ArrayLike | Mapping[str, float] = (),
    z: ArrayLike | Mapping[str, float] = (),
    p: ArrayLike | Mapping[str, float] = (),
    q: ArrayLike | Mapping[str, float] = (),
    t: float = 0.0,
) -> Linearisation:
    """Derivatives of `system` at a point, by automatic differentiation.

    Algebraic variables `z` must solve their equations at the point; their derivatives follow from the implicit function
    theorem. Raises `ValueError` for values that do not match the tables or if the system is not finite, and
    `numpy.linalg.LinAlgError` if the equations do not determine z or the unknown rates of a residual form.
    """
    if not (isinstance(t, Real) and math.isfinite(t)):
        raise ValueError(f"{system.name}: t is {t!r}, not a time in s")
    tables = ("states", "controls", "algebraic", "parameters", "data")
    point = [system.values(table, values) for table, values in zip(tables, (x, u, z, p, q), strict=True)]
    form = system.residual_form
    functions = (form.rates, form.output, form.residual) if form else (system.rhs, system.output, None)
    if form is not None:
        point.insert(1, _unknowns(system, form, point, t))
    (rates, f), (_, y), (_, R) = (_derivatives(system, function, point, t) for function in functions)
    if form is not None:
        f, y = _after_elimination(R, 1, f, y)
        del point[1], f[1], y[1]
    if system.algebraic:
        f, y = _after_elimination(_derivatives(system, system.algebraic_residual, point, t)[1], 2, f, y)
    names = {table: tuple(v.name for v in getattr(system, table)) for table in _NAMED}
    return Linearisation(A=f[0], B=f[1], C=y[0], D=y[1], P=f[3], Q=f[4], rates=rates, **names)


def _derivatives(
    system: System, function: ca.Function | None, point: Sequence[Floats], t: float
) -> tuple[Floats, list[Floats]]:
    """Value and derivatives of a `function` with respect to all of its arguments but time, at `point`."""
    if function is None:
        return np.zeros(0), [np.zeros((0, len(v))) for v in point]
    symbols = [ca.MX.sym(name, function.numel_in(i)) for i, name in enumerate(function.name_in())]
    value = function(*symbols)
    blocks = [ca.densify(ca.jacobian(value, s)) for s in symbols[:-1]]
    derivatives = ca.Function("derivatives", symbols, [value, *blocks])(*point, t)
    arrays = [np.asarray(entry, dtype=np.float64) for entry in derivatives]
    if not all(np.isfinite(a).all() for a in arrays):
        raise ValueError(f"{system.name}: {function.name()} is not finite or has no finite derivatives at this point")
    rows = function.size1_out(0)
    return arrays[0].ravel(), [a.reshape(rows, len(v)) for a, v in zip(arrays[1:], point, strict=True)]


def _unknowns(system: System, form: ResidualForm, point: Sequence[Floats], t: float) -> Floats:
    """The unknown rates at `point`."""
    zero = np.zeros(len(form.unknowns))
    residual, blocks = _derivatives(system, form.residual, [point[0], zero, *point[1:]], t)
    s: Floats = np.linalg.solve(blocks[1], -residual).astype(np.float64)
    return s


def _after_elimination(equations: Sequence[Floats], index: int, *blocks: Sequence[Floats]) -> list[list[Floats]]:
    """Derivatives `blocks` after elimination of the argument `index`, with `equations` kept at zero."""
    follow = [-np.linalg.solve(equations[index], block) for block in equations]
    return [
        [block + blocks_of_equation[index] @ f for block, f in zip(blocks_of_equation, follow, strict=True)]
        for blocks_of_equation in blocks
    ]
