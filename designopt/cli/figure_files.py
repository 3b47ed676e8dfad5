"""Figures of pages as files: the size of ``--size``, and the loop over ``--figure``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from designopt.cli.exit import STORE, WRONG_INPUT, echo, fail


def _size(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[float, float] | None:
    """Width and height in ``170x90``, mm. Raises `click.UsageError`."""
    if text is None:
        return None
    width, _, height = text.partition("x")
    if not all(
        number.replace(".", "", 1).isdecimal() and 10.0 <= float(number) <= 2000.0 for number in (width, height)
    ):
        raise click.UsageError(f"--size takes a width and a height in mm, such as 170x90, not '{text}'")
    return float(width), float(height)


figure_size_option = click.option(
    "--size",
    metavar="WIDTHxHEIGHT",
    callback=_size,
    help="--figure: its size in mm [default: one column of a paper, as high as panels and legend need].",
)


def write_figures(files: Sequence[str], write: Callable[[Path], str]) -> None:
    """Write each file by `write`, which returns the other figures of the part; ends the command if that fails."""
    from designopt.report.figure_file import FigureError

    for file in files:
        try:
            note = write(Path(file))
            echo(file)
            if note:
                echo(f"  {note}")
        except FigureError as error:
            fail(f"error: {error}", WRONG_INPUT)
        except OSError as error:
            fail(f"{file}: the figure cannot be written ({error.strerror or error})", STORE)
