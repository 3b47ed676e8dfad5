"""Classes of terrain of the tracked vehicle. A new entry of `TERRAINS` is a new class in study files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple


class Terrain(NamedTuple):
    """Coefficients of a class of terrain, and their ranges."""

    rolling: float
    turning: float
    adhesion: float
    rolling_range: tuple[float, float]
    turning_range: tuple[float, float]
    adhesion_range: tuple[float, float]


#: Representative handbook values; the columns of rolling and turning resistance are no measurements.
TERRAINS: Mapping[str, Terrain] = {
    "paved": Terrain(0.04, 0.60, 0.75, (0.03, 0.05), (0.50, 0.70), (0.70, 0.80)),
    "dry_dirt": Terrain(0.06, 0.80, 0.85, (0.05, 0.07), (0.65, 0.90), (0.80, 0.90)),
    "turf": Terrain(0.09, 0.90, 0.80, (0.07, 0.11), (0.80, 1.00), (0.70, 0.95)),
    "wet_dirt": Terrain(0.12, 0.45, 0.60, (0.10, 0.15), (0.35, 0.60), (0.50, 0.70)),
    "sand": Terrain(0.15, 0.55, 0.45, (0.12, 0.20), (0.45, 0.65), (0.40, 0.50)),
    "snow_road": Terrain(0.06, 0.30, 0.25, (0.04, 0.10), (0.20, 0.40), (0.20, 0.30)),
}

if TYPE_CHECKING:
    TerrainName = str
else:
    TerrainName = Literal[tuple(TERRAINS)]
