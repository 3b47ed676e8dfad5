"""Elementary functions of generated code: errors in units in the last place, and the same bits in any number of lanes.

The reference is the C library's extended precision through NumPy, where it has more digits than double.
"""

import ctypes
from importlib.resources import files

import numpy as np
import pytest

from designopt.dynamics.compile import lane_flags, load_library

#: NumPy's name, range of the arguments, largest error (units in the last place).
ONE = {
    "sin": ("sin", (-1e6, 1e6), 1.0),
    "cos": ("cos", (-1e6, 1e6), 1.0),
    "tan": ("tan", (-1e6, 1e6), 3.0),
    "asin": ("arcsin", (-1.0, 1.0), 3.0),
    "acos": ("arccos", (-1.0, 1.0), 3.0),
    "atan": ("arctan", (-1e3, 1e3), 3.0),
    "exp": ("exp", (-700.0, 700.0), 1.0),
    "expm1": ("expm1", (-30.0, 700.0), 3.0),
    "tanh": ("tanh", (-30.0, 30.0), 3.0),
    "sinh": ("sinh", (-700.0, 700.0), 3.0),
    "cosh": ("cosh", (-700.0, 700.0), 3.0),
    "log": ("log", (0.0, 1e300), 1.0),
    "log1p": ("log1p", (0.0, 1e10), 3.0),
}
TWO = {"atan2": ("arctan2", (-10.0, 10.0), (-10.0, 10.0), 3.0), "pow": ("power", (0.0, 1e3), (-90.0, 90.0), 3.0)}
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -3.0, 0.5, 1e-310, -1e-310, 5e-324, 1e300])
COUNT = 20_000


def library(lanes, *flags):
    """Loops over arrays for every function; their lengths are multiples of 8."""
    parts = [files("designopt.dynamics").joinpath("elementary.c").read_text(encoding="utf-8")]
    for name, arguments in [(name, "x") for name in ONE] + [(name, "xy") for name in TWO]:
        arrays = ", ".join(f"const double *{a}s" for a in arguments)
        loads = " ".join(f"real {a}; __builtin_memcpy(&{a}, {a}s + i, sizeof {a});" for a in arguments)
        parts.append(
            f"void do_{name}({arrays}, double *rs, long n) {{ for (long i = 0; i < n; i += LANES) {{ {loads}"
            f" real r = real_{name}({', '.join(arguments)}); __builtin_memcpy(rs + i, &r, sizeof r); }} }}"
        )
    return load_library("\n".join(parts), "elementary functions", (f"-DLANES={lanes}", *flags))


@pytest.fixture(scope="module")
def scalar(compiler_command):
    return library(1)


@pytest.fixture(scope="module")
def vectors(compiler_command):
    """All widths without instructions of a special processor, and those of this one."""
    return [library(2), library(4), library(8), library(lane_flags()[0].partition("=")[2], *lane_flags()[1:])]


@pytest.fixture(scope="module")
def compiler_command():
    from designopt.dynamics.compile import find_compiler

    if find_compiler() is None:
        pytest.skip("no C compiler")


def values(loaded, name, *arguments):
    result = np.empty_like(arguments[0])
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (*arguments, result)]
    getattr(loaded, f"do_{name}")(*pointers, ctypes.c_long(len(result)))
    return result


def spread(rng, low, high):
    """Half of the arguments evenly, half with evenly spread exponents."""
    sizes = np.exp(rng.uniform(-40.0, np.log(high), COUNT))
    signs = rng.choice([-1.0, 1.0], COUNT) if low < 0.0 else 1.0
    return np.concatenate([rng.uniform(low, high, COUNT), signs * sizes])


def arguments_of(name):
    rng = np.random.default_rng(1)
    return [spread(rng, *bounds) if i == 0 else rng.permutation(spread(rng, *bounds))
            for i, bounds in enumerate([ONE[name][1]] if name in ONE else TWO[name][1:3])]  # fmt: skip


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_the_error_is_within_its_bound(scalar, name):
    if np.finfo(np.longdouble).nmant <= 60:
        pytest.skip("no extended precision to compare with")
    numpy_name, bound = (ONE if name in ONE else TWO)[name][0], (ONE if name in ONE else TWO)[name][-1]
    arguments = arguments_of(name)
    with np.errstate(all="ignore"):
        exact = getattr(np, numpy_name)(*(a.astype(np.longdouble) for a in arguments))
        normal = (np.abs(exact) > 1e-290) & (np.abs(exact) < 1e300)
    error = np.abs(values(scalar, name, *arguments) - exact)[normal]
    units = np.spacing(np.abs(exact[normal]).astype(np.float64))
    assert normal.sum() > COUNT / 2
    assert float((error / units).max()) <= bound


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_special_values_are_those_of_the_standard(scalar, name):
    arguments = [SPECIAL] if name in ONE else [a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL)]
    arguments = [np.concatenate([a, np.ones(-len(a) % 8)]) for a in arguments]
    numpy_name = (ONE if name in ONE else TWO)[name][0]
    if name in ("sin", "cos", "tan"):  # no digit is left of an angle beyond 1e15
        arguments = [np.where(np.abs(arguments[0]) > 1e15, np.nan, arguments[0])]
    with np.errstate(all="ignore"):
        expected = getattr(np, numpy_name)(*arguments)
    actual = values(scalar, name, *arguments)
    np.testing.assert_allclose(actual, expected, rtol=1e-15, atol=0.0)
    numbers = ~np.isnan(expected)
    assert (np.signbit(actual) == np.signbit(expected))[numbers].all()


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_every_number_of_lanes_gives_the_same_bits(scalar, vectors, name):
    arguments = arguments_of(name)
    alone = values(scalar, name, *arguments)
    for loaded in vectors:
        lanes = values(loaded, name, *arguments)
        assert (np.isnan(alone) == np.isnan(lanes)).all()
        numbers = ~np.isnan(alone)
        assert (alone.view(np.int64) == lanes.view(np.int64))[numbers].all()


def test_text_with_lanes_has_its_own_library(compiler_command, tmp_path, monkeypatch):
    """Machines of different processors may share a cache."""
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(tmp_path / "cache"))
    text = "int lanes(void) { return LANES; }"
    assert [load_library(text, "lanes", (f"-DLANES={n}",)).lanes() for n in (2, 4, 2)] == [2, 4, 2]
    assert len([p for p in (tmp_path / "cache").iterdir() if p.suffix != ".given-up"]) == 2
