"""``designopt list``."""

from __future__ import annotations

from pathlib import Path

import click

from designopt import plugin
from designopt.cli.exit import WRONG_INPUT, echo, fail
from designopt.printable import one_line


class _Kinds(click.Choice[str]):
    """The kinds, also in the singular."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(f"{value}s" if f"{value}s" in self.choices else value, param, ctx)


@click.command(name="list")
@click.argument("kind", required=False, type=_Kinds([*(f"{k}s" for k in plugin.GROUPS), "stores"]))
@click.argument("folder", required=False, type=click.Path())
def list_(kind: str | None, folder: str | None) -> None:
    """List installed plugins, or stores.

    Plugins are not imported. `designopt list stores [FOLDER]` lists those in FOLDER (default: results).
    """
    if folder is not None and kind != "stores":
        raise click.UsageError(f"a folder is only for stores: designopt list stores {folder}")
    if kind == "stores":
        _stores(Path(folder or "results"), is_explicit=folder is not None)
        return
    for k in plugin.GROUPS:
        if kind in (None, f"{k}s"):
            echo(f"{k}s")
            for entry in plugin.installed_plugins(k):
                echo(f"  {entry.name:<22} {entry.distribution} {entry.version}")


def _stores(folder: Path, *, is_explicit: bool) -> None:
    """The stores in a folder, one per line; the folder itself if it is one."""
    if is_explicit and not folder.is_dir():
        fail(f"error: {folder} is {'not a folder' if folder.exists() else 'no folder: it does not exist'}", WRONG_INPUT)
    try:
        folder_itself = [folder] if (folder / "journal.db").exists() else []
        for store in [*folder_itself, *(journal.parent for journal in sorted(folder.glob("*/journal.db")))]:
            echo(one_line(str(store)))
    except PermissionError as error:
        fail(f"error: {folder}: {error.strerror}", WRONG_INPUT)
