"""Shell completion of plugins, stores, study files and templates, without importing any."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from designopt import plugin, templates


def plugins_and_stores(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of plugins, stores and ``schema``: the arguments of `show`."""
    names = ["schema", *(entry.name for entry in plugin.installed_plugins())]
    return [*_items(sorted(set(names)), incomplete), *stores(context, parameter, incomplete)]


def stores(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Stores in this folder, in the folder typed so far, and in ``results``."""
    folders = dict.fromkeys((Path(incomplete).parent if incomplete else Path(), Path("results")))
    paths = [str(journal.parent) for folder in folders for journal in sorted(folder.glob("*/journal.db"))]
    return [*_items(paths, incomplete), CompletionItem(incomplete, type="dir")]


def studies(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """YAML files, and folders."""
    folder = Path(incomplete).parent if incomplete else Path()
    files = [str(path) for pattern in ("*.yaml", "*.yml") for path in sorted(folder.glob(pattern))]
    return [*_items(files, incomplete), CompletionItem(incomplete, type="dir")]


def template_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The templates of `new`."""
    return [
        item
        for item in (CompletionItem(t.name, help=t.meaning) for t in templates.TEMPLATES.values())
        if item.value.startswith(incomplete)
    ]


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
