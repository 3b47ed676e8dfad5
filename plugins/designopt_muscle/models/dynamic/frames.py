"""The frames of a dynamic trial: points of a mesh over a window, with a margin that is solved and left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.statement.mesh import SchemeName
from designopt_muscle.dynamic_sharing.problem import mesh
from designopt_muscle.dynamic_sharing.sharing import DynamicSharing
from designopt_muscle.models.errors import TrialError


@dataclass(frozen=True, eq=False)
class MeshFrames:
    """`time` (n,) s of the points of `intervals` equal intervals; `before` first and `after` last are margin."""

    scheme: SchemeName
    time: Floats
    intervals: int
    before: int
    after: int

    @classmethod
    def over(
        cls, times: Floats, window: tuple[float, float] | None, longest: float, scheme: SchemeName, samples: int
    ) -> MeshFrames:
        """Intervals of `longest` s at most over the `window`, with a margin of `samples` recorded times (n,) on both
        sides as far as there are any. Raises `TrialError` for windows beyond the recording."""
        begin, end = (float(times[0]), float(times[-1])) if window is None else window
        if not times[0] - 1e-9 <= begin < end <= times[-1] + 1e-9:
            span = f"from {times[0]:g} to {times[-1]:g} s"
            raise TrialError(f"the motion runs {span}, not from {begin:g} to {end:g} s")
        kept_intervals = max(1, int(np.ceil((end - begin) / longest - 1e-9)))
        width = (end - begin) / kept_intervals
        margin = int(np.ceil(samples * float(np.median(np.diff(times))) / width - 1e-9))
        room = (begin - float(times[0])) / width, (float(times[-1]) - end) / width
        before, after = (min(margin, int(np.floor(intervals_available + 1e-6))) for intervals_available in room)
        points = mesh(scheme, before + kept_intervals + after)
        first, last = begin - before * width, end + after * width
        return cls(scheme, first + points.fractions * (last - first), before + kept_intervals + after, before, after)

    @property
    def sampled_points(self) -> slice:
        """The frames of the window."""
        steps = (len(self.time) - 1) // self.intervals
        return slice(self.before * steps, (self.intervals - self.after) * steps + 1)

    def cut(self, sharing: DynamicSharing) -> DynamicSharing:
        """A solution without the margins; integrals cover the remaining part."""
        if self.before + self.after == 0:
            return sharing
        kept_mesh = mesh(self.scheme, self.intervals - self.before - self.after)
        return sharing.cut(self.sampled_points, kept_mesh.weights * float(np.ptp(self.time[self.sampled_points])))
