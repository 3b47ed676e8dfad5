"""Heavy libraries, each imported at the first use of an attribute: importing designopt or a plugin loads none.

from designopt.lazy import casadi as ca
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["casadi", "moocore", "pandas", "scipy", "threadpoolctl"]

if TYPE_CHECKING:
    import casadi
    import moocore
    import pandas
    import scipy
    import threadpoolctl
else:

    class _Lazy(ModuleType):
        """A module with the attributes of the library of its name."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self.__name__), name)
            setattr(self, name, value)  # subsequent access is as fast as in the library itself
            return value

        def __dir__(self) -> list[str]:
            return dir(import_module(self.__name__))

    for _name in __all__:
        globals()[_name] = _Lazy(_name)
