"""From a system to a shared library: CasADi's C code and the integrator, compiled together and cached by hash.

A compiler is never required: `library` returns None without one and callers fall back to interpreted evaluation.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from designopt.dynamics.system import ARGUMENTS, System

logger = logging.getLogger(__name__)

#: Contraction into fused multiply-adds is off so that all x86-64 machines give the same numbers.
FLAGS = ("-O2", "-std=c99", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno")


class CompilationError(RuntimeError):
    """There is no C compiler, or it refused the generated code; the message holds its words."""


def compiler() -> str | None:
    """The C compiler to use: ``CC`` when it is set, else the first of cc, gcc, clang on the path; None without one."""
    named = os.environ.get("CC")
    candidates = [named] if named else ["cc", "gcc", "clang"]
    return next((found for name in candidates if (found := shutil.which(name))), None)


@functools.lru_cache(maxsize=8)
def _compiler_version(path: str) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return done.stdout


def source(system: System) -> str:
    """The C source of `system`: its functions, generated, and the integrator behind them."""
    import casadi as ca

    generator = ca.CodeGenerator("system", {"with_header": False, "verbose": False})
    generator.add(_renamed(system.derivatives, "designopt_derivatives", 3, system))
    generator.add(_renamed(system.rhs, "designopt_rhs", 1, system))
    switches = []
    for name, function in (("output", system.output), ("guard", system.guard)):
        if function is not None:
            generator.add(_renamed(function, f"designopt_{name}", 1, system))
            switches.append(f"#define HAS_{name.upper()}")
    integrator = Path(__file__).with_name("rosenbrock.c").read_text()
    return "\n".join([generator.dump(), *switches, integrator])


def _renamed(function: Any, name: str, results: int, system: System) -> Any:
    """`function` under a fixed name, with dense results and common subexpressions computed once."""
    import casadi as ca

    kind = ca.SX if function.is_a("SXFunction") else ca.MX
    arguments = [kind.sym(a, n) for a, n in zip(ARGUMENTS, system.lengths, strict=True)]
    values = function(*arguments)
    values = list(values) if results > 1 else [values]
    return ca.Function(name, arguments, [ca.densify(v) for v in values], {"cse": True})


def cache_folder() -> Path:
    """Where compiled systems are kept: ``DESIGNOPT_CACHE_DIR``, else ``designopt`` in the user's cache folder."""
    if named := os.environ.get("DESIGNOPT_CACHE_DIR"):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "designopt" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "designopt"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "designopt"


def library(system: System, *, required: bool = False) -> ctypes.CDLL | None:
    """The compiled system, from the cache when it is there; None (logged) when it cannot be compiled.

    With `required` a failure raises `CompilationError` instead.
    """
    try:
        return _load(system)
    except CompilationError as error:
        if required:
            raise
        logger.warning("%s: interpreted, which is slower: %s", system.name, error)
        return None


def _load(system: System) -> ctypes.CDLL:
    cc = compiler()
    if cc is None:
        raise CompilationError(f"no C compiler ({os.environ.get('CC') or 'cc, gcc or clang'}) was found")
    code = source(system)
    identity = "\0".join((code, cc, _compiler_version(cc), *FLAGS, platform.machine(), sys.platform))
    name = f"{system.name}-{hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()}.so"
    cached = cache_folder() / name
    if cached.exists():
        try:
            return _open(cached)
        except OSError:
            logger.warning("%s cannot be loaded and is compiled anew", cached)
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        return _compile(code, cc, cached)
    except OSError as error:
        logger.warning("the cache %s cannot be written (%s): compiling into a temporary folder", cached.parent, error)
        with tempfile.TemporaryDirectory(prefix="designopt-") as folder:  # the loaded library outlives its file
            return _compile(code, cc, Path(folder) / name)


def _compile(code: str, cc: str, target: Path) -> ctypes.CDLL:
    """Compile beside `target`, check that it loads, and rename: other processes see a whole library or none."""
    with tempfile.TemporaryDirectory(prefix=".building-", dir=target.parent) as folder:
        c_file, built = Path(folder) / "system.c", Path(folder) / target.name
        c_file.write_text(code)
        command = [cc, *FLAGS, "-o", str(built), str(c_file), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            raise CompilationError(f"{cc} failed: {done.stderr.strip()[-2000:]}")
        os.replace(built, target)
    try:
        return _open(target)
    except OSError as error:
        raise CompilationError(f"the compiled system cannot be loaded: {error}") from error


def _open(path: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(path))
    try:
        integrate = loaded.designopt_integrate
    except AttributeError as error:
        raise OSError(f"{path} does not hold the integrator") from error
    number, pointer, integer = ctypes.c_double, ctypes.c_void_p, ctypes.c_int
    integrate.restype = integer
    integrate.argtypes = [
        *([integer] * 4),  # n, ny, ng, nt
        *([pointer] * 5),  # times, x, u, p, q
        *([integer] * 3),  # stages, order, dense
        pointer,  # method
        number,  # rtol
        pointer,  # atol
        *([number] * 3),  # first, largest and fixed step
        ctypes.c_longlong,
        *([pointer] * 4),  # xs, ys, info, counts
    ]
    return loaded
