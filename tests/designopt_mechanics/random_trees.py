"""Random trees of one-degree-of-freedom joints, as the literal form takes them and as a `Tree`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from designopt_mechanics.body import Body
from designopt_mechanics.motions import Rotate, Slide
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree
from designopt_mechanics.wires import Wire
from numpy.typing import NDArray

Array = NDArray[np.float64]
GRAVITY = (0.3, -9.7, 1.1)


@dataclass(frozen=True)
class Case:
    """Bodies of the literal form, joint functions of the coordinates, and the same as a tree with wires."""

    bodies: Sequence[Mapping[str, Any]]
    functions: Sequence[Callable[[Any], Any]]
    tree: Tree
    wires: Sequence[Wire]


def random_case(seed: int, bodies: int, coordinates: int) -> Case:
    rng = np.random.default_rng(seed)
    names = [f"q{k}" for k in range(coordinates)]
    records: list[dict[str, Any]] = []
    functions: list[Callable[[Any], Any]] = []
    frames = []
    for i in range(bodies):
        d, theta = _unit(rng), _unit(rng)
        principal = rng.uniform(0.5, 1.0, 3)
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        body: dict[str, Any] = {
            "parent": int(rng.integers(0, i + 1)),
            "type": "R" if rng.uniform() < 0.6 else "P",
            "Vd": d,
            "d": rng.uniform(-0.4, 0.4),
            "Vth": theta,
            "theta": rng.uniform(-1.0, 1.0),
            "mass": rng.uniform(0.3, 2.0),
            "com": rng.uniform(-0.2, 0.2, 3),
            "inertia": 0.05 * turn @ np.diag(principal) @ turn.T,
        }
        function = _function(rng, coordinates, i)
        by_name: Any = lambda z, function=function: function([z[n] for n in names])  # noqa: E731
        shift, angle = (body["d"], by_name) if body["type"] == "R" else (by_name, body["theta"])
        frames.append(
            Frame(
                f"b{i + 1}",
                f"b{body['parent']}" if body["parent"] else "ground",
                (Slide(tuple(d), shift), Rotate(tuple(theta), angle)),
                Body(body["mass"], body["com"], body["inertia"]),
            )
        )
        records.append(body)
        functions.append(function)
    tree = Tree(tuple(Coordinate(n) for n in names), tuple(frames))
    wires = []
    for k in range(3):
        at = rng.integers(0, bodies + 1, 4)
        at[1] = at[0] + 1 if at[0] < bodies else 0
        points = [Point(f"b{n}" if n else "ground", tuple(rng.uniform(-0.3, 0.3, 3))) for n in at]
        wires.append(Wire(f"w{k}", tuple(points)))
    return Case(records, functions, tree, wires)


def _unit(rng: np.random.Generator) -> Array:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def _function(rng: np.random.Generator, r: int, i: int) -> Callable[[Any], Any]:
    """The first joint variables are the coordinates themselves, the others bend."""
    import casadi as ca

    if i < r:
        return lambda q: q[i]
    a, b, c = rng.uniform(-0.5, 0.5, r), rng.uniform(-0.4, 0.4, (r, r)), rng.uniform(-0.5, 0.5, r)

    def function(q: Any) -> Any:
        total = sum(a[k] * q[k] + c[k] * ca.sin(q[k]) for k in range(r))
        return total + sum(b[j, k] * q[j] * q[k] for j in range(r) for k in range(r))

    return function
