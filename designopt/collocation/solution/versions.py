"""Versions of the software that computed a result."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of designopt, CasADi and NumPy; IPOPT and MUMPS come with CasADi."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("designopt", "casadi", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
