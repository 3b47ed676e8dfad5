"""Programs of controllers as text in Python, C (C99) and Structured Text (IEC 61131-3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from designopt_regulator.export.expression import Language, statements
from designopt_regulator.export.program import ControllerProgram

_PYTHON = Language(repr, {"fmin": "min({0}, {1})", "fmax": "max({0}, {1})", "ceil": "float(math.ceil({0}))"})
_C = Language(repr, {"fmin": "fmin({0}, {1})", "fmax": "fmax({0}, {1})", "ceil": "ceil({0})"})


def _iec(value: float) -> str:
    """A literal of type LREAL: a point in the mantissa is required."""
    mantissa, e, exponent = repr(value).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + (f"E{int(exponent)}" if e else "")


_ST = Language(
    _iec,
    {
        "fmin": "MIN({0}, {1})",
        "fmax": "MAX({0}, {1})",
        # of numbers within the range of DINT, which angles in turns are
        "ceil": "DINT_TO_LREAL(TRUNC({0}) + SEL({0} > DINT_TO_LREAL(TRUNC({0})), 0, 1))",
    },
)


def python(program: ControllerProgram) -> str:
    """A class with `reset` and `sample`; the standard library alone is needed."""
    lines, results = _sample(program, _PYTHON, lambda state: f"self.{state}")
    constants = [f"{key} = {value!r}  # {meaning}" for key, (value, meaning) in program.constants.items()]
    arguments = ", ".join(program.inputs)
    meanings = [f"        {key}: {meaning}" for key, meaning in program.inputs.items()]
    states = [f"        self.{state} = {_at_rest(value, '0.0')}" for state, value in program.states.items()]
    text = [
        '"""' + "\n".join([program.title, "", *program.remarks]),
        '"""',
        "",
        *(["import math", ""] if any("math." in text for _, text in lines) else []),
        f"SAMPLE_TIME = {program.sample_time!r}  # s",
        *constants,
        "",
        "",
        "class Controller:",
        "    def __init__(self, y=0.0, u=0.0):",
        "        self.reset(y, u)",
        "",
        "    def reset(self, y=0.0, u=0.0):",
        '        """At rest at measurement y and command u, without bump."""',
        *states,
        "",
        f"    def sample(self, {arguments}):",
        '        """The command of this sample; call it once in SAMPLE_TIME.',
        "",
        *meanings,
        '        """',
        *(f"        {key} = {value}" for key, value in lines),
        *(f"        self.{state} = {results[state]}" for state in program.states if results[state] != f"self.{state}"),
        f"        return {results['u']}",
        "",
    ]
    return "\n".join(text)


def c(program: ControllerProgram) -> str:
    """One file with `controller_reset` and `controller_sample`, all in double."""
    lines, results = _sample(program, _C, lambda state: f"s->{state}")
    inputs = "".join(f", double {key}" for key in program.inputs)
    constants = [f"#define {key} {value!r} /* {meaning} */" for key, (value, meaning) in program.constants.items()]
    text = [
        "/* " + "\n * ".join([program.title, "", *program.remarks]).replace(" * \n", " *\n"),
        " *",
        " * Compile without contraction of operations (-ffp-contract=off) for the bits of the simulator. */",
        "#include <math.h>",
        "",
        f"#define SAMPLE_TIME {program.sample_time!r} /* s */",
        *constants,
        "",
        "typedef struct {",
        *(f"    double {state};" for state in program.states),
        "} controller;",
        "",
        "/* At rest at measurement y and command u, without bump. */",
        "void controller_reset(controller *s, double y, double u) {",
        *(f"    s->{state} = {_at_rest(value, '0.0')};" for state, value in program.states.items()),
        "}",
        "",
        "/* The command of this sample; call it once in SAMPLE_TIME.",
        *(f" * {key}: {meaning}" for key, meaning in program.inputs.items()),
        " */",
        f"double controller_sample(controller *s{inputs}) {{",
        *(f"    const double {key} = {value};" for key, value in lines),
        *(f"    s->{state} = {results[state]};" for state in program.states if results[state] != f"s->{state}"),
        f"    return {results['u']};",
        "}",
        "",
    ]
    return "\n".join(text)


def st(program: ControllerProgram) -> str:
    """A function block whose input `reset` puts it to rest at `y` and `u_rest`; called once in a sample."""
    lines, results = _sample(program, _ST, lambda state: f"kept_{state}")
    constants = [
        f"    {key} : LREAL := {_iec(value)}; (* {text} *)" for key, (value, text) in program.constants.items()
    ]
    temporary = [f"    {key} : LREAL;" for key, _ in lines if key != "u"]
    updates = [(state, results[state]) for state in program.states if results[state] != f"kept_{state}"]
    text = [
        "(* " + "\n   ".join([program.title, "", *program.remarks]).replace("   \n", "\n") + " *)",
        "FUNCTION_BLOCK Controller",
        "VAR_INPUT",
        *(f"    {key} : LREAL; (* {meaning} *)" for key, meaning in program.inputs.items()),
        "    reset : BOOL := FALSE; (* TRUE: to rest at y and u_rest, without bump *)",
        "    u_rest : LREAL := 0.0;",
        "END_VAR",
        "VAR_OUTPUT",
        "    u : LREAL; (* the command *)",
        "END_VAR",
        "VAR",
        *(f"    kept_{state} : LREAL := 0.0;" for state in program.states),
        "END_VAR",
        "VAR_TEMP",
        *temporary,
        "END_VAR",
        "VAR CONSTANT",
        f"    SAMPLE_TIME : LREAL := {_iec(program.sample_time)}; (* s; the task's cycle *)",
        *constants,
        "END_VAR",
        "",
        "IF reset THEN",
        *(
            f"    kept_{state} := {_at_rest(value, '0.0').replace('u', 'u_rest')};"
            for state, value in program.states.items()
        ),
        "END_IF;",
        *(f"{key} := {value};" for key, value in lines),
        *(f"kept_{state} := {value};" for state, value in updates),
        *([] if results["u"] == "u" else [f"u := {results['u']};"]),
        "END_FUNCTION_BLOCK",
        "",
    ]
    return "\n".join(text)


LANGUAGES: Mapping[str, tuple[str, Callable[[ControllerProgram], str]]] = {
    "python": ("py", python),
    "c": ("c", c),
    "st": ("st", st),
}


def _sample(
    program: ControllerProgram, language: Language, state_name: Callable[[str], str]
) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """The equations in a language, where `state_name` names a state; next states are computed before any is kept."""
    equations = {key if key in ("raw", "u") else f"next_{key}": node for key, node in program.equations.items()}
    lines, results = statements(equations, language)
    pattern = re.compile(rf"\b({'|'.join(program.states)})\b")

    def spelled(text: str) -> str:
        return pattern.sub(lambda m: state_name(m[1]), text)

    after = {state: spelled(results[f"next_{state}"]) for state in program.states}
    return [(key, spelled(text)) for key, text in lines], {**after, "u": results["u"]}


def _at_rest(value: str, zero: str) -> str:
    return zero if value == "0" else value
