"""Input files, identified by content: read on demand and checked against their digest.

A file named in a study is not held in memory. Workers on this machine read it in place; remote workers fetch its
content once. Both compare the content with the digest under which evaluations are recorded.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

#: Maximum size of a file (bytes).
LARGEST = 2 * 2**30
#: Size of a read (bytes).
PIECE = 2**20


class InputFileError(OSError):
    """The content of a file is not available, or has changed since the study was checked."""


class InputFile:
    """An input file: its `name` as written in the study, and its content, identified by digest, never by path.

    ``InputFile(name, content)`` holds its content; the constructor `at` reads it on demand. Two files are equal if name
    and content are.
    """

    __slots__ = ("_content", "_digest", "_path", "_verified_state", "name", "size")

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self.size = len(content)
        self._content: bytes | None = content
        self._path: Path | None = None
        self._digest = ""
        self._verified_state: tuple[int, int] | None = None

    @classmethod
    def at(cls, path: Path, name: str, digest: str = "", largest: int = LARGEST) -> InputFile:
        """The file at `path`, named `name`, of at most `largest` bytes; its content must match a given `digest`.

        Raises `OSError` if it cannot be read, `InputFileError` if it is not a regular file or is too large.
        """
        file = cls(name, b"")
        file._content, file._path, file._digest = None, path, digest
        file.size = regular_file_status(path, name, largest).st_size
        return file

    @classmethod
    def from_digest(cls, name: str, digest: str, size: int = 0) -> InputFile:
        """A file of `size` bytes from its digest alone; the function set by `provide` supplies the content."""
        file = cls(name, b"")
        file._content, file._digest, file.size = None, digest, size
        return file

    @property
    def digest(self) -> str:
        """BLAKE2b-128 of the content, hexadecimal."""
        if not self._digest:
            if self._content is not None:
                self._digest = hashlib.blake2b(self._content, digest_size=16).hexdigest()
            else:
                self._digest = self._digest_of(self._readable_path())
        return self._digest

    @property
    def content(self) -> bytes:
        """The content, read again each time. Raises `InputFileError` if it is not available or has changed."""
        if self._content is not None:
            return self._content
        path = self._readable_path()
        try:
            with path.open("rb") as stream:
                content = stream.read(LARGEST + 1)
        except OSError as error:
            raise self._unreadable(error) from error
        digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        if self._digest and digest != self._digest:
            raise self._changed_file_error()
        self._digest = digest
        return content

    def text(self) -> str:
        """The content as UTF-8 text. Raises `UnicodeDecodeError` for anything else, `InputFileError` as `content`."""
        return self.content.decode("utf-8-sig")

    @contextlib.contextmanager
    def path(self) -> Iterator[Path]:
        """Yield the path of a file with this content and the suffix of the name, for libraries that read only paths.

        The path may be the original: open it for reading only. It is valid inside the context.
        """
        suffix = Path(self.name).suffix
        if self._content is None:
            source = self._readable_path()
            self._verify(source)
            if source.suffix == suffix:
                yield source
                return
        folder = Path(tempfile.mkdtemp(prefix="designopt-file-"))
        try:
            target = folder / f"content{suffix}"
            if self._content is not None:
                target.write_bytes(self._content)
            else:
                try:
                    target.symlink_to(source.resolve())
                except OSError:  # no links on this file system
                    shutil.copyfile(source, target)
            yield target
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def root(self) -> str:
        """Data root of the name, as in ``gait:walk.csv``; "" for a file in the study's folder."""
        return root_of(self.name)

    def by_digest(self) -> InputFile:
        """The same file without its path, for another machine."""
        return self if self._content is not None else InputFile.from_digest(self.name, self.digest, self.size)

    def relocate(self, path: Path) -> None:
        """Read the content from its copy at `path` from now on."""
        if self._content is None:
            self._path, self._verified_state = path, None

    @property
    def at_hand(self) -> bool:
        """Whether this process can read the content without `provide`."""
        return self._content is not None or self._path is not None

    # ------------------------------------------------------------------------------------------------ content

    def _readable_path(self) -> Path:
        if self._path is not None:
            return self._path
        if _fetch is None:
            raise InputFileError(f"the content of '{self.name}' is not at hand" + _give_root(self.name))
        return _fetch(self._digest)

    def _verify(self, path: Path) -> None:
        """Compare the content with the digest, unless this was done and the file is unchanged."""
        about = regular_file_status(path, self.name)
        state = (about.st_size, about.st_mtime_ns)
        if state == self._verified_state:
            return
        digest = self._digest_of(path)
        if self._digest and digest != self._digest:
            raise self._changed_file_error()
        self._digest, self._verified_state = digest, state

    def _digest_of(self, path: Path) -> str:
        digest = hashlib.blake2b(digest_size=16)
        try:
            with path.open("rb") as stream:
                while piece := stream.read(PIECE):
                    digest.update(piece)
        except OSError as error:
            raise self._unreadable(error) from error
        return digest.hexdigest()

    def _unreadable(self, error: OSError) -> InputFileError:
        return InputFileError(f"file '{self.name}' cannot be read: {error.strerror or error}")

    def _changed_file_error(self) -> InputFileError:
        return InputFileError(f"file '{self.name}' is not what it was when the study was checked: it was changed since")

    # ----------------------------------------------------------------------------------------- as any other value

    def __eq__(self, value: object) -> bool:
        return isinstance(value, InputFile) and (self.name, self.digest) == (value.name, value.digest)

    def __hash__(self) -> int:
        return hash((self.name, self.digest))

    def __repr__(self) -> str:
        return f"InputFile(name={self.name!r})"

    def __reduce__(self) -> tuple[Callable[..., InputFile], tuple[object, ...]]:
        path = None if self._path is None else str(self._path)
        return _restore, (self.name, self._content, path, self.digest, self.size)


def _restore(name: str, content: bytes | None, path: str | None, digest: str, size: int) -> InputFile:
    if content is not None:
        return InputFile(name, content)
    file = InputFile.from_digest(name, digest, size)
    file._path = None if path is None else Path(path)
    return file


def root_of(name: str) -> str:
    """The data root in front of a file name; "" for none. A single letter is a Windows drive, not a root."""
    root, colon, _ = name.partition(":")
    return root if colon and len(root) > 1 and "/" not in root else ""


def _give_root(name: str) -> str:
    root = root_of(name)
    return f"; give its folder again with --data {root}=FOLDER" if root else ""


def regular_file_status(path: Path, name: str, largest: int = LARGEST) -> os.stat_result:
    """The status of the file at `path` without reading it. Raises `OSError`, or `InputFileError` for anything except a
    regular file of at most `largest` bytes."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise InputFileError(
            f"'{name or path}' is {_kind(about.st_mode)}, not a file that can be read from its beginning"
        )
    if about.st_size > largest:
        raise InputFileError(f"'{name}' has {about.st_size} bytes; at most {largest} are read")
    return about


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((words for test, words in kinds if test(mode)), "something else")


#: Returns a file with the content of a digest, on a worker.
_fetch: Callable[[str], Path] | None = None


def provide(fetch: Callable[[str], Path] | None) -> None:
    """Set the function that fetches contents this process cannot read."""
    global _fetch
    _fetch = fetch
