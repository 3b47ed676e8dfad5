"""Design studies of mechanical and biomechanical models.

``designopt.load("study.yaml").run()`` runs a study file; `designopt.study` builds the same study from Python values.
Plugins are declared with `model`, `objective`, `solver`, `aggregation` and `report`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from designopt.plugin import (
    Array,
    Diverged,
    InputFile,
    InvalidDesign,
    InvalidSetting,
    Quantity,
    aggregation,
    model,
    objective,
    report,
    solver,
)

if TYPE_CHECKING:
    from designopt.api import Study, load, open_store, resume, study

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Diverged",
    "InputFile",
    "InvalidDesign",
    "InvalidSetting",
    "Quantity",
    "Study",
    "aggregation",
    "load",
    "model",
    "objective",
    "open_store",
    "report",
    "resume",
    "solver",
    "study",
]


def __getattr__(name: str) -> Any:
    """Load the running side only when it is used: importing `designopt` in a plugin stays light."""
    if name in ("Study", "load", "open_store", "resume", "study"):
        from designopt import api

        return getattr(api, name)
    raise AttributeError(f"module 'designopt' has no attribute '{name}'")
