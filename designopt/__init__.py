"""Design studies of mechanical and biomechanical models.

``designopt.load("study.yaml").run()`` runs a study file; `designopt.define` builds the same study from Python values,
and `designopt.minimize` runs one of a plain function in one call.
Plugins are declared with `model`, `objective`, `solver`, `aggregation`, `report_part` and `exporter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from designopt.evaluation_progress import progress
from designopt.plugin import (
    Array,
    Declaration,
    Diverged,
    Fidelity,
    InputFile,
    InvalidDesign,
    InvalidSetting,
    Quantity,
    Unusable,
    aggregation,
    exporter,
    filled,
    model,
    objective,
    report_part,
    solver,
)

if TYPE_CHECKING:
    from designopt.api import Study, benchmark, compare, define, export, load, minimize, open_store, resume

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Declaration",
    "Diverged",
    "Fidelity",
    "InputFile",
    "InvalidDesign",
    "InvalidSetting",
    "Quantity",
    "Study",
    "Unusable",
    "aggregation",
    "benchmark",
    "compare",
    "define",
    "export",
    "exporter",
    "filled",
    "load",
    "minimize",
    "model",
    "objective",
    "open_store",
    "progress",
    "report_part",
    "resume",
    "solver",
]


def __getattr__(name: str) -> Any:
    """Import the modules that run studies on first use, so that a plugin's ``import designopt`` stays fast."""
    if name in ("Study", "benchmark", "compare", "define", "export", "load", "minimize", "open_store", "resume"):
        from designopt import api

        return getattr(api, name)
    raise AttributeError(f"module 'designopt' has no attribute '{name}'")
