"""Runs that the desk starts, stops and resumes, in independent processes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from designopt.desk.views import Refusal
from designopt.store import safe_files
from designopt.store.disk.lock import holder

#: Time limit of a single design (s).
LONGEST = 600.0
#: Maximum characters of a run's printed output on the page.
SHOWN = 4000
#: Removed from printed lines: colours and other terminal controls.
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r(?!\n)")


class Runs:
    """Runs started in the folder `root`, with the plugin files, data roots and allowed programs of the desk."""

    def __init__(
        self, root: Path, plugin_files: Sequence[str], data: Mapping[str, str], allow: Sequence[str] = ()
    ) -> None:
        self._root = root
        self._plugin_files = [Path(file).resolve() for file in plugin_files]
        self._options = [option for file in self._plugin_files for option in ("--plugin", str(file))]
        self._options += [o for name, folder in data.items() for o in ("--data", f"{name}={Path(folder).resolve()}")]
        self._options += [option for text in allow for option in ("--allow", text)]
        self._processes: list[subprocess.Popen[bytes]] = []

    def leave(self) -> None:
        """Leave the runs to themselves; they continue."""
        for process in self._processes:
            if process.poll() is None:
                process.returncode = 0  # otherwise Python warns that it is still running, which is intended
        self._processes.clear()

    def start(self, study: Path, store: Path, way: str = "", into: Path | None = None) -> None:
        """Run a study file; `way` is an option of ``designopt run`` for an existing store, by which the run goes `into`
        another one. Raises `Refusal`."""
        into = into or store
        if holder(into) is not None:
            raise Refusal(f"{_relative_path(into, self._root)} is running")
        if store.suffix != ".study":
            raise Refusal(f"{store.name}: the name of a folder of results ends with .study")
        self._launch(["run", str(study), "-o", str(store), *filter(None, [way])], into, study)

    def resume(self, store: Path) -> None:
        """Continue the run of a store. Raises `Refusal`."""
        if holder(store) is not None:
            raise Refusal(f"{_relative_path(store, self._root)} is running")
        self._launch(["resume", str(store)], store)

    def stop(self, store: Path) -> None:
        """Stop the run of a store, like Ctrl-C. Raises `Refusal`."""
        process = holder(store)
        if process is None:
            raise Refusal(f"no run is at work on {_relative_path(store, self._root)} on this machine")
        try:
            os.kill(process, signal.SIGINT)
        except OSError as error:
            raise Refusal(f"process {process} cannot be asked to stop: {error.strerror}") from None

    def last_output(self, store: Path) -> str:
        """The last lines printed by a run started here, or why it could not begin; "" without any."""
        self._processes = [process for process in self._processes if process.poll() is None]
        try:
            with safe_files.open_without_links(self._log(store)) as stream:
                stream.seek(max(0, os.fstat(stream.fileno()).st_size - SHOWN))
                return _CONTROLS.sub("", stream.read().decode(errors="replace"))
        except OSError:
            return ""

    def compute(self, store: Path, row: int) -> tuple[str, bytes]:
        """Evaluate a design again with all its arrays: a text, and the file of arrays, if any. Raises `Refusal`."""
        with tempfile.TemporaryDirectory(prefix="designopt-desk-") as folder:
            file = Path(folder) / "arrays.npz"
            command = [*_DESIGNOPT, "show", f"{store}/{row}", "--evaluate", *self._options]
            try:
                process = self._show([*command, "--arrays", str(file)])
                if process.returncode == 2 and "no arrays" in process.stderr:
                    process = self._show(command)
            except subprocess.TimeoutExpired:
                raise Refusal(f"the design took more than {LONGEST:g} s and was terminated") from None
            lines = [line for line in process.stdout.splitlines() if line.startswith(("recomputed", "not computed"))]
            if not lines:
                raise Refusal(process.stderr.strip() or f"the computation ended with exit code {process.returncode}")
            return "\n\n".join(lines), file.read_bytes() if file.exists() else b""

    def _show(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self._root, capture_output=True, text=True, timeout=LONGEST, stdin=subprocess.DEVNULL
        )

    def _log(self, store: Path) -> Path:
        """The output of a run: beside the store, or inside the one that is the desk's folder itself."""
        return store / "desk.log" if store == self._root else store.with_name(f"{store.name}.log")

    def _launch(self, arguments: Sequence[str], store: Path, *files: Path) -> None:
        """Start a command that reads `files` and the plugins, and writes the `store`, none of them behind a link."""
        log_file = self._log(store)
        try:
            for file in (*files, *self._plugin_files):
                safe_files.open_without_links(file).close()
            with safe_files.folder_descriptor(log_file.parent, create=True) as folder:
                if os.path.lexists(store):
                    safe_files.check_folder(store)
                else:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(log_file.name, dir_fd=folder)  # of a run that could not begin
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                descriptor = safe_files.open_descriptor(log_file, flags, 0o644, folder=folder)
        except OSError as error:
            file = Path(error.filename or log_file) if isinstance(error, safe_files.ForeignFile) else log_file
            raise Refusal(f"{_relative_path(file, self._root)}: cannot be used: {error.strerror or error}") from None
        with os.fdopen(descriptor, "ab") as log:
            self._processes = [process for process in self._processes if process.poll() is None]
            self._processes.append(
                subprocess.Popen(
                    [*_DESIGNOPT, *arguments, "--progress", "none", *self._options],
                    cwd=self._root,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # neither a closed terminal nor the end of the desk affects it
                )
            )


_DESIGNOPT = (sys.executable, "-P", "-m", "designopt")


def _relative_path(store: Path, root: Path) -> str:
    return str(store.relative_to(root)) if store.is_relative_to(root) else str(store)
