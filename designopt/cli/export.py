"""``designopt export``: one design, or a whole store, in another format."""

from __future__ import annotations

from pathlib import Path

import click

from designopt.cli.completion import stores
from designopt.cli.exit import WRONG_INPUT, echo, fail
from designopt.cli.opening import data_option, open_result, plugin_option
from designopt.cli.report import write_exports
from designopt.cli.show import store_and_point, store_of_point


@click.command(name="export")
@click.argument("name", metavar="STORE/POINT", shell_complete=stores)
@click.option(
    "--controller",
    "language",
    required=True,
    type=click.Choice(["python", "c", "st"]),
    help="Export the design's controllers as difference equations with limits and anti-windup: "
    "Python, C, or Structured Text.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("."),
    help="Folder for the files [default: here].",
)
@click.option("--replace", is_flag=True, help="Overwrite files of the same name with other content.")
@plugin_option
@data_option
def export(
    name: str, language: str, folder: Path, replace: bool, plugin_files: tuple[str, ...], data: dict[str, str]
) -> None:
    """Export the controllers of a design as source code.

    POINT is a design's number, the beginning of its key, or its name, as for `designopt show`: `recommended`, or a
    label such as "best mass".
    Tables and arrays of a whole store are written by `designopt report STORE --export FORMAT`.
    """
    from designopt import plugin
    from designopt.cli.design import row_of
    from designopt.plugin import PluginError, Use

    store_design = store_and_point(name)
    if store_design is None:
        fail(f"error: '{name}' is not a design of a store; write STORE/POINT{store_of_point(name)}", WRONG_INPUT)
    result = open_result(store_design[0], plugin_files, data)
    row = row_of(result, store_design[1])
    try:
        use = Use(plugin.find("export", "controller"), {"language": language, "design": str(row), "replace": replace})
    except PluginError as error:
        fail(f"error: {error}", WRONG_INPUT)
    if not result.outcomes.feasible[row] and not result.outcomes.failed[row]:
        echo(f"warning: design {row} violates limits of the study; see: designopt show {name}", err=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_exports(result, folder / "report.html", [use])
