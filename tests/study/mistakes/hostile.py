"""Study files that cost much, or try to: each is a name, the text of the study, and what stands beside it."""

from __future__ import annotations

import os
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: A study that is sound, in pieces that the cases replace.
MODEL = "model: {use: four_bar_knee}\n"
SPACE = "space: {stiffness: [12e3, 30e3], damping_ratio: [0.02, 0.12]}\n"
AIMS = "objectives: [{name: a, minimize: 1 - rho}, {name: b, minimize: abs(peak_error), unit: deg}]\n"
SOLVER = "solver: {use: full_factorial, levels: 2}\n"


@dataclass(frozen=True)
class Case:
    """`text` (or bytes) of the study; `make` puts what else it needs into its folder; `special` makes the study itself
    something else than a file with a text. `sound` tells whether it is a valid study after all."""

    name: str
    text: str | bytes = ""
    make: Callable[[Path], None] = lambda folder: None
    special: Callable[[Path], None] | None = None
    arguments: tuple[str, ...] = ()
    sound: bool = False
    data: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """The study file of this case in `folder`."""
        self.make(folder)
        path = folder / "study.yaml"
        if self.special is not None:
            self.special(path)
        else:
            path.write_bytes(self.text if isinstance(self.text, bytes) else self.text.encode())
        return path


def study(model: str = MODEL, space: str = SPACE, aims: str = AIMS, solver: str = SOLVER, more: str = "") -> str:
    return f"study: hostile\n{model}{space}{aims}{solver}{more}"


def sparse(name: str, size: int) -> Callable[[Path], None]:
    """A file of so many bytes that takes no room."""

    def make(folder: Path) -> None:
        with (folder / name).open("wb") as stream:
            stream.truncate(size)

    return make


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _not_files()
    yield from _yaml()
    yield from _units()
    yield from _expressions()
    yield from _spaces()
    yield from _settings()
    yield from _scenarios()
    yield from _tables()
    yield from _names()


# ----------------------------------------------------------------------------------------------------- no files


def _not_files() -> Iterator[Case]:
    for device in ("/dev/zero", "/dev/random", "/dev/full", "/dev/stdin"):
        yield Case(f"the study is a link to {device}", special=lambda path, d=device: path.symlink_to(d))
    yield Case("the study is a pipe", special=os.mkfifo)
    yield Case("the study is a folder", special=Path.mkdir)
    yield Case("the study is a link to itself", special=lambda path: path.symlink_to(path))
    yield Case("the study has 3 GB", special=lambda path: sparse(path.name, 3 * 10**9)(path.parent))
    yield Case("the study has 5 MiB of text", b"a: " + b"x" * 5 * 2**20)
    gait = study(model="model: {use: four_bar_knee, gait: gait.csv}\n")
    yield Case("a setting names a pipe", gait, lambda f: os.mkfifo(f / "gait.csv"))
    for device in ("/dev/zero", "/dev/random", "/etc/passwd"):
        yield Case(f"a setting names a link to {device}", gait, lambda f, d=device: (f / "gait.csv").symlink_to(d))
    yield Case("a setting names a folder", gait, lambda f: (f / "gait.csv").mkdir())
    yield Case("a setting names 3 GB", gait, sparse("gait.csv", 3 * 10**9))
    yield Case("a setting names 1 GB", gait, sparse("gait.csv", 10**9))
    yield Case("a setting names 30 MB of nothing", gait, sparse("gait.csv", 30 * 10**6))
    many = b"phase,knee\n" + b"0.5,1\n" * 2_000_000
    yield Case("a setting names 12 MB of numbers", gait, lambda f: (f / "gait.csv").write_bytes(many) and None)
    long = b"phase,knee\n" + b"9" * 20_000_000
    yield Case("a setting names one number of 20 MB", gait, lambda f: (f / "gait.csv").write_bytes(long) and None)
    yield Case("a setting names a file 1000 folders up", gait.replace("gait.csv", "../" * 1000 + "etc/passwd"))
    yield Case("a file name of 100 000 letters", gait.replace("gait.csv", "x" * 100_000))
    yield Case("a file name with a NUL", gait.replace("gait.csv", '"a\\0b"'))
    for store in ("study: {store: '/dev'}", "start_from: {store: /dev/zero}"):
        text = study(solver=f"stages: [{{name: s, {store}, solver: {{use: nsga2}}, budget: {{evaluations: 200}}}}]\n")
        yield Case(f"a stage with {store}", text)


# ---------------------------------------------------------------------------------------------------------- YAML


def _yaml() -> Iterator[Case]:
    laughs = "".join(f"{b}: &{b} [{', '.join(['*' + a] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    yield Case("a billion laughs in a list", f"a: &a [1, 1]\n{laughs}")
    deeper = "".join(
        f"{b}: &{b} {{x: *{a}, y: *{a}}}\n"
        for a, b in zip(string.ascii_lowercase[:-1], string.ascii_lowercase[1:], strict=True)
    )
    yield Case("aliases that double", f"a: &a {{x: 1}}\n{deeper}")
    for opening, closing in (("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("!!x ", "")):
        yield Case(f"100 000 times {opening!r}", "study: " + opening * 100_000 + closing * 100_000)
    yield Case("indentation 2000 levels deep", "".join("  " * i + "a:\n" for i in range(1400)))
    yield Case("a list of a million numbers", f"study: [{'1,' * 1_000_000}]")
    yield Case("a hundred thousand keys", "".join(f"k{i}: 1\n" for i in range(100_000)))
    yield Case("the same key a hundred thousand times", "a: 1\n" * 100_000)
    yield Case("a key of 4 MB", "x" * 4_000_000 + ": 1")
    yield Case("a word of 4 MB", "study: " + "x" * 4_000_000)
    yield Case("a number of 4 million digits", "seed: " + "9" * 4_000_000)
    yield Case("a hexadecimal number of 4 million digits", "seed: 0x" + "f" * 4_000_000)
    yield Case("a number with a huge exponent", study(more="seed: 1e999999999\n"))
    yield Case("a block of a million lines", "title: |\n" + "  x\n" * 900_000 + study(), sound=True)
    yield Case("quotes that are never closed", 'title: "' + "a\\\n" * 500_000)
    yield Case("a million anchors", "study: [" + "".join(f"&a{i} 1," for i in range(150_000)) + "]")
    yield Case("a comment of 4 MB", "# " + "x" * 4_000_000 + "\n" + study(), sound=True)
    yield Case("nothing but NUL", b"\0" * 4_000_000)
    yield Case("bytes that are no text", b"\xff" * 4_000_000)
    yield Case("marks of byte order", "\ufeff" * 500_000)
    yield Case("a hundred thousand documents", "---\na: 1\n" * 100_000)
    yield Case("tabs", "\t" * 1_000_000)
    yield Case("a description of 3 MB", study(more="description: " + "x " * 1_500_000 + "\n"), sound=True)


# --------------------------------------------------------------------------------------------------------- units


TOWERS = (
    "m**9**9**9", "m^9^9^9", "m**9**9**9**9", "(m**9)**9**9", "m**(9**9**9)", "9**9**9 m", "m*9**9**9", "m**1e9",
    "m**999999999", "m**-9**9**9", "((((m**9)**9)**9)**9)**9", "m" + "*m" * 400, "m" + "**9" * 25, "m/" * 200 + "m",
    "(" * 300 + "m" + ")" * 300, "1" * 400 + " m", "kg" * 300, "meter" * 100, "10**10**10", "m**0.1**0.1", "µ" * 500,
    "delta_degC**9**9", "m ** 9 ** 9 ** 9", "m·m^9^9", "%" * 50, "9" * 59, "m**9**9**99",
)  # fmt: skip


def _units() -> Iterator[Case]:
    for n, tower in enumerate(TOWERS):
        yield Case(f"unit {n} of a bound: {tower[:20]}", study(space=f'space: {{stiffness: ["1 {tower}", 3e4]}}\n'))
        yield Case(
            f"unit {n} of results: {tower[:20]}",
            study(aims=f'objectives: [{{name: a, minimize: rho, unit: "{tower}"}}]\n'),
            sound=tower == "%" * 50,  # a plain number to the power of fifty
        )
    for n, tower in enumerate(TOWERS[:12]):
        yield Case(
            f"unit {n} in an expression", study(aims=f'objectives: [{{name: a, minimize: "rho + 1 [{tower}]"}}]\n')
        )
    thousand = ", ".join(f'"{i} m**{i % 9 + 1}*s**{i % 7 + 1}/kg**{i % 5 + 1}"' for i in range(1500))
    yield Case("fifteen hundred units", study(space=f"space: {{stiffness: {{values: [{thousand}]}}}}\n"))


# --------------------------------------------------------------------------------------------------- expressions


def _expressions() -> Iterator[Case]:
    texts = {
        "a tower of powers": "rho" + "**9" * 500,
        "a tower of constants": "rho + " + "**".join(["9"] * 500),
        "parentheses": "(" * 900 + "rho" + ")" * 900,
        "signs": "-" * 1900 + "rho",
        "a sum of a thousand": "rho" + "+rho" * 480,
        "nested calls": "abs(" * 400 + "rho" + ")" * 400,
        "a product of huge numbers": "rho*" + "*".join(["1e308"] * 300),
        "nine to the ninth": "rho + 9**9**9**9",
        "a long name": "r" * 1_000_000,
        "many names": "+".join(f"x{i}" for i in range(400)),
        "many arguments": "max(" + ",".join(["rho"] * 480) + ")",
        "digits": "rho + " + "9" * 1900,
    }
    for name, text in texts.items():
        yield Case(
            f"expression: {name}",
            study(aims=f'objectives: [{{name: a, minimize: "{text}"}}]\n'),
            sound=name in ("many arguments",),
        )
    many = ", ".join('"stiffness * damping_ratio <= 1"' for _ in range(9000))
    yield Case("nine thousand relations", study(more=f"relations: [{many}]\n"), sound=True)
    wrong = ", ".join(f'"x{i} < y{i}"' for i in range(9000))
    yield Case("nine thousand relations of unknown names", study(more=f"relations: [{wrong}]\n"))


# -------------------------------------------------------------------------------------------------------- spaces


def _spaces() -> Iterator[Case]:
    for count in (10_000, 100_000, 190_000):
        numbers = ",".join(map(str, range(count)))
        yield Case(f"a choice of {count} values", study(space=f"space: {{stiffness: {{values: [{numbers}]}}}}\n"))
        yield Case(
            f"a choice of {count} words",
            study(space=f"space: {{belt: {{values: [{','.join(f'w{i}' for i in range(count))}]}}}}\n"),
        )
    yield Case(
        "a choice of equal values", study(space=f"space: {{stiffness: {{values: [{','.join(['1'] * 100_000)}]}}}}\n")
    )
    for count in (900, 9_000, 30_000):
        names = ", ".join(f"p{i}: [0, 1]" for i in range(count))
        yield Case(f"{count} unknown parameters", study(space=f"space: {{{names}}}\n"))
    chain = "p0: {values: [1, 2]}, " + ", ".join(
        f"p{i}: {{values: [1, 2], when: {{p{i - 1}: 1}}}}" for i in range(1, 900)
    )
    yield Case("a chain of 900 conditions", study(space=f"space: {{stiffness: [1e4, 2e4], {chain}}}\n"))
    listed = ",".join(["1"] * 50_000)
    yield Case(
        "a condition with 50 000 values",
        study(
            space="space: {stiffness: [1e4, 2e4], kind: {values: [1, 2]}, "
            f"x: {{low: 0, high: 1, when: {{kind: [{listed}]}}}}}}\n"
        ),
    )
    for low, high in ((-1.7e308, 1.7e308), ("-.inf", ".inf"), (".nan", 1), (0, 5e-324), (1, 1.0000000000000002)):
        yield Case(
            f"a range from {low} to {high}",
            study(
                space=f"space: {{stiffness: {{low: {low}, high: {high}}}}}\n",
                solver="solver: {use: sobol, samples: 4}\n",
            ),
            sound=low == 1,
        )
    yield Case(
        "a choice of a level with a huge grid", study(solver="solver: {use: full_factorial, levels: 999999999}\n")
    )
    yield Case(
        "a whole number range of 2**60",
        study(space="space: {stiffness: {type: int, low: 0, high: 1152921504606846976}}\n"),
    )


# ------------------------------------------------------------------------------------------------------ settings


def _settings() -> Iterator[Case]:
    budget = "budget: {evaluations: 1000000000}\n"
    for text in (
        "nsga2, population: 1000000000", "nsga2, offspring: 1000000000", "nsga3, partitions: 1000000",
        "nsga3, directions: 1000000000", "sms_emoa, population: 1000000000",
        "cma_es, population: 1000000000", "differential_evolution, population: 1000000000",
        "nelder_mead, starts: 1000000000", "sobol, samples: 1000000000", "latin_hypercube, samples: 19000000",
        "full_factorial, levels: 100000", "genetic, population: 9223372036854775807",
    ):  # fmt: skip
        single = text.split(",")[0] in ("cma_es", "differential_evolution", "nelder_mead", "genetic")
        aims = "objectives: [{name: a, minimize: 1 - rho}]\n" if single else AIMS
        yield Case(
            f"solver {text}", study(aims=aims, solver=f"solver: {{use: {text}}}\n{budget}"), sound="19000000" in text
        )
    stages = ", ".join(f"{{name: s{i}, solver: {{use: full_factorial, levels: 2}}}}" for i in range(5000))
    yield Case("five thousand stages", study(solver=f"stages: [{stages}]\n"), sound=True)
    yield Case(
        "nine thousand objectives",
        study(aims="objectives: [" + ", ".join(f"{{name: o{i}, minimize: rho}}" for i in range(9000)) + "]\n"),
        sound=True,
    )
    yield Case(
        "nine thousand constraints",
        study(more="constraints: [" + ", ".join(f"{{name: c{i}, of: rho, max: 1}}" for i in range(9000)) + "]\n"),
        sound=True,
    )
    yield Case("a time of 1e308 s", study(solver="solver: {use: nsga2}\nbudget: {wall: 1e308 s}\n"), sound=True)
    yield Case(
        "ten thousand plots", study(more="report: {plots: [" + ", ".join(["front"] * 10_000) + "]}\n"), sound=True
    )
    yield Case(
        "ten thousand rules",
        study(
            more="report: {choose: ["
            + ", ".join(f"{{topsis: {{weights: {{a: {i}}}}}}}" for i in range(1, 5000))
            + "]}\n"
        ),
    )


# ----------------------------------------------------------------------------------------------------- scenarios


def _scenarios() -> Iterator[Case]:
    for text in (
        "use: sobol, count: 10000, vary: {hip_hike: [1, 1.006]}",
        "use: sobol, count: 1000000000, vary: {hip_hike: [1, 1.006]}",
        "use: halton, count: 10000, vary: {hip_hike: [1, 1.006]}",
        "use: latin_hypercube, count: 10000, optimization: random-cd, vary: {hip_hike: [1, 1.006]}",
        "use: latin_hypercube, count: 10000, optimization: lloyd, vary: {hip_hike: [1, 1.006], gravity: [9, 10]}",
        "use: full_factorial, count: 10000, vary: {hip_hike: [1, 1.006]}",
        "use: random, count: 10000, vary: {hip_hike: {mean: 1, deviation: 1e-300}}",
        "use: random, count: 10000, vary: {hip_hike: {mean: 1e308, deviation: 1e308}}",
        "use: random, count: 10000, vary: {hip_hike: [-1.7e308, 1.7e308]}",
        "use: files, pattern: '**/**/**/**/*.csv'", "use: files, pattern: '/**'", "use: files, pattern: '../../**/*'",
    ):  # fmt: skip
        sound = (
            any(text.startswith(f"use: {use}, count: 10000, vary") for use in ("sobol", "halton")) or "1e-300" in text
        )
        yield Case(f"scenarios: {text[:60]}", study(more=f"scenarios: {{{text}}}\n"), sound=sound)
    names = ", ".join(f"{{name: s{i}, hip_hike: 1.0}}" for i in range(9_999))
    yield Case("ten thousand scenarios", study(more=f"scenarios: [{names}]\n"), sound=True)
    same = ", ".join("{name: s, hip_hike: 1.0}" for _ in range(9_999))
    yield Case("ten thousand scenarios of one name", study(more=f"scenarios: [{same}]\n"))
    wrong = ", ".join(f"{{name: s{i}, hip_hik{i}: 1.0}}" for i in range(9_999))
    yield Case("ten thousand scenarios with a wrong key", study(more=f"scenarios: [{wrong}]\n"))


def _tables() -> Iterator[Case]:
    text = study(more="scenarios: {use: table, file: t.csv}\n")

    def table(content: bytes) -> Callable[[Path], None]:
        return lambda folder: (folder / "t.csv").write_bytes(content) and None

    yield Case("a table of commas", text, table(b"," * 4_000_000))
    yield Case("a table of lines", text, table(b"name\n" + b"x\n" * 1_900_000))
    yield Case("a table of quotes", text, table(b'"' * 4_000_001))
    yield Case("a table of a million columns", text, table(b",".join(b"c%d" % i for i in range(500_000))))
    yield Case("a table of ten thousand wrong rows", text, table(b"name,hip_hike\n" + b"s,x\n" * 10_000))
    yield Case("a table of 3 GB", text, sparse("t.csv", 3 * 10**9))
    yield Case("a table that is a pipe", text, lambda f: os.mkfifo(f / "t.csv"))
    yield Case("a table of unit towers", text, table(b"name,hip_hike [m**9**9**9]\n" + b"s,1\n" * 1000))
    header = study(space="", aims="", solver="solver: {use: evaluate, table: t.csv}\n")
    yield Case("designs that are a table of commas", header, table(b"," * 4_000_000))
    yield Case(
        "ten thousand designs",
        header,
        table(b"name,stiffness,damping_ratio\n" + b"".join(b"d%d,%d,0.05\n" % (i, i) for i in range(1, 9_999))),
        sound=True,
    )
    listed = ", ".join(f"{{name: d{i}, stiffness: 1, damping_ratio: x{i}}}" for i in range(9_000))
    yield Case(
        "nine thousand wrong designs",
        study(space="", aims="", solver=f"solver: {{use: evaluate, designs: [{listed}]}}\n"),
    )


# --------------------------------------------------------------------------------------------------------- names


def _names() -> Iterator[Case]:
    yield Case("an unknown plugin of a million letters", study(model=f"model: {{use: {'x' * 1_000_000}}}\n"))
    wrong = ", ".join(f"{{use: four_bar_kne{i}}}" for i in range(9000))
    yield Case("nine thousand unknown plugins", study(more=f"report: {{plots: [{wrong}]}}\n"))
    keys = ", ".join(f"{'k' * 4000}{i}: 1" for i in range(900))
    yield Case("nine hundred unknown settings of 4000 letters", study(model=f"model: {{use: four_bar_knee, {keys}}}\n"))
    sets = ".".join(["a"] * 100_000)
    yield Case("--set with a path of 100 000 steps", study(), arguments=("--set", f"{sets}=1"))
    yield Case("--set with a billion laughs", study(), arguments=("--set", "title=[" + "[" * 50_000))
    yield Case("--set with a unit tower", study(), arguments=("--set", "space.stiffness.low=1 m**9**9**9"))
