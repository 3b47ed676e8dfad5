"""Arguments of commands: study files, stores, plugin files; their errors become sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from designopt import plugin
from designopt.cli.exit import STORE, WRONG_INPUT, fail

if TYPE_CHECKING:
    from designopt.api import Study
    from designopt.store.result import Result
    from designopt.study.language.errors import Issue

plugin_option = click.option(
    "--plugin",
    "plugin_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, readable=True),
    help="Run this Python file and use the plugins that it declares.",
)


def _data_roots(context: click.Context, parameter: click.Parameter, options: tuple[str, ...]) -> dict[str, str]:
    """``NAME=FOLDER`` texts as a mapping."""
    roots: dict[str, str] = {}
    for text in options:
        name, equals, folder = text.partition("=")
        if not equals or len(name) < 2 or not name.isidentifier():
            raise click.BadParameter(f"write NAME=FOLDER, with a name of at least two letters; not '{text}'")
        if not Path(folder).is_dir():
            raise click.BadParameter(f"the folder '{folder}' does not exist")
        if name in roots:
            raise click.BadParameter(f"'{name}' is given twice")
        roots[name] = folder
    return roots


data_option = click.option(
    "--data",
    multiple=True,
    metavar="NAME=FOLDER",
    callback=_data_roots,
    help="Folder of a data root, for files that the study names as NAME:file (repeatable).",
)


def _permission(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The texts of ``--allow`` as they are, if they are valid."""
    try:
        plugin.Permission.from_options(texts)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return texts


allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="NAME[=PATH]",
    callback=_permission,
    help="Allow the study to run this program, or the compiled code in this file of the study (repeatable).",
)


def study_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of commands that evaluate: plugin files, data roots and allowed programs."""
    return plugin_option(data_option(allow_option(command)))


def refuse_python(file: str) -> None:
    """End the command for a Python file in place of a study."""
    if file.endswith(".py"):
        fail(f"error: {file} is a Python file; give the study file, and this one with --plugin {file}", WRONG_INPUT)


def load_or_fail(
    path: str,
    overrides: tuple[str, ...] = (),
    plugin_files: tuple[str, ...] = (),
    data: Mapping[str, str] | None = None,
) -> Study:
    """The study in a file; ends the command with all its mistakes."""
    from designopt.api import load
    from designopt.study.language.errors import StudyError, render_text

    refuse_python(path)
    try:
        return load(path, overrides=overrides, plugin_files=plugin_files, data=data)
    except StudyError as error:
        fail(render_text(error.issues) + plugin_hint(error.issues, plugin_files), WRONG_INPUT)
    except plugin.PluginError as error:
        fail(f"error: {error}", WRONG_INPUT)


def plugin_hint(issues: Sequence[Issue], plugin_files: Sequence[str] = ()) -> str:
    """Hint for a plugin that is not installed, as a separate line; "" if none is missing or plugin files were
    `plugin_files`."""
    missing = not plugin_files and any("no plugin named" in issue.message for issue in issues)
    return "\nPass a plugin in your own file with --plugin FILE." if missing else ""


def declare(plugin_files: tuple[str, ...]) -> None:
    """Run the files given with ``--plugin``."""
    try:
        for file in plugin_files:
            for name, content in plugin.with_modules(file, Path(file).read_bytes()):
                plugin.load_file(name, content)
    except plugin.PluginError as error:
        fail(f"error: {error}", WRONG_INPUT)


def open_result(store: str, plugin_files: tuple[str, ...] = (), data: Mapping[str, str] | None = None) -> Result:
    """The result of a store; ends the command if it is not available."""
    from designopt.api import open_store
    from designopt.store.errors import StoreError

    declare(plugin_files)
    try:
        result = open_store(store, data=data)
        _ = result.counts, result.sessions  # read here, where a damaged journal can be reported
    except StoreError as error:
        if isinstance(error.__cause__, plugin.PluginError):
            fail(without_plugin(store, error.__cause__), STORE)
        fail(str(error), STORE)
    except plugin.PluginError as error:
        fail(without_plugin(store, error), STORE)
    return result


def without_plugin(store: str | Path, reason: object) -> str:
    """Message for a plugin of a user's file (an aggregation, say) that is missing or fails: nothing can be scored."""
    from designopt.store.errors import plugin_options

    if isinstance(reason, plugin.PluginFailed):
        return f"{store}: {reason}\nAll evaluations are stored: correct the plugin, then give the command again."
    file = plugin_options(Path(store)) or " --plugin FILE"
    return f"{store}: {reason}; install it, or pass the file that declares it:{file}"
