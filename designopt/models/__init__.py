"""Models with equations of motion, declared once: every quantity a line, the equations one method (see `motion`)."""

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
