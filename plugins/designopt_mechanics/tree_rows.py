"""A tree over the rows of arrays: the frames of a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt_mechanics.contacts import Contact, contact_forces, contact_loads
from designopt_mechanics.dynamics.recursion import NO_GRAVITY, efforts, inverse_dynamics
from designopt_mechanics.loads import Load
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Point, Tree, TreeError
from designopt_mechanics.wires import Wire, lengths, moment_arms


class TreeRows:
    """A `tree` in `gravity` (3) m/s^2 with `wires`, for many frames at once.

    Coordinates `z`, rates `dz` and accelerations `ddz` are (n, m) in the order of the tree's coordinates. `loaded`
    names the frames that loads act on; `loads` are then a mapping from each of them to (n, 6): force (N) and moment (N
    m) about the origin of the ground, in its axes. The forces of `contacts` act in addition. Each
    function is compiled at its first call (see `Rows`). `couplers` states that what couples joints acts
    within them and closes no loop of bodies (see `efforts`): only then has such a tree joint forces.

    Raises `ValueError` for arrays that do not fit.
    """

    def __init__(
        self,
        tree: Tree,
        gravity: Any = NO_GRAVITY,
        wires: Sequence[Wire] = (),
        loaded: Sequence[str] = (),
        compiled: Literal["auto"] | bool = "auto",
        contacts: Sequence[Contact] = (),
        couplers: bool = False,
    ) -> None:
        self.tree, self.gravity, self.wires, self.loaded = tree, gravity, tuple(wires), tuple(loaded)
        self.contacts, self.couplers = tuple(contacts), couplers
        self._compiled = compiled
        self._state = TreeState.symbols(tree)
        for frame in self.loaded:
            self._state.end(frame)

    def positions(self, points: Sequence[Point], z: ArrayLike) -> Floats:
        """(n, k, 3) m of `points`."""
        positions = ca.horzcat(*(self._state.position(point) for point in points))
        return self._reshape(self._rows("positions", [self._state.z], positions)(z)[0], len(points))

    def velocities(self, points: Sequence[Point], z: ArrayLike, dz: ArrayLike) -> Floats:
        """(n, k, 3) m/s of `points`."""
        speeds = ca.horzcat(*(self._state.velocity(point) for point in points))
        return self._reshape(self._rows("velocities", [self._state.z, self._state.dz], speeds)(z, dz)[0], len(points))

    def lengths(self, z: ArrayLike) -> Floats:
        """(n, k) m of the wires."""
        return self._lengths(z)[0].reshape(-1, len(self.wires))

    def moment_arms(self, z: ArrayLike) -> Floats:
        """(n, m, k) of the wires: the generalised force of a unit tension, R = -dl/dq.

        Raises `TreeError` where two points of a wire that lie one after the other meet: it has no direction there.
        """
        arms = self._arms(z)[0].reshape(-1, len(self.tree.names), len(self.wires))
        is_undefined = ~np.isfinite(arms).all(axis=1)
        if is_undefined.any():
            # Outside the range of a joint function lengths are not finite either.
            met = is_undefined & np.isfinite(self.lengths(z))
            if met.any():
                frame, wire = (int(i) for i in np.argwhere(met)[0])
                name = self.wires[wire].name
                raise TreeError(name, "points", f"two of them meet in frame {frame}: its moment arms are undefined")
        return arms

    def contact_forces(self, z: ArrayLike, dz: ArrayLike) -> Floats:
        """(n, k, 3) N on the points of the contacts."""
        return self._reshape(self._contact_forces(z, dz)[0], len(self.contacts))

    def inverse_dynamics(
        self, z: ArrayLike, dz: ArrayLike, ddz: ArrayLike, loads: Mapping[str, ArrayLike] | None = None
    ) -> Floats:
        """(n, m) generalised forces that the motion needs beside gravity and loads."""
        return self._inverse(z, dz, ddz, self._loads(loads))[0].reshape(-1, len(self.tree.names))

    def joint_forces(
        self, z: ArrayLike, dz: ArrayLike, ddz: ArrayLike, loads: Mapping[str, ArrayLike] | None = None
    ) -> dict[str, Floats]:
        """Force and moment (n, 6) on each frame from the frame before it, about its origin, in the axes of the ground.

        Raises `TreeError` for frames that joint functions couple: a loop of bodies has forces that do not follow from
        the tree (see `couplers`).
        """
        (wrenches,) = self._joints(z, dz, ddz, self._loads(loads))
        parts = wrenches.reshape(len(wrenches), -1, 6)
        return {frame.name: parts[:, i] for i, frame in enumerate(self.tree.frames)}

    def balance(
        self,
        time: ArrayLike,
        z: ArrayLike,
        dz: ArrayLike,
        ddz: ArrayLike,
        loads: Mapping[str, ArrayLike] | None = None,
        status: ArrayLike = (),
    ) -> MomentBalance:
        """The moment balance of the wires in every frame: a row for each coordinate, a column for each wire."""
        statuses = np.asarray(status)
        return MomentBalance(
            time=np.asarray(time, dtype=np.float64),
            rows=self.tree.names,
            columns=tuple(wire.name for wire in self.wires),
            arms=self.moment_arms(z),
            moments=self.inverse_dynamics(z, dz, ddz, loads),
            row_units=tuple(c.effort_unit for c in self.tree.coordinates),
            status=statuses if statuses.size else np.zeros(0, dtype=np.int64),
        )

    # -------------------------------------------------------------------------------------------------- functions

    @cached_property
    def _lengths(self) -> Rows:
        return self._rows("lengths", [self._state.z], lengths(self._state, self.wires))

    @cached_property
    def _arms(self) -> Rows:
        return self._rows("moment_arms", [self._state.z], moment_arms(self._state, self.wires))

    @cached_property
    def _inverse(self) -> Rows:
        symbol, loads = self._load_symbols()
        forces = inverse_dynamics(self._state, self.gravity, loads)
        return self._rows("inverse_dynamics", [self._state.z, self._state.dz, self._state.ddz, symbol], forces)

    @cached_property
    def _contact_forces(self) -> Rows:
        forces = contact_forces(self._state, self.contacts)
        return self._rows("contact_forces", [self._state.z, self._state.dz], forces)

    @cached_property
    def _joints(self) -> Rows:
        symbol, loads = self._load_symbols()
        joints = efforts(self._state, self.gravity, loads, self.couplers).joints
        wrenches_of_frames = ca.vertcat(*(ca.vertcat(*joints[frame.name]) for frame in self.tree.frames))
        return self._rows("joint_forces", [self._state.z, self._state.dz, self._state.ddz, symbol], wrenches_of_frames)

    def _rows(self, name: str, inputs: Sequence[Any], result: Any) -> Rows:
        state = self._state
        names = [next((n for n in ("z", "dz", "ddz") if x is getattr(state, n)), "loads") for x in inputs]
        function = ca.Function(name, list(inputs), [ca.cse(ca.densify(result))], names, ["rows"])
        return Rows(function, self._compiled)

    def _load_symbols(self) -> tuple[Any, list[Load]]:
        symbol = ca.SX.sym("loads", 6 * len(self.loaded))
        wrench_loads = [
            Load(frame, symbol[6 * i : 6 * i + 3], symbol[6 * i + 3 : 6 * i + 6]) for i, frame in enumerate(self.loaded)
        ]
        surface_loads = contact_loads(self._state, self.contacts)
        return symbol, wrench_loads + surface_loads

    def _loads(self, loads_by_frame: Mapping[str, ArrayLike] | None) -> Floats:
        loads = loads_by_frame or {}
        if unknown := sorted(set(loads) - set(self.loaded)):
            raise TreeError(unknown[0], "loads", f"is not among the loaded frames ({', '.join(self.loaded) or 'none'})")
        parts = [np.asarray(loads.get(frame, np.zeros(6)), dtype=np.float64) for frame in self.loaded]
        for frame, part in zip(self.loaded, parts, strict=True):
            if part.shape[-1:] != (6,) or part.ndim > 2:
                raise TreeError(frame, "loads", f"has shape {part.shape}, not (n, 6) or (6,)")
        if not parts:
            return np.zeros(0)
        rows = max((len(part) for part in parts if part.ndim == 2), default=0)
        if not rows:
            return np.concatenate(parts)
        return np.concatenate([np.broadcast_to(part, (rows, 6)) for part in parts], axis=1)

    @staticmethod
    def _reshape(flat: Floats, points: int) -> Floats:
        return flat.reshape(len(flat), 3, points).transpose(0, 2, 1)
