"""Mechanics of trees of rigid bodies: what muscles, exoskeletons and a user's own mechanisms stand on.

From Python, a mechanism is read from a file or stated in parts, and solved:

    from designopt_mechanics import read_mechanism, solve

    linkage = read_mechanism("slider_crank.yaml")
    result = solve(linkage, "inverse_dynamics", motion={"angle": "2*pi*time"})
    print(result.outputs["force_rod_peak"], result.arrays["effort_angle"])

A `tree.Tree` is data: `tree.Coordinate` values z, and `tree.Frame` after frame, each fixed to a parent and moved by
elementary `motions` (`Rotate`, `Slide`, `Ball`) in order. A joint variable is a number, the name of a coordinate, or a
joint function of the coordinates (`functions`: affine, splines and polynomials, formulas in text, two-bar closures in
closed form, implicit loop closures). Several motions in one frame make a joint of several axes: the spatial transform
of an OpenSim joint is three slides, then three rotations. A frame without motions is welded. Frames carry a
`body.Body` or nothing. Closed chains, rhythms and couplers are joint functions; nothing here depends on muscles.

`state.TreeState` is a tree with CasADi symbols for z and its rates: positions, axes, velocities. From it come

- `dynamics.recursion.inverse_dynamics` and `efforts` (forces in the joints), with gravity as a free vector and
  `loads.Load` on any frame; `dynamics.matrices`: mass matrix, bias, Coriolis matrix, forward dynamics, energies;
- `wires.lengths`, `moment_arms` (R = -dl/dz) and `pulls` of `wires.Wire`, straight or over `surfaces`;
  `loads.generalised_force` (J' w) for whatever pulls otherwise;
- `springs.Spring` along a wire, `contacts.Contact` of a point and `contacts.SphereContact` of a sphere with a plane of
  any frame: their loads, smooth in z and its rates;
- `equations.equations_of`: states and unknowns of a `designopt.dynamics.system.System` in residual form, the only way
  out to simulation, linearisation and collocation;
- `tree_rows.TreeRows`: all of it over the frames of a trial, as arrays, up to a `moment_balance.MomentBalance`.

`checks.check` tries a tree with numbers: joint functions that jump, directions without mass.

`mechanism` closes loops: its data, solved postures, forces of all joints, equations of motion. On the core stand
`model_file` (mechanisms in YAML), `robot_files` (URDF, MJCF), `tasks` (the model `mechanism`), `anatomy` (wires with
virtual links, VRML), `rods` (of variable length), and the models of `andrews`, `shoulder`, `exoskeleton` and `cables`;
`report` has the parts that draw them.

Units are SI with angles in rad. Forces, moments and places are in the axes of the ground unless said otherwise.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from designopt_mechanics.body import Body as Body
    from designopt_mechanics.contacts import Contact as Contact
    from designopt_mechanics.mechanism.mechanism import Clearance as Clearance
    from designopt_mechanics.mechanism.mechanism import Coincidence as Coincidence
    from designopt_mechanics.mechanism.mechanism import Mechanism as Mechanism
    from designopt_mechanics.mechanism.mechanism import PointLoad as PointLoad
    from designopt_mechanics.motions import Ball as Ball
    from designopt_mechanics.motions import Rotate as Rotate
    from designopt_mechanics.motions import Slide as Slide
    from designopt_mechanics.springs import Spring as Spring
    from designopt_mechanics.surfaces.over import Surface as Surface
    from designopt_mechanics.surfaces.over import SurfaceWrap as SurfaceWrap
    from designopt_mechanics.tasks.session import draw as draw
    from designopt_mechanics.tasks.session import read_mechanism as read_mechanism
    from designopt_mechanics.tasks.session import solve as solve
    from designopt_mechanics.tree import Coordinate as Coordinate
    from designopt_mechanics.tree import Frame as Frame
    from designopt_mechanics.tree import Point as Point
    from designopt_mechanics.tree import Tree as Tree
    from designopt_mechanics.wires import Wire as Wire

#: The motions of a welded frame: ``Frame("tool", "hand", Fixed)``.
Fixed: tuple[()] = ()

#: Public names, imported at their first use.
_MODULES = {
    **dict.fromkeys(("Tree", "Coordinate", "Frame", "Point"), "tree"),
    **dict.fromkeys(("Rotate", "Slide", "Ball"), "motions"),
    **dict.fromkeys(("Clearance", "Coincidence", "Mechanism", "PointLoad"), "mechanism.mechanism"),
    **dict.fromkeys(("read_mechanism", "solve", "draw"), "tasks.session"),
    **dict.fromkeys(("Surface", "SurfaceWrap"), "surfaces.over"),
    "Body": "body", "Contact": "contacts", "Spring": "springs", "Wire": "wires",
}  # fmt: skip
__all__ = ["Fixed", *sorted(_MODULES)]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'designopt_mechanics' has no attribute '{name}'")
    return getattr(import_module(f"designopt_mechanics.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
