"""C text of functions of scalar operations, on the type `real` of ``elementary.c``: one number, or several in lanes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from designopt.lazy import casadi as ca

#: C expressions of CasADi's operations, by their names without ``OP_``.
_EXPRESSIONS = {
    "ASSIGN": "{0}",
    "ADD": "({0}+{1})",
    "SUB": "({0}-{1})",
    "MUL": "({0}*{1})",
    "DIV": "({0}/{1})",
    "NEG": "(-{0})",
    "INV": "(1.0/{0})",
    "SQ": "({0}*{0})",
    "TWICE": "(2.0*{0})",
    "SQRT": "root({0})",
    "FABS": "magnitude({0})",
    "FMIN": "smaller({0},{1})",
    "FMAX": "larger({0},{1})",
    "SIGN": "sign_of({0})",
    "COPYSIGN": "with_sign({0},{1})",
    "FLOOR": "floor_of({0})",
    "CEIL": "(-floor_of(-{0}))",
    "LT": "truth(LESS({0},{1}))",
    "LE": "truth(AT_MOST({0},{1}))",
    "EQ": "truth(EQUAL({0},{1}))",
    "NE": "truth(~EQUAL({0},{1}))",
    "NOT": "truth(EQUAL({0},ALL(0.0)))",
    "AND": "truth(~EQUAL({0},ALL(0.0))&~EQUAL({1},ALL(0.0)))",
    "OR": "truth(~EQUAL({0},ALL(0.0))|~EQUAL({1},ALL(0.0)))",
    "IF_ELSE_ZERO": "only(~EQUAL({0},ALL(0.0)),{1})",
    **{name: f"real_{name.lower()}({{0}})" for name in ("SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "EXP", "EXPM1")},
    **{name: f"real_{name.lower()}({{0}})" for name in ("LOG", "LOG1P", "SINH", "COSH", "TANH")},
    "POW": "real_pow({0},{1})",
    "CONSTPOW": "real_pow({0},{1})",
    "ATAN2": "real_atan2({0},{1})",
}

_ARGUMENTS = "const casadi_real** arg, casadi_real** res, casadi_int* iw, casadi_real* w, int mem"
_PER_LINE = 12


def scalar_code(functions: Sequence[ca.Function]) -> str | None:
    """C text of `functions` by their names, with sparsities and sizes as CasADi generates them.

    None if one of them has an operation that ``elementary.c`` does not have (look-up tables, external functions).
    """
    if not all(function.is_a("SXFunction") for function in functions):
        return None
    lines = ["#define casadi_real real", "#define casadi_int long long int"]
    for function in functions:
        body = _body(function)
        if body is None:
            return None
        name = function.name()
        lines += [f"static int {name}({_ARGUMENTS}) {{", *body, "  return 0;", "}"]
        lines += _sizes(function)
    return "\n".join(lines)


@lru_cache(maxsize=1)
def _operations() -> dict[int, str]:
    return {getattr(ca, f"OP_{name}"): expression for name, expression in _EXPRESSIONS.items()}


def _body(function: Any) -> list[str] | None:
    """The statements of a function; None with an unknown operation."""
    operations, statements = _operations(), []
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        inputs, outputs = function.instruction_input(k), function.instruction_output(k)
        if operation == ca.OP_OUTPUT:
            statements.append(f"  res[{outputs[0]}][{outputs[1]}]=a{inputs[0]};")
            continue
        if operation == ca.OP_INPUT:
            expression = f"arg[{inputs[0]}][{inputs[1]}]"
        elif operation == ca.OP_CONST:
            expression = f"ALL({_number(function.instruction_constant(k))})"
        elif operation in operations:
            expression = operations[operation].format(*(f"a{i}" for i in inputs))
        else:
            return None
        statements.append(f"  a{outputs[0]}={expression};")
    return [*_declarations(function.sz_w()), *statements]


def _declarations(size: int) -> Iterator[str]:
    for first in range(0, size, _PER_LINE):
        yield "  casadi_real " + ", ".join(f"a{i}" for i in range(first, min(first + _PER_LINE, size))) + ";"


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return '__builtin_nan("")' if math.isnan(value) else f"{'-' if value < 0.0 else ''}__builtin_inf()"


def _sizes(function: Any) -> list[str]:
    """The functions of the work space and of the sparsities of the results."""
    name = function.name()
    sizes = ("a", function.n_in()), ("b", function.n_out()), ("c", 0), ("d", 0)
    lines = [
        f"static int {name}_work(casadi_int* a, casadi_int* b, casadi_int* c, casadi_int* d) {{",
        *(f"  *{pointer} = {size};" for pointer, size in sizes),
        "  return 0;",
        "}",
        f"static const casadi_int* {name}_sparsity_out(casadi_int i) {{",
    ]
    for i in range(function.n_out()):
        sparsity = function.sparsity_out(i)
        numbers = ", ".join(str(n) for n in ((*sparsity.shape, 1) if sparsity.is_dense() else sparsity.compress()))
        lines += [f"  static const casadi_int s{i}[] = {{{numbers}}};", f"  if (i == {i}) return s{i};"]
    return [*lines, "  return 0;", "}"]
