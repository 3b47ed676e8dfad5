"""The report: tables for the terminal and a self-contained page, derived from a store."""

from __future__ import annotations

from designopt.report.page import write_report
from designopt.report.section import Choice, Figure, Section, Table
from designopt.report.tables import state, summary_table

__all__ = ["Choice", "Figure", "Section", "Table", "state", "summary_table", "write_report"]
