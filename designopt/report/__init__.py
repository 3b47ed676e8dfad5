"""The report: tables for the terminal and a self-contained page, derived from a store."""

from __future__ import annotations

import warnings
from typing import Any

from designopt.report.page.page import write_report
from designopt.report.section import Figure, Section, Selector, Table
from designopt.report.tables import state, summary_table

__all__ = ["Figure", "Section", "Selector", "Table", "state", "summary_table", "write_report"]


def __getattr__(name: str) -> Any:
    if name != "Choice":
        raise AttributeError(f"module 'designopt.report' has no attribute '{name}'")
    warnings.warn("designopt.report.Choice is called Selector now", DeprecationWarning, stacklevel=2)
    return Selector
