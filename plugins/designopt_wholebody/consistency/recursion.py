"""The closest consistent positions of trees of rigid segments, by recursion from the hands and feet to the root.

Segments are rigid from the start: a body has a pose, and its natural coordinates follow from it. Each iteration
(Gauss-Newton) looks for the twists that bring all triples nearest to the measured ones, subject to the joints to first
order: a segment's share, as a quadratic form of its twist, passes to its parent with the joint's own rates eliminated,
as in the articulated-body algorithm (Featherstone 2008, section 7.3). The work grows with the number of segments, not
with its cube, and joints have no multipliers. Surfaces and contacts close loops: theirs come from one small system.
The minimum is that of the other methods.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from designopt.arrays import Floats, Integers
from designopt_wholebody.consistency.contacts import Contacts, open_rows
from designopt_wholebody.consistency.links import JointGroup, links_of
from designopt_wholebody.consistency.loops import LoopClosures
from designopt_wholebody.consistency.poses import Poses, Shapes
from designopt_wholebody.consistency.relaxation import NEAR, relaxation
from designopt_wholebody.consistency.stacked import product, solve_systems, transposed
from designopt_wholebody.kinematics.tree import NoTree
from designopt_wholebody.subject import Subject

#: ε of the rows of loops relative to the largest of them: contacts of several points of one body depend on one another.
_PROXIMAL = 1e-9
#: Largest rotation of a segment in one iteration, rad.
_LARGEST = 1.0


class Recursion:
    """Iterations for a subject whose segments form a tree, with contacts of `contact_bodies`.

    Raises `NoTree` for joints that close loops, and for rods, whose rotation about their own axis is not determined.
    """

    def __init__(self, subject: Subject, contact_bodies: tuple[str, ...] = ()) -> None:
        if rods := [name for name, body in subject.bodies.items() if body.rod]:
            raise NoTree(f"model '{subject.model.model}': '{rods[0]}' is a rod")
        self.subject, self.shapes = subject, Shapes.of_subject(subject)
        self.loops = LoopClosures(subject, contact_bodies)
        # groups of links, and whether one of them leads to a row of a loop: to others its unit force does not come
        carrier_links, groups = {*self.loops.first.tolist(), *self.loops.second.tolist()}, []
        for links in reversed(links_of(subject)):
            carries = not carrier_links.isdisjoint(links.child.tolist())
            if carries:
                carrier_links.update(links.parent.tolist())
            groups.append((links, carries))
        self.groups = tuple(reversed(groups))

    def twists(self, poses: Poses, triples: Floats, weights: Floats, contacts: Contacts | None) -> Floats:
        """(b, 6, f) the next step from `poses` towards `triples` (b, 4, 3, f)."""
        H, fit = poses.fit(triples, weights)
        motions = [links.motion(poses) for links, _ in self.groups]
        return self.nearest(H, fit, motions, *self.loops.rows(poses, contacts))

    def nearest(self, H: Floats, fit: Floats, motions: list[tuple[Floats, Floats]], rows: Floats, e: Floats) -> Floats:
        """(b, 6, f) twists with the least ½ ξᵀ H ξ - gᵀ ξ (`Poses.fit`) that joints and loops allow.

        `motions` are N and r of each group of links, `rows` and `e` those of loops.
        """
        # column 0 is the fit, each other the unit force of a row
        g = np.zeros((*fit.shape[:2], 1 + len(rows), fit.shape[-1]))
        g[:, :, 0] = fit
        for k, (first, second) in enumerate(zip(self.loops.first, self.loops.second, strict=True)):
            g[first, :, 1 + k] -= rows[k]
            g[second, :, 1 + k] += rows[k]
        shares = self._inwards(H, g, motions)
        if not len(rows):
            return self._outwards(shares, len(H))[:-1, :, 0]
        twists = self._outwards([share for share in shares if share.carries], len(H))
        multipliers = self._multipliers(twists, rows, e)[None]
        return self._outwards([share.with_multipliers(multipliers) for share in shares], len(H))[:-1, :, 0]

    def _inwards(self, H: Floats, g: Floats, motions: list[tuple[Floats, Floats]]) -> list[_Share]:
        """Each segment, from the ends to the root, passes H and g to its parent. Changes H and g."""
        shares = []
        for (links, carries), (N, r) in zip(reversed(self.groups), reversed(motions), strict=True):
            hessian, force = H[links.child], g[links.child] if carries else g[links.child, :, :1]
            force[:, :, 0] -= product(hessian, r[:, :, None])[:, :, 0]
            U, Nt, columns = product(hessian, N), transposed(N), force.shape[2]
            y = solve_systems(product(Nt, U), np.concatenate([product(Nt, force), transposed(U)], axis=2))
            transmitted_part = product(U, y)
            for k, parent in enumerate(links.parent):
                H[parent] += hessian[k] - transmitted_part[k, :, columns:]
                g[parent, :, :columns] += force[k] - transmitted_part[k, :, :columns]
            shares.append(_Share(links, carries, N, r, y[:, :, :columns], y[:, :, columns:]))
        return shares[::-1]

    def _outwards(self, shares: list[_Share], bodies: int) -> Floats:
        """(bodies, 6, c, f) twists from the root to the ends, for each column of `free`."""
        x = np.zeros((bodies, 6, *shares[0].free.shape[2:]))
        for share in shares:
            before = x[share.links.parent]
            twist = before + product(share.N, share.free - product(share.drag, before))
            twist[:, :, 0] += share.r
            x[share.links.child] = twist
        return x

    def _multipliers(self, x: Floats, rows: Floats, e: Floats) -> Floats:
        """(m, 1, f) of the `rows` of loops."""
        m, _, frames = rows.shape
        S = np.empty((frames, m, m + 1))
        for k, (first, second) in enumerate(zip(self.loops.first, self.loops.second, strict=True)):
            S[:, k] = product(rows[None, k, None], (x[second] - x[first])[None])[0, 0].T
        right, S = S[:, :, :1] - e.T[..., None], np.ascontiguousarray(S[:, :, 1:])
        regular_matrix = S.copy()
        diagonal = np.einsum("fkk->fk", regular_matrix)
        diagonal += np.where(diagonal > 0.0, _PROXIMAL * diagonal.max(axis=1, keepdims=True), 1.0)
        solution = np.linalg.solve(regular_matrix, right)
        solution += np.linalg.solve(regular_matrix, right - S @ solution)  # without the proximal term's error
        return np.asarray(solution.transpose(1, 2, 0))


@dataclass(frozen=True, eq=False)
class _Share:
    """The condensed equations of a group of links: the rates of its joints are y = `free` - `drag` ξ_parent.

    `free` (g, k, c, f) has a column for the fit and, where the group `carries`, one for each row of a loop.
    """

    links: JointGroup
    carries: bool
    N: Floats
    r: Floats
    free: Floats
    drag: Floats

    def with_multipliers(self, multipliers: Floats) -> _Share:
        """The share with one column, in which the rows of loops have their `multipliers` (1, m, 1, f)."""
        if not self.carries:
            return self
        free = self.free[:, :, :1] - product(self.free[:, :, 1:], multipliers)
        return replace(self, free=free)


class RecursiveSearch:
    """The search of one chunk of frames; those that are done take no further part."""

    def __init__(
        self, recursion: Recursion, raw: Floats, weights: Floats, contacts: Contacts | None, tolerance: float
    ) -> None:
        bodies, frames = len(recursion.subject.bodies), len(raw)
        self.recursion, self.contacts, self.tolerance = recursion, contacts, tolerance
        self.weights = weights.reshape(bodies, 4, 3, 1)
        triples = np.ascontiguousarray(raw.T).reshape(bodies, 4, 3, frames)
        origin = triples[0, 0].copy()
        self.triples = triples - recursion.shapes.point * origin
        self.poses, self.is_mirrored = Poses.near(recursion.shapes, self.triples, origin)
        self.q = self.poses.coordinates()
        self.steps, self.violations = np.full((2, frames), np.inf)
        self.seconds = np.zeros(frames)
        self.last = np.zeros((frames, 6 * bodies))
        self.lengths = np.ones(frames)
        self.iterations = np.zeros(frames, dtype=np.int64)
        self.has_ended = np.zeros(frames, dtype=bool)

    def run(self, max_iterations: int) -> None:
        left, poses, triples, contacts = np.arange(len(self.q)), self.poses, self.triples, self.contacts
        for _ in range(max_iterations):
            if not len(left):
                return
            began = time.thread_time()
            twists = self.recursion.twists(poses, triples, self.weights, contacts)
            length = self._length(left, twists)
            poses = poses.moved(twists * length)
            q = poses.coordinates()
            self.steps[left] = np.linalg.norm(q - self.q[left], axis=1) / np.minimum(length, 1.0)
            self.q[left] = q
            self.iterations[left] += 1
            small = left[self.steps[left] < self.tolerance]
            if len(small):
                self._check(small)
                self.has_ended[small] = self.violations[small] < self.tolerance
            self.seconds[left] += (time.thread_time() - began) / len(left)
            stay = np.flatnonzero(~self.has_ended[left] & np.isfinite(self.steps[left]))
            if len(stay) < len(left):
                left, poses, triples = left[stay], poses.at_frames(stay), np.take(triples, stay, axis=-1)
                contacts = None if contacts is None else contacts.at_frames(stay)
        self._check(left)

    def _length(self, frames: Integers, twists: Floats) -> Floats:
        """(f,) of the step: by Aitken's relaxation near the end, and no segment turns by more than `_LARGEST`."""
        step = np.ascontiguousarray(twists.reshape(-1, twists.shape[-1]).T)
        length = relaxation(step, self.last[frames], self.lengths[frames], self.steps[frames] < NEAR)
        largest = np.sqrt((twists[:, 3:] ** 2).sum(axis=1)).max(axis=0)
        length = np.minimum(length, _LARGEST / np.maximum(largest, 1e-9))
        self.last[frames], self.lengths[frames] = step, length
        return np.asarray(length)

    def _check(self, frames: Integers) -> None:
        contacts = None if self.contacts is None else self.contacts.at_frames(frames)
        self.violations[frames] = np.linalg.norm(open_rows(self.recursion.subject, self.q[frames], contacts), axis=1)
