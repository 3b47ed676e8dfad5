"""``designopt new``."""

from __future__ import annotations

from pathlib import Path

import click

from designopt import templates
from designopt.cli.completion import of_templates
from designopt.cli.ending import STORE, WRONG_INPUT, echo, fail


@click.command()
@click.argument("template", required=False, shell_complete=of_templates)
@click.option("-o", "--output", metavar="FILE", help="File or folder to write [default: named after the template].")
@click.option("--name", help="Name of the study, model and package in the template.")
def new(template: str | None, output: str | None, name: str | None) -> None:
    """Write a study or a plugin from a template.

    Without TEMPLATE, list the templates.

    Nothing that exists is overwritten.
    """
    if template is None:
        if output or name:
            raise click.UsageError("-o and --name need a template: designopt new TEMPLATE")
        for listed in templates.TEMPLATES.values():
            echo(f"{listed.name:<10} {listed.meaning}")
        echo("\nstart from one of them: designopt new TEMPLATE [-o FILE] [--name NAME]")
        return
    try:
        created = templates.write(template, Path(output) if output else None, name)
    except ValueError as error:
        fail(f"error: {error}", WRONG_INPUT)
    except FileExistsError as error:
        fail(f"error: {error.filename} already exists; choose another place with -o", WRONG_INPUT)
    except OSError as error:
        fail(f"error: {error.filename}: cannot be written: {error.strerror or error}", STORE)
    for file in created.files:
        echo(f"wrote  {file}")
    echo("\nnext:")
    for command in created.next:
        echo(f"  {command}")
