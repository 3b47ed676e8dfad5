"""The report: tables for the terminal and a self-contained page, derived from a store."""

from __future__ import annotations

from designopt.report.page.page import write_report
from designopt.report.section import Figure, Section, Selector, Table
from designopt.report.terminal import state, summary_table

__all__ = ["Figure", "Section", "Selector", "Table", "state", "summary_table", "write_report"]
