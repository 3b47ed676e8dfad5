"""``designopt show``: a plugin, the state of a store, one design, the schema."""

from __future__ import annotations

import json
from pathlib import Path

import click

from designopt import plugin
from designopt.cli.completion import plugins_and_stores
from designopt.cli.exit import WRONG_INPUT, echo, fail
from designopt.cli.model_file import reader, table
from designopt.cli.opening import declare, load_or_fail, open_result, study_options
from designopt.cli.validate import set_option


@click.command()
@click.argument("name", shell_complete=plugins_and_stores)
@click.option("--follow", is_flag=True, help="STORE: follow the run until it ends; Ctrl-C does not affect the run.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="--follow: seconds between updates [default: 1 on a terminal, otherwise 60].",
)
@click.option(
    "--report",
    "page_every",
    type=click.FloatRange(min=1.0),
    metavar="SECONDS",
    help="--follow: also rewrite the report at this interval and at the end.",
)
@click.option("--evaluate", is_flag=True, help="STORE/POINT: recompute the design here, and compare.")
@click.option(
    "--arrays", "array_file", type=click.Path(dir_okay=False), metavar="FILE.npz", help="--evaluate: keep its arrays."
)
@click.option(
    "--files",
    "folder",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="STORE/POINT: write the input files of the design; with --evaluate all files of its evaluation.",
)
@set_option
@study_options
def show(
    name: str,
    follow: bool,
    every: float | None,
    page_every: float | None,
    evaluate: bool,
    array_file: str | None,
    folder: str | None,
    overrides: tuple[str, ...],
    plugin_files: tuple[str, ...],
    data: dict[str, str],
    allow: tuple[str, ...],
) -> None:
    """Show a plugin, the model of a study file, a store, one design or a model file.

    A plugin is shown with its settings and their units, a store with its state; `schema` is the JSON Schema of studies.

    NAME is a plugin; a study file, whose model is shown with the inputs and outputs that its settings declare; a STORE;
    STORE/POINT, where POINT is a design's number (its row in exported tables), the beginning of its key, or its name:
    `recommended`, `compromise`, `best` of a single objective, a label of the tables such as "best mass"; an FMU,
    model.fmu, whose variables are listed; or `schema`, the JSON Schema of study files.
    --set model.SETTING=VALUE shows the inputs, outputs and arrays that a model declares for its settings.
    """
    if (every is not None or page_every is not None) and not follow:
        raise click.UsageError("--every and --report need --follow")
    if overrides and (name == "schema" or Path(name).is_dir() or store_and_point(name)):
        raise click.UsageError("--set is for a plugin; to re-score a store: designopt report STORE --set ...")
    if array_file and not evaluate:
        raise click.UsageError("--arrays needs --evaluate; to export kept arrays: designopt report --export")
    if folder and store_and_point(name) is None:
        raise click.UsageError("--files is for one design: STORE/POINT")
    if folder and array_file:
        raise click.UsageError("--files writes all files of the evaluation; give --arrays in a command of its own")
    if name == "schema":
        from designopt.study.sections.schema import schema

        _refuse(follow, evaluate, "the schema")
        declare(plugin_files)
        echo(json.dumps(schema(), indent=2))
    elif Path(name).is_dir() and ((Path(name) / "problem.json").exists() or not _is_plugin(name, plugin_files)):
        _refuse(False, evaluate, "a whole store; name a design: STORE/POINT")
        _store(name, follow, every, page_every, plugin_files)
    elif (store_design := store_and_point(name)) is not None:
        from designopt.cli.design import show_design
        from designopt.cli.design_files import write_files

        _refuse(follow, False, "one design")
        if folder is not None:
            write_files(*store_design, folder, plugin_files, data, evaluate=evaluate, allow=allow)
            return
        show_design(*store_design, plugin_files, data, evaluate=evaluate, array_file=array_file, allow=allow)
    elif name.endswith((".yaml", ".yml")) and Path(name).is_file():
        from designopt.study.language.checking.settings import describe

        _refuse(follow, evaluate, "a study file")
        echo(describe(load_or_fail(name, overrides, plugin_files, data).definition.model.plugin, has_settings=True))
    elif Path(name).is_file() and (model := reader(name)) is not None:
        _refuse(follow, evaluate, "a model file")
        echo(table(model, name))
    else:
        _refuse(follow, evaluate, f"'{name}', which is not a store")
        _plugin(name, plugin_files, overrides, data)


def _refuse(follow: bool, evaluate: bool, subject: str) -> None:
    if follow:
        raise click.UsageError(f"--follow is for a store, not for {subject}")
    if evaluate:
        raise click.UsageError(f"--evaluate is for one design, not for {subject}")


def _store(
    store: str, follow: bool, every: float | None, page_every: float | None, plugin_files: tuple[str, ...]
) -> None:
    from designopt.report import state, summary_table
    from designopt.report.terminal import unfinished

    result = open_result(store, plugin_files)
    if follow:
        from designopt.cli.follow import follow as look_on

        result = look_on(result, every=every, page_every=page_every)
        echo()
    echo(f"{state(result)}\n\n{summary_table(result)}")
    if text := unfinished(result):
        echo(f"\n{text}")


def store_and_point(name: str) -> tuple[str, str] | None:
    """The store and the point in ``STORE/POINT``; None if no folder in it is a store."""
    store, _, point = name.rpartition("/")
    if store and point and (Path(store) / "journal.db").exists():
        return store, point
    return None


def store_of_point(name: str) -> str:
    """``; did you mean 'results/one.study'?`` for a store, or a design of one, that is not there; "" without any."""
    from designopt.store.nearest_store import nearest_store

    return nearest_store(Path(name)) or nearest_store(Path(name).parent)


def _is_plugin(name: str, plugin_files: tuple[str, ...]) -> bool:
    declare(plugin_files)
    return any(name in plugin.names(kind) for kind in plugin.GROUPS)


def _plugin(
    name: str, plugin_files: tuple[str, ...], overrides: tuple[str, ...] = (), data: dict[str, str] | None = None
) -> None:
    from designopt.study.language.checking.settings import describe
    from designopt.study.language.errors import StudyError, render_text
    from designopt.study.load import plugin_with

    declare(plugin_files)
    kinds = [k for k in plugin.GROUPS if name.rpartition(":")[2] in plugin.names(k)]
    if not kinds:
        plugins = set[str]() if "/" in name else {n for k in plugin.GROUPS for n in plugin.names(k)}
        near = plugin.closest(name, plugins)
        hint = f"did you mean '{near}'?" if near else "designopt list shows the installed plugins"
        if Path(name).exists():
            fail(
                f"error: {name} is neither a store nor a plugin; to check a study file: designopt validate", WRONG_INPUT
            )
        stores = "" if near else store_of_point(name)
        kind = "design of a store" if "/" in name else "plugin"
        fail(f"error: '{name}' is neither a store nor a {kind}{stores or f'; {hint}'}", WRONG_INPUT)
    for k in kinds:
        try:
            roots = {root: Path(folder) for root, folder in (data or {}).items()}
            definition = plugin_with(plugin.find(k, name), overrides, roots) if overrides else plugin.find(k, name)
            echo(describe(definition, has_settings=bool(overrides)))
        except plugin.PluginError as error:
            fail(f"error: {error}", WRONG_INPUT)
        except StudyError as error:
            fail(render_text(error.issues), WRONG_INPUT)
