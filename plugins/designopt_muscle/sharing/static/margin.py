"""How far every frame is from the edge of what the muscles can do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from designopt.arrays import Vector
from designopt_muscle.sharing.static.sharing import Sharing
from designopt_muscle.sharing.static.shortfall import strength_factors

#: Least share of the strength that is looked for: frames that need less need next to nothing.
_MIN_STRENGTH = 1e-3


def margins(sharing: Sharing) -> Vector:
    """(n,) the share of the strength that muscles could lose and still balance the frame by themselves.

    It is 1 - f with the least factor f on the forces of all muscles, from 0.001 on, that leaves activations for the
    moments, by a linear program for each frame. Negative margins are frames beyond the muscles: -0.5 says that half as
    much strength again is needed, minus infinity that none is enough. Reserves help only in rows that no muscle
    crosses. NaN in frames with bad input; frames beyond a rate limit count as if they were alone.
    """
    formulation, frames = sharing.formulation, sharing.frames
    helped = formulation.to_reserve != 0
    crossed = ((formulation.matrix != 0) & ~helped.any(axis=0)).any(axis=(0, 2))
    idle = helped[crossed].any(axis=0)
    alone = replace(
        formulation, lower=np.where(idle, 0.0, formulation.lower), upper=np.where(idle, 0.0, formulation.upper)
    )
    passive = np.einsum("nmk,nk->nm", sharing.balance.arms[frames], sharing.muscles.passive[frames])
    found = np.full(len(sharing.status), np.nan)
    found[frames] = 1.0 - strength_factors(alone, passive, _MIN_STRENGTH)
    return found
