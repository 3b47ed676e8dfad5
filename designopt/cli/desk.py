"""``designopt desk``."""

from __future__ import annotations

import contextlib
import errno
import signal
from pathlib import Path

import click

from designopt.cli.exit import STORE, WRONG_INPUT, echo, fail
from designopt.cli.opening import declare, study_options


@click.command()
@click.argument("folder", default=".", type=click.Path())
@click.option(
    "--run", is_flag=True, help="Allow the page to edit, start, stop and resume studies; read-only by default."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on loopback [default: a free one].")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@study_options
def desk(
    folder: str,
    run: bool,
    port: int,
    no_browser: bool,
    plugin_files: tuple[str, ...],
    data: dict[str, str],
    allow: tuple[str, ...],
) -> None:
    """Show stores and studies in the browser.

    One page lists all stores and studies below FOLDER and follows the running ones.

    The page is served on this machine only, to the browser that opens the printed address; without --run it only
    shows. Closing it, or this command, ends no run.
    """
    import asyncio
    import webbrowser

    from designopt.desk.server import serve

    if not Path(folder).is_dir():
        fail(f"error: the folder '{folder}' does not exist", WRONG_INPUT)
    declare(plugin_files)
    first = True

    def announce(address: str) -> None:
        nonlocal first
        echo(f"desk of {Path(folder).resolve()}: {address}" if first else f"for another browser: {address}")
        if first and not no_browser:
            webbrowser.open(address)
        first = False

    async def until_stopped() -> None:
        stop = asyncio.Event()
        for request in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # not on every system
                asyncio.get_running_loop().add_signal_handler(request, stop.set)
        await serve(
            Path(folder),
            port=port,
            run=run,
            plugin_files=plugin_files,
            data=data,
            allow=allow,
            announce=announce,
            until=stop,
        )
        echo("the desk is closed; runs continue")

    try:
        asyncio.run(until_stopped())
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES) and port:
            fail(f"error: port {port}: {error.strerror}; choose another one, or omit it", STORE)
        fail(f"error: the desk cannot start: {error.strerror or error}", STORE)
