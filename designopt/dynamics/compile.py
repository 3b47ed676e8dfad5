"""Compilation of C text to a loaded library, with the system's compiler and a cache by content.

The cache is ``DESIGNOPT_CACHE_DIR``, or ``designopt`` in the user's cache directory; if it is not writable, a folder of
this process is used. A library's file name contains the key of its sources and the digest of its content. One rename
publishes it, so concurrent compilations do not interfere, and a damaged file is detected and rebuilt. The cache
contains executable code: only its user may have write access.

Large functions are cut into parts, because the time and memory of gcc grow faster than the size of a function. Measured
with gcc 12 and -O1 for a function of 245 000 operations: 59 s and 4.2 GB as a whole, 26 s and 0.8 GB in parts, for code
of equal speed and equal numbers.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import logging
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

logger = logging.getLogger(__name__)

#: No -march=native and no contraction to fused operations: the arithmetic is the same on every processor. Without
#: -fno-semantic-interposition the functions that generated code shares (casadi_sq) are not inlined, which costs a tenth
#: of the knee's time.
FLAGS = ("-O2", "-fPIC", "-shared", "-fno-semantic-interposition", "-ffp-contract=off", "-fno-math-errno", "-w")

#: Generated text has about one operation per line. From `LARGE` on it is compiled in parts with -O1: -O2 takes twice as
#: long for code of the same speed. Hand-written loops may test ``#ifdef LARGE``. Measured with gcc 12: 3 s for 24 000
#: lines, 26 s and 0.8 GB for 245 000. Beyond `LARGEST` the text is not compiled.
LARGE, LARGEST = 15_000, 300_000

_TIMEOUT = 300.0  # s, for the compiler
_LINES_PER_SECOND = 8000.0  # of -O1 in parts, about
_SUFFIX = ".dylib" if sys.platform == "darwin" else ".dll" if sys.platform == "win32" else ".so"


class CompilerError(RuntimeError):
    """There is no C compiler, or it failed; the message gives the compiler and its output."""


def find_compiler() -> tuple[str, ...] | None:
    """The command of the C compiler with arguments: ``CC``, else the first of cc, gcc, clang; None without one."""
    if environment_command := os.environ.get("CC", "").strip():
        command = shlex.split(environment_command)
        compiler = shutil.which(command[0])
        return (compiler, *command[1:]) if compiler else None
    for name in ("cc", "gcc", "clang"):
        if compiler := shutil.which(name):
            return (compiler,)
    return None


def cache_dir() -> Path:
    """Cache folder of compiled libraries; it may be missing or not writable."""
    if stated_folder := os.environ.get("DESIGNOPT_CACHE_DIR"):
        return Path(stated_folder)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "designopt"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "designopt"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "designopt"


def load_library(source: str, description: str = "generated code", extra_flags: tuple[str, ...] = ()) -> ctypes.CDLL:
    """The library of the C text `source`, from the cache or compiled now. Raises `CompilerError`.

    Messages call it `description`. A text whose compilation has timed out is not compiled again. `extra_flags` of the
    compiler are part of the library's key.
    """
    compiler = find_compiler()
    if compiler is None:
        stated_compiler = os.environ.get("CC", "").strip()
        raise CompilerError(
            f"the C compiler '{stated_compiler}' (CC) is not found"
            if stated_compiler
            else "no C compiler (cc, gcc, clang)"
        )
    flags = (*_flags(source), *extra_flags)
    key = _key(source, compiler, flags)
    folder = cache_dir()
    library = _cached_library(folder, key)
    if library is not None:
        return library
    lines = source.count("\n")
    if lines > LARGEST:
        raise CompilerError(
            f"{description} has some {lines} operations, more than the limit of {LARGEST} for compilation"
        )
    if lines > LARGE:
        logger.warning(
            "compiling %s (some %d operations, %.0f s or longer) once; tasks that need it wait",
            description,
            lines,
            lines / _LINES_PER_SECOND,
        )
    try:
        return _compile(source, compiler, flags, folder, key)
    except OSError as error:
        temporary = _process_folder()
        logger.info("cache %s cannot be used (%s); compiling into %s", folder, error, temporary)
    try:
        return _cached_library(temporary, key) or _compile(source, compiler, flags, temporary, key)
    except OSError as error:
        raise CompilerError(f"a compiled library cannot be stored or loaded: {error}") from error


def _key(source: str, compiler: tuple[str, ...], flags: tuple[str, ...]) -> str:
    stat = os.stat(compiler[0])
    version = _version(compiler, stat.st_mtime_ns, stat.st_size)
    identity = (*compiler, version, *flags, platform.machine(), sys.platform)
    digest = hashlib.blake2b("\0".join(identity).encode(), digest_size=16)
    digest.update(source.encode())
    return digest.hexdigest()


def _flags(source: str) -> tuple[str, ...]:
    large = ("-O1", f"-DLARGE={PART}", *FLAGS[1:])  # the size of the parts is a fact of the library
    return large if source.count("\n") > LARGE else FLAGS


def lane_flags() -> tuple[str, ...]:
    """Flags of the compiler for text that computes ``LANES`` numbers side by side, as many as this processor takes.

    They are part of a library's key: machines of different processors may share a cache. Without a compiler that tells
    the processor, pairs, which every x86-64 and arm64 has.
    """
    compiler = find_compiler()
    return _FLAGS_OF_LANES[_lanes(compiler, cache_dir()) if compiler else 2]


_FLAGS_OF_LANES = {
    8: ("-DLANES=8", "-mavx512f", "-mavx512dq", "-mavx512vl"),
    4: ("-DLANES=4", "-mavx2"),
    2: ("-DLANES=2",),
}
# A library is asked, as it is loaded from the cache in a tenth of the time that the compiler takes to tell its target.
_LANES_OF_PROCESSOR = """
int lanes(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return 8;
    if (__builtin_cpu_supports("avx2")) return 4;
#endif
    return 2;
}
"""


@lru_cache(maxsize=8)
def _lanes(compiler: tuple[str, ...], cache: Path) -> int:
    """The lanes of this processor, from this compiler's library in `cache`."""
    try:
        return int(load_library(_LANES_OF_PROCESSOR, "the number of lanes").lanes())
    except CompilerError:
        return 2


@lru_cache(maxsize=8)
def _version(compiler: tuple[str, ...], modification_time: int, size: int) -> str:
    """Version text of the compiler; `modification_time` and `size` invalidate the cached text of a replaced one."""
    try:
        process = subprocess.run(
            [*compiler, "--version"], capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CompilerError(f"{compiler[0]} --version: {error}") from error
    return process.stdout


def _cached_library(folder: Path, key: str) -> ctypes.CDLL | None:
    """The cached library of `key` in `folder`; damaged ones are removed."""
    try:
        candidates = sorted(folder.glob(f"{key}-*{_SUFFIX}"))
    except OSError:
        return None
    for path in candidates:
        try:
            if _digest(path.read_bytes()) == path.stem.rpartition("-")[2]:
                return ctypes.CDLL(str(path))
            logger.info("%s is damaged and will be compiled again", path)
            path.unlink()
        except OSError as error:
            logger.info("%s cannot be used: %s", path, error)
    return None


def _compile(source: str, compiler: tuple[str, ...], flags: tuple[str, ...], folder: Path, key: str) -> ctypes.CDLL:
    """Compile into `folder`. Raises `OSError` if the folder cannot be used, `CompilerError` if the compiler fails."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    given_up = folder / f"{key}.given-up"
    if given_up.exists():
        raise CompilerError(f"{given_up.read_text(encoding='utf-8')}; remove {given_up} to try again")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as work:
        text, library = Path(work) / "system.c", Path(work) / f"system{_SUFFIX}"
        text.write_text(source if source.count("\n") <= LARGE else in_parts(source), encoding="utf-8")
        command = [*compiler, *flags, "-o", library.name, text.name, "-lm"]
        try:
            status, compiler_output = _run(command, work)
        except subprocess.TimeoutExpired:
            message = f"{compiler[0]} was stopped after {_TIMEOUT:.0f} s"
            given_up.write_text(message, encoding="utf-8")
            raise CompilerError(message) from None
        if status != 0 or not library.is_file():
            raise CompilerError(f"{shlex.join(command)} ended with {status}: {compiler_output[:2000] or 'no message'}")
        path = folder / f"{key}-{_digest(library.read_bytes())}{_SUFFIX}"
        os.replace(library, path)
    return ctypes.CDLL(str(path))


def _run(command: list[str], work: str) -> tuple[int, str]:
    """Exit status and output of the compiler; its child processes end with it, also on an interrupt."""
    with subprocess.Popen(
        command,
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=_TIMEOUT)
        except BaseException:
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)  # the driver's children do the work
            raise
    return process.returncode, (err or out).strip()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@lru_cache(maxsize=1)
def _process_folder() -> Path:
    """A folder of this process, removed at exit."""
    folder = Path(tempfile.mkdtemp(prefix="designopt-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


#: Statements per part; functions of fewer than four parts stay whole.
PART = 500

_ARGUMENTS = "const casadi_real** arg, casadi_real** res, casadi_int* iw, casadi_real* w, int mem"
_HEAD = re.compile(rf"static int (\w+)\({re.escape(_ARGUMENTS)}\) \{{")
_DECLARATION = re.compile(r"  casadi_real a\d+(?:, a\d+)*;")
_STATEMENT = re.compile(r"  (?:a\d+=[^;]+|(?:if \(res\[\d+\]!=0\) )?res\[\d+\]\[\d+\]=a\d+);")
_VARIABLE = re.compile(r"\ba0*(\d+)\b")
_OF_THE_WHOLE = re.compile(r"\b(?:iw|w|mem)\b")


def in_parts(source: str) -> str:
    """C text generated by CasADi, with its large functions of scalar operations cut into parts.

    The variables of a function become an array that its parts share. Other functions are unchanged.
    """
    return "\n".join(_lines(source.split("\n")))


def _lines(lines: Sequence[str]) -> Iterator[str]:
    i = 0
    while i < len(lines):
        head = _HEAD.fullmatch(lines[i])
        end = lines.index("}", i) if head else i
        if head and (cut := _cut(head[1], lines[i + 1 : end])):
            yield from cut
        else:
            yield from lines[i : end + 1]
        i = end + 1


def _cut(name: str, body: Sequence[str]) -> list[str]:
    """The function `name` as parts and their calls; nothing if its `body` is small or has other statements."""
    declarations = [line for line in body if _DECLARATION.fullmatch(line)]
    statements = body[len(declarations) : -1]
    plain = len(statements) >= 4 * PART and body[: len(declarations)] == declarations and body[-1] == "  return 0;"
    if not plain or not all(_STATEMENT.fullmatch(line) and not _OF_THE_WHOLE.search(line) for line in statements):
        return []
    size = 1 + max(int(number) for line in declarations for number in _VARIABLE.findall(line))
    text, calls = [], []
    for begin in range(0, len(statements), PART):
        part = f"{name}_part{begin // PART}"
        text += [
            "static __attribute__((noinline)) void",
            f"{part}(const casadi_real** arg, casadi_real** res, casadi_real* restrict a) {{",
            *(_VARIABLE.sub(r"a[\1]", line) for line in statements[begin : begin + PART]),
            "}",
        ]
        calls.append(f"  {part}(arg, res, a);")
    return [*text, f"static int {name}({_ARGUMENTS}) {{", f"  casadi_real a[{size}];", *calls, "  return 0;", "}"]
