"""Models with equations of motion: each quantity is declared once, in one line; one method holds the equations (see
`motion`)."""

from designopt.models.declaration import motion
from designopt.models.quantities import (
    Condition,
    Event,
    Final,
    Guard,
    Integral,
    Parameter,
    Peak,
    Series,
    Setting,
    State,
    Unknown,
)

__all__ = [
    "Condition",
    "Event",
    "Final",
    "Guard",
    "Integral",
    "Parameter",
    "Peak",
    "Series",
    "Setting",
    "State",
    "Unknown",
    "motion",
]
