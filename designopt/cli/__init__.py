"""The command line: arguments in, exit code out.

Exit codes: 0 done; 1 done, but no feasible design (or an evaluation that gave other numbers than before); 2 the file or
the arguments are wrong; 3 stopped by the failure policy, or trial evaluations failed (``validate --try``); 4 the store
does not fit (other problem or version, locked, not writable), or the output cannot be written; 130 interrupted; 141 the
reader of the output went away.
"""

from __future__ import annotations

import io
import logging
import sys
import warnings
from typing import Any

import click

from designopt.cli.ask_tell import ask, tell
from designopt.cli.benchmark import benchmark
from designopt.cli.desk import desk
from designopt.cli.exit import INTERRUPTED, STORE, fail, fail_usage, sufficient_system, writable_output
from designopt.cli.export import export
from designopt.cli.list import list_
from designopt.cli.new import new
from designopt.cli.report import report
from designopt.cli.run import resume, run
from designopt.cli.show import show
from designopt.cli.validate import validate
from designopt.interrupts import HostHandlers
from designopt.printable import printable


def _one_line(message: Warning | str, *_: object, **__: object) -> str:
    """A warning for the user: its text, without its position in the code."""
    return printable(f"warning: {message}\n")


class _Printable(logging.Formatter):
    """Messages with escapes in place of control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class _Commands(click.Group):
    """A group of commands, any of which may be interrupted or find its output closed or full."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:  # --help and --version write here
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal with a limited character set shows replacements
                stream.reconfigure(errors="replace")
        with writable_output():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        warnings.formatwarning = _one_line
        with writable_output():
            try:
                with HostHandlers(), sufficient_system():
                    return super().invoke(ctx)
            except click.ClickException as error:
                fail_usage(error)
            except KeyboardInterrupt:
                fail("interrupted", INTERRUPTED)
            except Exception as error:  # of a store that is read while it is shown
                from designopt.store.errors import StoreError

                if not isinstance(error, StoreError):
                    raise
                fail(str(error), STORE)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="designopt")
@click.option(
    "--log",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="Write messages of this level and above to stderr, with their time and module.",
)
def main(log: str | None) -> None:
    """Design studies of mechanical and biomechanical models.

    A study file states the problem; `designopt run FILE` solves it. Start with a bundled one (studies/), or with one of
    your own: `designopt new`.
    """
    if logging.lastResort is not None:  # for messages without a handler
        logging.lastResort.setFormatter(_Printable())
    if log is not None:
        handler = logging.StreamHandler()
        handler.setFormatter(_Printable("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logging.basicConfig(handlers=[handler])
        logging.getLogger("designopt").setLevel(log.upper())


for _command in (new, validate, run, resume, benchmark, ask, tell, report, desk, export, show, list_):
    main.add_command(_command)
