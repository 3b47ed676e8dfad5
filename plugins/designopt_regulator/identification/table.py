"""Rows of the CSV files that plants are identified from."""

from __future__ import annotations

import csv
import io

from designopt.plugin import InputFile


class BadData(ValueError):
    """A file that holds no usable step; the message says where."""


def csv_rows(file: InputFile, head: str) -> list[tuple[int, list[str]]]:
    """Line number and cells of each row, the head first; empty lines and lines that begin with # are left out.

    `head` is an example of a first line. Raises `BadData` for what is no text, no CSV, or empty.
    """
    try:
        reader = csv.reader(io.StringIO(file.text()), strict=True)
        rows = [(reader.line_num, row) for row in reader]
    except UnicodeDecodeError:
        raise BadData(f"{file.name}: is no text in UTF-8") from None
    except csv.Error as error:
        raise BadData(f"{file.name}: is no CSV: {error}") from None
    rows = [(line, row) for line, row in rows if any(cell.strip() for cell in row) and not row[0].startswith("#")]
    if not rows:
        raise BadData(f"{file.name}: is empty; the first line is: {head}")
    return rows
