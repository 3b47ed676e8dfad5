"""Fixed points of bodies, and the residuals of all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_wholebody.subject import Subject


@dataclass(frozen=True, eq=False)
class Contacts:
    """Points of bodies that must stay where they are: three rows each, on or off frame by frame.

    `bodies` names the body of each of k contacts, `local` (f, k, 3) is the point in the body's frame, `target`
    (f, k, 3) m where it must be, `active` (f, k) whether the rows hold.
    """

    bodies: tuple[str, ...]
    local: Floats
    target: Floats
    active: Mask

    def at_frames(self, frames: Integers | slice) -> Contacts:
        """The contacts of some of the frames."""
        return Contacts(self.bodies, self.local[frames], self.target[frames], self.active[frames])

    def zeroed(self) -> Contacts:
        """Contacts that are off may lie at NaN; zeros stand for them."""
        off = ~self.active[..., None]
        return Contacts(self.bodies, np.where(off, 0.0, self.local), np.where(off, 0.0, self.target), self.active)


def open_rows(subject: Subject, q: Floats, contacts: Contacts | None) -> Floats:
    """(f, m) φ of the constraints and, of each contact, its distances m from the target; 0 where it is off."""
    phi = subject.constraints.values(q)
    if contacts is None:
        return phi
    parts = [phi]
    for k, name in enumerate(contacts.bodies):
        body = subject.bodies[name]
        c = body.point(contacts.local[:, k])
        r = np.einsum("ft,ftx->fx", c, body.triples_of(q))
        parts.append(np.where(contacts.active[:, k, None], r - contacts.target[:, k], 0.0))
    return np.concatenate(parts, axis=1)
