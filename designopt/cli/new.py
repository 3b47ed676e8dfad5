"""``designopt new``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from designopt import templates
from designopt.cli.completion import template_names
from designopt.cli.exit import STORE, WRONG_INPUT, echo, fail
from designopt.cli.model_file import FOLDER_MODELS, reader, write_folder_study, write_study


@click.command()
@click.argument("template", required=False, shell_complete=template_names)
@click.argument("model_file", required=False, metavar="[FILE OR FOLDER]", type=click.Path(exists=True))
@click.option("-o", "--output", metavar="FILE", help="File or folder to write [default: named after the template].")
@click.option("--name", help="Name of the study, model and package in the template.")
def new(template: str | None, model_file: str | None, output: str | None, name: str | None) -> None:
    """Write a study or a plugin from a template.

    Without TEMPLATE, list the templates. `designopt new fmu model.fmu` writes a study of an FMU beside it, `designopt
    new laboratory FOLDER` one of the trials of a movement laboratory in a folder.

    Nothing that exists is overwritten.
    """
    if template is None:
        if output or name:
            raise click.UsageError("-o and --name need a template: designopt new TEMPLATE")
        for entry in templates.TEMPLATES.values():
            echo(f"{entry.name:<10} {entry.meaning}")
        echo("\nstart from one of them: designopt new TEMPLATE [-o FILE] [--name NAME]")
        echo("or from a model of another tool: designopt new fmu FILE.fmu")
        echo("or from the files of a movement laboratory: designopt new laboratory FOLDER")
        return
    if template in FOLDER_MODELS:
        _study_of_folder(template, model_file, output, name)
        return
    if model_file is not None:
        _study_of(template, model_file, output, name)
        return
    if template == "fmu":
        raise click.UsageError("the FMU is missing: designopt new fmu FILE.fmu")
    with _error_messages():
        new_study = templates.write(template, Path(output) if output else None, name)
    for file in new_study.files:
        echo(f"wrote  {file}")
    echo("\nnext:")
    for command in new_study.next:
        echo(f"  {command}")


def _study_of(model: str, file: str, output: str | None, name: str | None) -> None:
    """Write a study of a model file."""
    reads = reader(file)
    if reads is None or reads.name != model:
        fail(f"error: no template '{model}' takes {file}; a study of an FMU: designopt new fmu model.fmu", WRONG_INPUT)
    with _error_messages():
        target, command = write_study(reads, file, Path(output) if output else None, name)
    echo(f"wrote  {target}\n\nnext:\n  designopt show {file}\n  designopt validate {target}\n  {command}")


def _study_of_folder(template: str, folder: str | None, output: str | None, name: str | None) -> None:
    """Write a study of the files in a folder, and say what it assumes."""
    if folder is None or not Path(folder).is_dir():
        raise click.UsageError(f"the folder is missing: designopt new {template} FOLDER")
    with _error_messages():
        target, assumptions, command = write_folder_study(template, folder, Path(output) if output else None, name)
    echo(f"wrote  {target}\n\nassumed:")
    for sentence in assumptions:
        echo(f"  {sentence}")
    echo(f"\nnext:\n  {command.replace('designopt run', 'designopt validate', 1)}\n  {command}")


@contextlib.contextmanager
def _error_messages() -> Iterator[None]:
    """Errors while files are written end the command with a sentence."""
    try:
        yield
    except ValueError as error:
        fail(f"error: {error}", WRONG_INPUT)
    except FileExistsError as error:
        fail(f"error: {error.filename} already exists; choose another place with -o", WRONG_INPUT)
    except OSError as error:
        fail(f"error: {error.filename}: cannot be written: {error.strerror or error}", STORE)
