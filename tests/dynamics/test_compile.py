"""Compiling: the cache, damage, races, machines without a compiler, and generated C in parts."""

import logging
import os
import re
import stat
import subprocess
import sys
import textwrap
import time

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import Simulator
from designopt.dynamics import compile as compiling
from designopt.dynamics.compile import PART, CompilerError, cache_dir, in_parts, load_library
from designopt.dynamics.simulation.rosenbrock import c_source

LIBRARY = f"*{compiling._SUFFIX}"
#: A text that is compiled sooner than a system, where any does.
ANSWER = "int answer(void) { return 42; }"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache of this test alone."""
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch):
    """Names of the compilers that were called to make a library, one entry for each call."""
    calls = []
    run = compiling._run

    def counted(command, work):
        calls.append(command[0])
        return run(command, work)

    monkeypatch.setattr(compiling, "_run", counted)
    return calls


def end_state(system, **options):
    return Simulator(system, **options).run([0.25, 0.0625], [0.0, 2.0], p=[3.0]).x[-1]


def test_a_system_is_compiled_once(compiler, smooth, folder, compilations):
    first = end_state(smooth, compiled=True)
    second = end_state(smooth, compiled=True)
    assert len(compilations) == 1
    assert len(list(folder.glob(LIBRARY))) == 1
    assert [p.name for p in folder.iterdir() if p.name.startswith(".")] == []
    assert first.tolist() == second.tolist()


def test_other_source_and_other_flags_are_other_libraries(compiler, folder, compilations, monkeypatch):
    load_library(ANSWER)
    load_library(ANSWER.replace("42", "43"))
    monkeypatch.setattr(compiling, "FLAGS", (*compiling.FLAGS, "-DOTHER"))
    load_library(ANSWER)
    assert len(compilations) == 3
    assert len(list(folder.glob(LIBRARY))) == 3


def test_the_source_is_the_same_in_every_process(smooth):
    """Otherwise nothing would ever be found in the cache."""
    assert c_source(smooth) == c_source(smooth)


@pytest.mark.parametrize("damage", ["truncated", "empty", "changed"])
def test_a_damaged_library_is_compiled_again(compiler, folder, compilations, damage):
    assert load_library(ANSWER).answer() == 42
    (path,) = folder.glob(LIBRARY)
    content = path.read_bytes()
    path.unlink()  # a library in use must not change under its user
    changed = content[:5000] + bytes(255 - byte for byte in content[5000:5100]) + content[5100:]
    path.write_bytes({"truncated": content[:1000], "empty": b"", "changed": changed}[damage])
    assert load_library(ANSWER).answer() == 42
    assert len(compilations) == 2
    assert [p.read_bytes()[:4] for p in folder.glob(LIBRARY)] == [content[:4]]


@pytest.mark.parametrize("hindrance", ["not a folder", "read-only"])
def test_a_cache_that_cannot_be_written_is_done_without(
    compiler, smooth, tmp_path, monkeypatch, compilations, hindrance
):
    if hindrance == "read-only":
        if not hasattr(os, "geteuid") or os.geteuid() == 0:
            pytest.skip("this user may write everywhere")
        blocked = tmp_path / "read_only"
        blocked.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    else:
        file = tmp_path / "file"
        file.write_text("")
        blocked = file / "cache"
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(blocked))
    assert Simulator(smooth, compiled=True).compiled
    assert Simulator(smooth, compiled=True).compiled
    assert len(compilations) <= 1  # kept for the life of the process


def test_four_processes_compile_the_same_at_once(compiler, folder):
    code = textwrap.dedent("""
        import casadi as ca
        from designopt.dynamics import Simulator, System, Variable
        x = ca.SX.sym("x")
        system = System.from_expressions("race", states=[(Variable("x", ""), x, -x**3)])
        simulator = Simulator(system, compiled=True)
        print(simulator.run([1.0], [0.0, 4.0]).x[-1, 0].hex())
    """)
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0, 0], outputs
    results = {float.fromhex(out) for out, _ in outputs}
    assert len(results) == 1
    assert results.pop() == pytest.approx(1 / 3, abs=1e-5)  # x = 1/sqrt(1 + 2 t)
    assert list(folder.glob(".making-*")) == []


def test_without_a_compiler_the_numbers_are_the_same(smooth, smooth_exact, monkeypatch, caplog, tmp_path):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        simulator = Simulator(smooth, "rosenbrock4", rtol=1e-7, atol=1e-9)
    assert (simulator.method, simulator.compiled) == ("lsoda", False)
    assert "smooth runs interpreted" in caplog.text
    assert "no C compiler" in caplog.text
    times = np.linspace(0.0, 5.0, 51)
    assert np.abs(simulator.run([0.25, 0.0625], times, p=[3.0]).x - smooth_exact(times)).max() < 1e-6
    with pytest.raises(CompilerError, match="no C compiler"):
        Simulator(smooth, compiled=True)


def test_a_compiler_that_fails_is_reported_and_done_without(smooth, folder, monkeypatch, caplog, tmp_path):
    broken = tmp_path / "broken-cc"
    broken.write_text("#!/bin/sh\necho cannot do this >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with caplog.at_level(logging.WARNING):
        assert not Simulator(smooth).compiled
    assert "cannot do this" in caplog.text
    with pytest.raises(CompilerError, match="ended with 3: cannot do this"):
        Simulator(smooth, compiled=True)


@pytest.mark.skipif(sys.platform == "win32", reason="a compiler in the shell's language")
def test_child_processes_of_a_compiler_end_at_its_time_limit(tmp_path, folder, monkeypatch):
    slow = tmp_path / "slow-cc"
    slow.write_text(f"#!/bin/sh\nsleep 300 & echo $! > {tmp_path}/child\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("CC", str(slow))
    monkeypatch.setattr(compiling, "_version", lambda *_: "")
    monkeypatch.setattr(compiling, "_TIMEOUT", 5.0)
    with pytest.raises(CompilerError, match="slow-cc was stopped after 5 s"):
        load_library("int x;")
    child = int((tmp_path / "child").read_text())
    end = time.monotonic() + 60.0
    while alive(child) and time.monotonic() < end:  # the system may take a moment to bury it
        time.sleep(0.05)
    assert not alive(child)
    monkeypatch.setattr(compiling, "_run", lambda *_: pytest.fail("tried again"))
    with pytest.raises(CompilerError, match=r"slow-cc was stopped after 5 s; remove .*given-up to try again"):
        load_library("int x;")


def alive(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_large_code_is_optimised_less_with_a_warning_before(compiler, smooth, folder, monkeypatch, caplog):
    commands, run = [], compiling._run
    monkeypatch.setattr(compiling, "_run", lambda command, work: commands.append(command) or run(command, work))
    small = end_state(smooth)
    assert "-O2" in commands[0]
    assert caplog.text == ""
    monkeypatch.setattr(compiling, "LARGE", 10)
    folder.rename(folder.with_name("other"))
    assert end_state(smooth).tolist() == small.tolist()
    assert {"-O1", "-DLARGE=500"} < set(commands[1])
    assert re.search(r"compiling smooth \(some \d+ operations, \d+ s or longer\) once", caplog.text)


def test_code_that_is_too_large_is_not_given_to_the_compiler(compiler, smooth, folder, compilations, monkeypatch):
    monkeypatch.setattr(compiling, "LARGEST", 10)
    with pytest.raises(
        CompilerError,
        match=r"smooth has some \d+ operations, more than the limit of 10 for "
        r"compilation",
    ):
        Simulator(smooth, compiled=True)
    assert compilations == []
    assert Simulator(smooth).method == "lsoda"


def test_a_missing_compiler_is_reported_by_name(smooth, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(CompilerError, match=r"'no-such-compiler -m64' \(CC\) is not found"):
        Simulator(smooth, compiled=True)


def test_the_compiler_may_have_arguments(compiler, folder, monkeypatch):
    monkeypatch.setenv("CC", f"{compiler[0]} -DEXTRA=7")
    assert load_library("int extra(void) { return EXTRA; }").extra() == 7


def test_interpreted_on_request_looks_for_no_compiler(smooth, monkeypatch, caplog):
    monkeypatch.setattr(compiling, "find_compiler", lambda: pytest.fail("asked for a compiler"))
    with caplog.at_level(logging.WARNING):
        simulator = Simulator(smooth, compiled=False)
    assert simulator.method == "lsoda"
    assert caplog.text == ""


def test_text_that_is_no_c_is_an_error_with_the_compilers_words(compiler, folder):
    with pytest.raises(CompilerError, match="error"):
        load_library("this is not C")
    assert list(folder.iterdir()) == []


def test_the_cache_is_in_the_users_cache_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("DESIGNOPT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform.startswith("linux"):
        assert cache_dir() == tmp_path / "designopt"
    assert cache_dir().name == "designopt"


def chain(length):
    """A function of some `length` scalar operations of all kinds, its last values as one output, a sum as another."""
    x, p = ca.SX.sym("x", 12), ca.SX.sym("p", 2)
    values = [x[i] for i in range(12)]
    while len(values) < length // 4:
        a, b, c = values[-1], values[-5], values[-11]
        step = a * b - 0.5 * p[0] * c
        values.append(ca.if_else(step > p[1], ca.sin(step), ca.fmax(step, -ca.exp(-a * a))))
    return ca.Function("chain", [x, p], [ca.vertcat(*values[-12:]), ca.sum1(ca.vertcat(*values))])


def generated(*functions):
    generator = ca.CodeGenerator("code", {"with_header": False})
    for function in functions:
        generator.add(function)
    return generator.dump()


def test_a_large_function_in_parts_has_the_numbers_of_casadi_to_the_bit(compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "LARGE", 4 * PART)
    function = chain(9 * PART)
    source = generated(function)
    assert in_parts(source).count("noinline") >= 8
    compiled = ca.external("chain", load_library(source)._name)
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, p = rng.uniform(-1.0, 1.0, 12), rng.uniform(-1.0, 1.0, 2)
        for ours, casadis in zip(compiled(x, p), function(x, p), strict=True):
            assert np.array_equal(np.array(ours), np.array(casadis))


def test_an_output_that_is_not_asked_for_is_not_written(compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "LARGE", 4 * PART)
    function = chain(6 * PART)
    compiled = ca.external("chain", load_library(generated(function))._name)
    point = {"i0": np.full(12, 0.3), "i1": [0.1, 0.2]}
    only = compiled.factory("only", ["i0", "i1"], ["o1"])
    assert float(only(*point.values())) == float(function(*point.values())[1])


def test_small_functions_and_those_of_other_statements_stay_as_they_are():
    small = generated(chain(PART))
    assert in_parts(small) == small
    X = ca.MX.sym("X", 12)
    calls = generated(ca.Function("calls", [X], [chain(8 * PART)(X, ca.vertcat(0.1, 0.2))[0] @ X.T]))
    cut = in_parts(calls)
    assert cut.count("noinline") >= 7
    vector_calls = [line for line in calls.split("\n") if "casadi_mtimes" in line or "casadi_f1(arg1" in line]
    assert vector_calls
    assert set(vector_calls) <= set(cut.split("\n"))


@pytest.mark.parametrize("text", ["", "int x;", "static int f(void) {\n  return 0;\n}\n"])
def test_text_that_casadi_has_not_generated_stays_as_it_is(text):
    assert in_parts(text) == text
