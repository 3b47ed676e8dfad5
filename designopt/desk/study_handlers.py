"""Handlers for the editing, checking, saving and running of studies."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import IO

from designopt.desk import views
from designopt.desk.handler import Handler, WrongRequest, unusable
from designopt.desk.views import Refusal
from designopt.store import safe_files

#: Maximum bytes of a request, and of a saved study file.
LARGEST = 4 * 2**20
#: Options of a start over an existing store; "" asks for them.
WAYS = ("", "--rescore", "--beside", "--replace")


def _read(stream: IO[bytes], path: Path) -> tuple[bytes, str]:
    """The content of a study file, and a stamp that changes with it."""
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise Refusal(f"{path.name} is larger than a study file can be")
    return content, str(os.fstat(stream.fileno()).st_mtime_ns)


class StudyHandler(Handler):
    def get(self) -> None:
        path = self.entry(self.desk.folder.study, self.get_query_argument("file"))
        try:
            with safe_files.open_without_links(path) as stream:
                content, stamp = _read(stream, path)
        except OSError as error:
            raise unusable(error, path.name) from None
        self.json({"text": content.decode(errors="replace"), "stamp": stamp, "store": f"results/{path.stem}.study"})


class CheckHandler(Handler):
    async def post(self) -> None:
        name, text = self.body("file", "text")
        path = self.entry(self.desk.folder.study, str(name))
        self.json(await self.desk.view(views.findings, path, str(text)))


class SaveHandler(Handler):
    def post(self) -> None:
        _ = self.runs
        name, text, stamp = self.body("file", "text", "stamp")
        path = self.entry(self.desk.folder.study, str(name))
        partial = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with safe_files.folder_descriptor(path.parent) as folder:
                with safe_files.open_to_read(path, folder=folder) as stream:
                    before, current = _read(stream, path)
                if current != str(stamp):
                    raise Refusal(f"{path.name} has changed on the disk since it was opened here; open it again")
                ends = b"\r\n" if b"\r\n" in before else b"\n"  # a page uses one kind of line end
                with safe_files.replacing(path, partial, folder=folder) as stream:
                    stream.write(str(text).encode(errors="replace").replace(b"\r\n", b"\n").replace(b"\n", ends))
                new_stamp = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mtime_ns
        except OSError as error:
            raise unusable(error, path.name) from None
        self.json({"stamp": str(new_stamp)})


class StartHandler(Handler):
    """Starts a run. If the store exists and its study differs, answers with the ways to go on, one of which the next
    request names as `way`."""

    async def post(self) -> None:
        runs = self.runs
        relative, name, way = self.body("file", "store", "way")
        if way not in WAYS:
            raise WrongRequest(f"'way' is one of {', '.join(filter(None, WAYS))}, or empty")
        root = self.desk.folder.root
        if "\0" in str(name):
            raise WrongRequest("a name of a folder has no NUL")
        store = (root / str(name)).resolve()
        if not str(name).strip() or store == root or not store.is_relative_to(root):
            raise Refusal("the results have to be in a folder of their own below that of the desk")
        path = self.entry(self.desk.folder.study, str(relative))
        run_store = store
        if (store / "journal.db").exists() and way != "--replace":
            try:
                with safe_files.open_without_links(path) as stream:
                    text = _read(stream, path)[0].decode(errors="replace")
            except OSError as error:
                raise unusable(error, path.name) from None
            if way == "--rescore":
                self.json({"page": self.desk.keep(await self.desk.view(views.rescored_page, path, text, store))})
                return
            answer = await self.desk.view(views.differing, path, text, store)
            if answer["differences"] and not way:
                self.json({"differences": answer["differences"], "ways": answer["ways"]})
                return
            if answer["differences"]:
                run_store = Path(answer["beside"])
        await asyncio.to_thread(runs.start, path, store, str(way), run_store)
        entry = run_store.relative_to(root).as_posix()
        self.desk.run_stores[entry] = run_store
        self.json({"store": entry})


class PrintedHandler(Handler):
    def get(self) -> None:
        name = self.get_query_argument("store")
        store = self.desk.run_stores.get(name) or self.store  # a run may have failed to begin
        self.json(self.runs.last_output(store) if self.desk.runs else "")


class StopHandler(Handler):
    def post(self) -> None:
        (name,) = self.body("store")
        self.runs.stop(self.entry(self.desk.folder.store, str(name)))
        self.json({})


class ResumeHandler(Handler):
    async def post(self) -> None:
        (name,) = self.body("store")
        await asyncio.to_thread(self.runs.resume, self.entry(self.desk.folder.store, str(name)))
        self.json({})
