"""Every mistake is found at its place: « and » in the cases mark what the carets must point at."""

import re

import pytest

from designopt.study.language.errors import StudyError

# what is replaced, by what, path, piece of the message
CASES = [
    # --- YAML itself
    ("seed: 7", "seed: 7\n«seed»: 8", "", "'seed' is given twice (first in line 2)"),
    ("seed: 7", "seed: «!»!int 7", "", "tags ('!!int') are not allowed"),
    ("seed: 7", "«<<»: {a: 1}", "", "merge keys"),
    ("seed: 7", "seed: «*unknown»", "", "'*unknown' is not defined"),
    ("seed: 7", "seed: &a [«*a»]", "", "is inside the value that it repeats"),
    ("seed: 7", "seed: 7\n«---»\na: 1", "", "one document"),
    ("seed: 7", "«7»: seed", "", "a key must be a word"),
    ("seed: 7", "«[»a, b]: seed", "", "a key must be a word"),
    ("seed: 7", "title: a«:» b", "", "needs quotes"),
    ("seed: 7", "description: a\n  b\n  c«:» d\nseed: 7", "", "needs quotes"),
    ("seed: 7", "seed« »7", "", "is a ':' missing after 'seed'?"),
    ("model:\n  use", "model« »\n  use", "", "is a ':' missing after 'model'?"),
    ("damping: [0, 100]", "damping« »[0, 100]", "", "is a ':' missing after 'damping'?"),
    ("seed: 7", "«\t»seed: 7", "", "indent with spaces, not tabs"),
    ("seed: 7", "title: «\a»", "", "U+0007"),
    ("[0, 100]\n  offset: {type", "«[»0, 100\n  offset: {type", "", "this '[' is not closed"),
    # --- top level
    ("study: wheel_damper", "study: «7»", "study", "expected a word, not the number 7; put quotes around it"),
    ("study: wheel_damper", "study: «a/b»", "study", "is not a name"),
    ("study: wheel_damper", "study: «a b»", "study", "is not a name"),
    ("study: wheel_damper", "«study»:", "study", "expected a word, not nothing"),
    ("study: wheel_damper", "«t»itle: x", "", "'study' is missing"),
    ("seed: 7", "«sed»: 7", "", "unknown key 'sed'; did you mean 'seed'?"),
    ("seed: 7", "seed: «-1»", "seed", "must be at least 0"),
    ("seed: 7", "seed: «1.5»", "seed", "must be an integer"),
    ("seed: 7", "seed: «yes»", "seed", "expected an integer, not the word 'yes'"),
    ("seed: 7", "seed: «true»", "seed", "not true"),
    ("seed: 7", "seed: «1e400»", "seed", "finite"),
    ("seed: 7", "seed: «99999999999999999999999»", "seed", "too large"),
    # --- model
    ("  use: test_wheel", "  use: «7»", "model", "'use' must be the name of a plugin"),
    ("  use: test_wheel", "  use: «test_whel»", "model", "no plugin named 'test_whel'; did you mean 'test_wheel'?"),
    ("  use: test_wheel", "  use: «nsga2»", "model", "no plugin named 'nsga2'"),
    ("  mass: 3 kg", "  mass: «-3 kg»", "model.mass", "must be above 0 kg, not -3"),
    ("  mass: 3 kg", "  mass: «3 m»", "model.mass", "'m' cannot be converted to 'kg'"),
    ("  mass: 3 kg", "  mass: «3 kgg»", "model.mass", "unknown unit 'kgg'"),
    ("  mass: 3 kg", "  mass: «3 KG»", "model.mass", "unknown unit 'KG'; did you mean 'kg'?"),
    ("  mass: 3 kg", "  mass: «3,5»", "model.mass", "not the word '3,5'; write a decimal point, not a comma"),
    ("  mass: 3 kg", "  mass: «'3,5 kg'»", "model.mass", "not the text '3,5 kg'; write a decimal point, not a comma"),
    ("  mass: 3 kg", "  mass: «heavy»", "model.mass", "expected a number in 'kg', not the word 'heavy'"),
    ("  mass: 3 kg", "  mass: «.nan»", "model.mass", "must be a finite number"),
    ("  mass: 3 kg", "  mass: «[3]»", "model.mass", "expected a number in 'kg', not a list"),
    ("  mass: 3 kg", "  mass: «13»", "model.mass", "13 kg is unlucky"),
    ("  mass: 3 kg", "  mass: 3\n  «mas»: 4", "model", "unknown key 'mas'"),
    (
        "  mass: 3 kg",
        "  mass: 3\n  «damping»: 4",
        "model",
        "'damping' is an input of designs, not a setting: solver: {",
    ),
    ("  mass: 3 kg", "  mass: 3\n  «dampng»: 4", "model", "unknown key 'dampng': 'damping' is an input of designs"),
    ("  mass: 3 kg", "  mass: 3\n  «oil_damping»: 4", "model", "unknown key 'oil_damping' (known: "),
    ("  mass: 3 kg", "  mass: 3\n  «load»: 4", "model", "unknown key 'load': 'load' is a condition of scenarios"),
    ("  mass: 3 kg", "  mass: 3\n  road: «pavd»", "model.road", "did you mean 'paved'?"),
    ("  mass: 3 kg", "  mass: 3\n  smooth: «no»", "model.smooth", "expected true or false, not the word 'no'"),
    ("  mass: 3 kg", "  mass: 3\n  loop: {gain: «0»}", "model.loop.gain", "must be above 0"),
    ("  mass: 3 kg", "  mass: 3\n  loop: «{delay: 2 ms}»", "model.loop", "'gain' is missing (gain)"),
    ("  mass: 3 kg", "  mass: 3\n  points: [1 cm, «x», 3]", "model.points.1", "not the word 'x'"),
    ("curve.csv", "«curv.csv»", "model.curve", "not among the files of this study; did you mean 'curve.csv'?"),
    # --- space
    ("kind: {values", "«knid»: {values", "space.knid", "has no design input 'knid'; did you mean 'kind'?"),
    ("damping: [0, 100]", "damping: [0, 100]\n  «Damping»: [0, 1]", "space.Damping", "'damping' has the same letters"),
    ("damping: [0, 100]", "damping: «[0, 100, 3]»", "space.damping", "is [low, high], not 3"),
    ("damping: [0, 100]", "damping: «[100, 0]»", "space.damping", "low (100.0 N s/m) must be below high (0.0 N s/m)"),
    (
        "damping: [0, 100]",
        "damping: «[1 N s/mm, 10]»",
        "space.damping",
        "low (1.0 N s/mm) must be below high (10.0 N s/m)",
    ),
    ("damping: [0, 100]", "damping: {low: 0, high: 1,«5 N s/m»}", "space.damping", "'5 N s/m'; write a decimal point"),
    ("damping: [0, 100]", "damping: {low: 0, high: 1,«5»}", "", "not 5; write a decimal point, not a comma"),
    ("damping: [0, 100]", "«damping»:\n    low: 5\n    high: 5", "space.damping", "low (5.0 N s/m) must be below"),
    ("damping: [0, 100]", "damping: {low: «-1», high: 3}", "space.damping.low", "must be at least 0 N s/m, not -1"),
    ("damping: [0, 100]", "damping: «{low: 1}»", "space.damping", "'high' is missing"),
    ("damping: [0, 100]", "damping: «{}»", "space.damping", "give 'low' and 'high', 'values' or 'value'"),
    ("damping: [0, 100]", "«damping»:", "space.damping", "expected a mapping with 'low' and 'high'"),
    ("damping: [0, 100]", "damping: {«low»: 0, values: [1]}", "space.damping", "does not belong"),
    ("damping: [0, 100]", "damping: {low: 0, high: 1, unit: «N»}", "space.damping", "cannot be converted"),
    ("damping: [0, 100]", "damping: {low: 0, high: 1, unit: «qq»}", "space.damping.unit", "unknown unit 'qq'"),
    ("damping: [0, 100]", "damping: {low: 0, high: «1 kg»}", "space.damping.high", "incompatible units"),
    ("damping: [0, 100]", "damping: {low: «0», high: 1, scale: log}", "space.damping.low", "a log scale needs low"),
    ("damping: [0, 100]", "damping: {low: 0, high: 1, scale: «lg»}", "space.damping.scale", "did you mean 'log'?"),
    ("damping: [0, 100]", "damping: {low: 0, high: 1, «hihg»: 2}", "space.damping", "unknown key 'hihg'"),
    ("damping: [0, 100]", "damping: {low: 0, «to»: 1}", "space.damping", "unknown key 'to'; did you mean 'high'?"),
    ("damping: [0, 100]", "damping: {low: 0, «max»: 1}", "space.damping", "unknown key 'max'; did you mean 'high'?"),
    ("damping: [0, 100]", "damping: «0..100»", "space.damping", "is a text; write the range as [0, 100]"),
    ("damping: [0, 100]", "damping: «1 to 9»", "space.damping", "is a text; write the range as [1, 9]"),
    ("damping: [0, 100]", "damping: {low: «\u22121», high: 3}", "space.damping.low", "type the sign as -"),
    ("damping: [0, 100]", "damping: {low: 0, «high:\xa01»}", "space.damping", "no-break space: type a plain one"),
    ("type: int, low: -3, ", "type: int, low: «-2.5», ", "space.offset.low", "must be an integer, not -2.5"),
    ("high: 3, unit: mm", "high: «30», unit: mm", "space.offset.high", "must be at most 0.01 m, not 0.03"),
    ("type: int, low: -3, ", "type: int, low: «-1e30», ", "space.offset.low", "must be within -2**53 and 2**53"),
    ("type: int, low: -3", "type: «itn», low: -3", "space.offset.type", "'itn' is not one of real, int"),
    ("values: [steel, rubber]", "values: [steel, «wood»]", "space.kind.values.1", "is not one of steel, rubber"),
    ("values: [steel, rubber]", "values: [steel, «steel»]", "space.kind.values.1", "given twice"),
    ("values: [steel, rubber]", "values: «[]»", "space.kind.values", "at least one value"),
    ("kind: {values: [steel, rubber]}", "kind: «[1, 2]»", "space.kind", "use 'values' or 'value'"),
    ("kind: {values: [steel, rubber]}", "kind: «brass»", "space.kind.value", "is not one of steel, rubber"),
    ("kind: {values: [steel, rubber]}", "teeth: «[1, 2]»", "space.teeth", "use type: int"),
    ("kind: {values: [steel, rubber]}", "teeth: «0»", "space.teeth.value", "must be at least 1"),
    ("kind: {values: [steel, rubber]}", "«k-d»: 3", "space.k-d", "letters, digits and underscores"),
    # --- relations
    ("0.1 [s] * stiffness", "«0.1 * stiffness»", "relations.0", "incompatible units"),
    ("0.1 [s] * stiffness", "0.1 [s] * «stifness»", "relations.0", "'stifness' is not in space; did you mean"),
    ("0.1 [s] * stiffness", "0.1 [«sss»] * stiffness", "relations.0", "unknown unit 'sss'"),
    ("0.1 [s] * stiffness", "0.1 [s] * «)»", "relations.0", "unexpected ')'"),
    ("0.1 [s] * stiffness", "sqrt«(»stiffness", "relations.0", "never closed"),
    ("0.1 [s] * stiffness", "«sqr»(stiffness)", "relations.0", "did you mean 'sqrt'?"),
    ("damping <= 0.1 [s] * stiffness", "«damping»", "relations.0", "a relation compares two sides"),
    ("damping <= 0.1 [s] * stiffness", "1 < damping «<» 3", "relations.0", "only one comparison"),
    ("damping <= 0.1 [s] * stiffness", "damping «=» 3", "relations.0", "write '=='"),
    ("damping <= 0.1 [s] * stiffness", '"damping «=» 3"', "relations.0", "write '=='"),
    ("damping <= 0.1 [s] * stiffness", "damping <= «kind»", "relations.0", "has words as values"),
    # --- scenarios
    ("load: 1 kN", "load: «-1»", "scenarios.0.load", "must be at least 0 N, not -1"),
    ("load: 1 kN", "«laod»: 1", "scenarios.0", "unknown key 'laod'; did you mean 'load'?"),
    ("name: heavy", "name: «light»", "scenarios.1.name", "another scenario named 'light'"),
    ("{name: heavy, load: 2000}", "«{load: 2000}»", "scenarios.1", "'name' is missing"),
    ("{name: heavy, load: 2000}", "«heavy»", "scenarios.1", "expected a mapping, not the word 'heavy'"),
    # --- figures and objectives
    ("{name: mismatch, minimize: 1 - rho, over: worst}", "«maximise rho»", "objectives.0", "write {maximize: rho}"),
    (
        "{name: mismatch, minimize: 1 - rho, over: worst}",
        "«rho»",
        "objectives.0",
        "write {minimize: rho}, or as a limit",
    ),
    (
        "{name: clearance, of: toe_clearance, min: 5 mm}",
        "«toe_clearance >= 5 mm»",
        "constraints.0",
        "write {of: toe_clearance, min: 5 mm}",
    ),
    (
        "{name: clearance, of: toe_clearance, min: 5 mm}",
        "«5 mm <= toe_clearance»",
        "constraints.0",
        "write {of: toe_clearance, min: 5 mm}",
    ),
    (
        "{name: clearance, of: toe_clearance, min: 5 mm}",
        "«5 mm <= toe_clearance <= 9 mm»",
        "constraints.0",
        "write {of: toe_clearance, min: 5 mm, max: 9 mm}",
    ),
    (
        "{name: clearance, of: toe_clearance, min: 5 mm}",
        "«max(toe_clearance, 1 mm) > 5 mm»",
        "constraints.0",
        'write {of: "max(toe_clearance, 1 mm)", min: 5 mm}',
    ),
    ("budget: {evaluations: 500, wall: 2 h}", "budget: «500»", "stages.1.budget", "write {evaluations: 500}"),
    ("wall: 2 h", "«time»: 2 h", "stages.1.budget", "unknown key 'time'; did you mean 'wall'?"),
    ("use: test_spread", "use: «test_spred»", "figures.spread", "did you mean 'test_spread'?"),
    ("use: test_spread, k: 2", "use: test_spread, k: «two»", "figures.spread.k", "not the word 'two'"),
    ("use: test_spread, k: 2", "use: «test_homeless»", "figures.spread", "needs 'nowhere', which model 'test_wheel'"),
    ("  spread: {use", "  «rho»: {use: test_spread}\n  spread: {use", "figures.rho", "give the figure another name"),
    (
        "1 - rho",
        "1 - «roh»",
        "objectives.0.minimize",
        "has no output 'roh' and there is no figure of this name; did you mean",
    ),
    (
        "1 - rho",
        "1 - «stiffness»",
        "objectives.0.minimize",
        "'stiffness' is a parameter; expressions here are made of outputs of the model and figures: let the model",
    ),
    ("1 - rho", "peak_error + «toe_clearance»", "objectives.0.minimize", "incompatible units"),
    ("1 - rho", "rho + «peak_error * toe_clearance»", "objectives.0.minimize", "incompatible units"),
    ("1 - rho", "log(«toe_clearance»)", "objectives.0.minimize", "needs a number without a unit"),
    ("1 - rho", "toe_clearance ** «rho»", "objectives.0.minimize", "needs a constant exponent"),
    ("1 - rho", "toe_clearance ** «10»", "objectives.0.minimize", "needs an exponent between -9 and 9"),
    ("1 - rho", "rho «$» 2", "objectives.0.minimize", "not allowed in an expression"),
    ("1 - rho", "«1 - 2»", "objectives.0.minimize", "this is a constant"),
    ("1 - rho", "«rho < 2»", "objectives.0.minimize", "a comparison is not allowed here"),
    ("1 - rho", "«test_homeless»", "objectives.0.minimize", "needs 'nowhere'"),
    ("1 - rho", "«twin»", "objectives.0.minimize", "is an output of model 'test_wheel' and also an installed"),
    ("1 - rho", "rho + 1/«0»", "objectives.0.minimize", "division by zero"),
    ("1 - rho", "rho + «log(0)»", "objectives.0.minimize", "this constant is not a finite number"),
    ("0.1 [s] * stiffness", "stiffness/«0 [N/m]»", "relations.0", "division by zero"),
    ("0.1 [s] * stiffness", "«1.7e308 [kN s/m]»", "relations.0", "this constant is not a finite number"),
    ("of: toe_clearance, min", "of: toe_clearance/«0», min", "constraints.0.of", "division by zero"),
    ("min: 5 mm", "min: «1.7e308 km»", "constraints.0.min", "the number is too large in 'm'"),
    ("  mass: 3 kg", "  mass: «1.7e308 t»", "model.mass", "the number is too large in 'kg'"),
    ("damping: [0, 100]", "damping: [«100 m», 3]", "space.damping.low", "incompatible units"),
    ("1 - rho", "«[rho]»", "objectives.0.minimize", "expected an expression, not a list"),
    ("minimize: 1 - rho", "«minimise»: 1 - rho", "objectives.0", "did you mean 'minimize'?"),
    ("minimize: 1 - rho", "minimize: rho, «maximize»: rho", "objectives.0", "not both"),
    ("{name: mismatch, minimize: 1 - rho, over: worst}", "«{name: mismatch}»", "objectives.0", "is missing"),
    ("over: worst", "over: «worse»", "objectives.0.over", "no plugin named 'worse'"),
    ("over: worst", "over: {use: quantile, level: «2»}", "objectives.0.over.level", "must be at most 1"),
    ("- name: flexion", "- name: «mismatch»", "objectives.1.name", "another objective named 'mismatch'"),
    ("    unit: deg", "    unit: «mm»", "objectives.1.unit", "'deg' cannot be converted to 'mm'"),
    ("    unit: deg", "    unit: «dge»", "objectives.1.unit", "unknown unit 'dge'"),
    # --- constraints
    ("min: 5 mm", "min: «5 kg»", "constraints.0.min", "'kg' cannot be converted to 'm'"),
    ("min: 5 mm", "min: «5 kM»", "constraints.0.min", "'kM' cannot be converted to 'm'; did you mean 'km'?"),
    ("min: 5 mm", "max: «-1»", "constraints.0.max", "can never hold: 'toe_clearance' is never below 0 m"),
    (
        "{name: clearance, of: toe_clearance, min: 5 mm}",
        "«{name: c, of: toe_clearance, min: 5, max: 3}»",
        "constraints.0",
        "'c': min (5 m) must not be above max (3 m)",
    ),
    (
        "{name: clearance, of: toe_clearance, min: 5 mm}",
        "«{name: c, of: toe_clearance}»",
        "constraints.0",
        "'min', 'max' or 'equals' is missing",
    ),
    ("min: 5 mm", "min: 5, «equals»: 5", "constraints.0", "'equals' cannot be combined"),
    ("of: spread, max", "of: «sprad», max", "constraints.1.of", "did you mean 'spread'?"),
    ("name: spread, of", "name: «clearance», of", "constraints.1.name", "another constraint"),
    # --- stages
    ("use: test_grid", "use: «test_gird»", "stages.0.solver", "did you mean 'test_grid'?"),
    ("levels: {stiffness: 5, damping: 3}", "levels: {stiffness: «x»}", "stages.0.solver.levels.stiffness", "'x'"),
    ("levels: {stiffness: 5, damping: 3}", "levels: «{stif: 5}»", "stages.0.solver.levels", "'stif' is not in space"),
    ("levels: {stiffness: 5, damping: 3}", "levels: «[5]»", "stages.0.solver.levels", "a mapping or an integer"),
    (
        "use: test_grid, levels: {stiffness: 5, damping: 3}",
        "use: «test_grid», levels: 99",
        "stages.0.solver",
        "too many",
    ),
    ("    solver: {use: test_grid", "    solver: «test_grid» #", "stages.0.solver", "write {use: test_grid}"),
    ("stage: sweep", "stage: «swep»", "stages.1.start_from.stage", "no stage named 'swep'; did you mean 'sweep'?"),
    ("stage: sweep", "stage: «search»", "stages.1.start_from.stage", "cannot start from itself"),
    ("nondominated: all", "nondominated: «0»", "stages.1.start_from.nondominated", "must be at least 1"),
    ("nondominated: all", "nondominated: all, «best»: 1", "stages.1.start_from", "not both"),
    ("- name: search", "- name: «sweep»", "stages.1.name", "another stage named 'sweep'"),
    ("population: 20", "population: «1»", "stages.1.solver.population", "must be at least 2"),
    ("evaluations: 500", "evaluations: «5»", "stages.1.budget.evaluations", "needs at least 20 designs, not 5"),
    ("wall: 2 h", "wall: «0 h»", "stages.1.budget.wall", "must be above 0 s"),
    ("    budget: {evaluations: 500, wall: 2 h}\n", "", "stages.1", "'budget' is missing"),
    (
        "    solver: {use: test_grid, levels: {stiffness: 5, damping: 3}}\n  - name: search\n",
        "    solver: {use: test_grid}\n  - name: more\n    «start_from»: {stage: sweep}\n"
        "    solver: {use: test_grid}\n  - name: search\n",
        "stages.1.start_from",
        "does not learn from designs of an earlier stage",
    ),
    # --- execution and report
    ("executor: dask", "executor: «dsk»", "execution.executor", "did you mean 'dask'?"),
    ("workers: 2", "workers: «0»", "execution.workers", "must be at least 1, not 0"),
    ("workers: 2", "workers: «many»", "execution.workers", "'many' is not one of auto"),
    ("timeout: 10 s", "timeout: «10 kg»", "execution.timeout", "incompatible units"),
    ("timeout: 10 s", "«timeot»: 10 s", "execution", "did you mean 'timeout'?"),
    ("timeout: 10 s", "retries: {lost_worker: «-1»}", "execution.retries.lost_worker", "must be at least 0"),
    (
        "timeout: 10 s",
        "on_failure: {stop_if_share_above: «5»}",
        "execution.on_failure.stop_if_share_above",
        "at most 1",
    ),
    ("arrays: [time]", "arrays: [time, «tme»]", "execution.arrays.1", "has no array 'tme'; did you mean 'time'?"),
    ("arrays: [time]", "arrays: {«tme»: all}", "execution.arrays.tme", "has no array 'tme'"),
    ("arrays: [time]", "arrays: {time: «some»}", "execution.arrays.time", "is not one of all, front"),
    (
        "  executor: dask\n  workers: 2\n  timeout: 10 s",
        "  executor: serial\n  timeout: «10 s»",
        "execution.timeout",
        "hangs",
    ),
    (
        "  executor: dask\n  workers: 2\n  timeout: 10 s",
        "  executor: serial\n  workers: «2»",
        "execution.workers",
        "has no workers",
    ),
    ("workers: 2", "workers: «2»\n  scheduler: tcp://127.0.0.1:8786", "execution.workers", "remove 'workers'"),
    ("plots: [test_part]", "plots: [«test_prt»]", "report.plots.0", "did you mean 'test_part'?"),
    ("plots: [test_part]", "plots: [{use: test_part, band: «-1»}]", "report.plots.0.band", "must be at least 0 deg"),
]


@pytest.mark.parametrize(
    ("find", "replacement", "path", "fragment"), CASES, ids=[f"{i}-{case[2] or 'file'}" for i, case in enumerate(CASES)]
)
def test_a_mistake_is_reported_once_at_its_place(refused_once, base_text, find, replacement, path, fragment) -> None:
    refused_once(base_text, find, replacement, path, fragment)


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ("{low: «5 kN/m», high: 50 kN/m}", "low"),
        ("{low: 5, high: «50 kN/m»}", "high"),
        ("{low: 5 kN/m, high: 50 kN/m, unit: «kN/m»}", "unit"),
        ("{value: «5 kN/m»}", "value"),
        ("{values: [5, «6 kN/m»]}", "values.1"),
    ],
)
def test_a_unit_that_the_model_gives_no_way_to_convert_is_a_mistake(mistakes, changed, entry, key) -> None:
    rest = "objectives: [{name: a, minimize: a}]\nsolver: {use: test_search}\nbudget: {evaluations: 40}\n"
    base = f"study: s\nmodel: {{use: test_open}}\nspace: {{stiffness: GIVEN}}\n{rest}"
    text, line, column, end = changed(base, "GIVEN", entry)
    (issue,) = mistakes(text)
    assert (issue.path, issue.line, issue.column, issue.end_column) == (f"space.stiffness.{key}", line, column, end)
    assert issue.message == (
        "the model 'test_open' does not declare 'stiffness', so its unit cannot be converted; "
        "annotate the model's design argument with a TypedDict, or an argument of this name, or write plain numbers"
    )


def test_the_hand_written_cases_are_many() -> None:
    assert len(CASES) >= 60


def test_all_mistakes_come_in_one_pass_and_in_file_order(mistakes, base_text) -> None:
    text = base_text
    for find, replacement in (
        ("mass: 3 kg", "mass: -3 kg"),
        ("high: 30 kN/m", "high: 1 kN/m"),
        ("1 - rho", "1 - roh"),
        ("use: test_grid", "use: test_gird"),
        ("timeout: 10 s", "timeout: 10 kg"),
        ("seed: 7", "sede: 7"),
    ):
        text = text.replace(find, replacement)
    issues = mistakes(text)
    assert [issue.path for issue in issues] == [
        "",
        "model.mass",
        "space.stiffness",
        "objectives.0.minimize",
        "stages.0.solver",
        "execution.timeout",
    ]
    lines = [issue.line for issue in issues]
    assert lines == sorted(lines)


def test_one_broken_member_does_not_hide_the_checks_of_its_neighbours(mistakes, base_text) -> None:
    text = base_text.replace("minimize: 1 - rho", "minimise: 1 - rho").replace("abs(peak_error)", "abs(peak_eror)")
    assert [issue.path for issue in mistakes(text)] == ["objectives.0", "objectives.1.minimize"]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("model", "'model' is missing"),
        ("space", "'space' is missing"),
        ("objectives", "'objectives' is missing"),
        ("stages", "'stages' is missing (or 'solver', for a single stage)"),
    ],
)
def test_a_missing_section_is_reported_at_the_top(mistakes, base_text, section, message) -> None:
    lines, remaining, skipping = base_text.splitlines(keepends=True), [], False
    for line in lines:
        if not line.startswith(" "):
            skipping = line.startswith(f"{section}:")
        remaining += [] if skipping else [line]
    issues = [issue for issue in mistakes("".join(remaining)) if message in issue.message]
    assert [(issue.line, issue.column) for issue in issues] == [(1, 1)]


@pytest.mark.parametrize(
    ("section", "value", "message"),
    [
        ("space", "{}", "at least one parameter"),
        ("space", "[]", "expected a mapping, not a list"),
        ("objectives", "[]", "at least one objective"),
        ("objectives", "{}", "expected a list, not a mapping"),
        ("stages", "[]", "at least one stage"),
        ("scenarios", "[]", "at least one scenario"),
        ("constraints", "x", "expected a list, not the word 'x'"),
    ],
)
def test_an_empty_section_is_reported_where_it_stands(mistakes, base_text, section, value, message) -> None:
    remaining, skipping, at = [], False, 0
    for line in base_text.splitlines(keepends=True):
        if not line.startswith(" "):
            skipping = line.startswith(f"{section}:")
            if skipping:
                remaining.append(f"{section}: {value}\n")
                at = len(remaining)
        remaining += [] if skipping else [line]
    issues = [issue for issue in mistakes("".join(remaining)) if message in issue.message]
    assert [(issue.line, issue.column, issue.path) for issue in issues] == [(at, len(section) + 3, section)]


def test_a_space_in_which_nothing_varies_is_refused(load, base_text) -> None:
    start, end = base_text.index("space:"), base_text.index("scenarios:")
    text = base_text[:start] + "space: {stiffness: 20 kN/m}\n" + base_text[end:]
    with pytest.raises(StudyError, match="nothing varies"):
        load(text)


def test_a_later_stage_cannot_be_started_from(mistakes, base_text) -> None:
    text = base_text.replace("- name: sweep\n", "- name: sweep\n    start_from: {stage: search}\n", 1)
    text = text.replace("use: test_grid, levels: {stiffness: 5, damping: 3}", "use: test_search}\n    budget: {wall: 1")
    assert [(i.path, i.message) for i in mistakes(text)] == [
        ("stages.0.start_from.stage", "stage 'search' comes later")
    ]


def test_a_solver_beside_stages_is_refused(mistakes, base_text) -> None:
    (issue,) = mistakes(base_text + "solver: {use: test_grid}\n")
    assert (issue.line, issue.column) == (base_text.count("\n") + 1, 1)
    assert "put it into a stage" in issue.message


def test_conditions_that_a_model_needs_are_asked_for(load) -> None:
    text = (
        "study: s\nmodel: {use: test_needy}\nspace: {stiffness: [1, 2]}\n"
        "objectives: [{name: a, minimize: rho}]\nsolver: {use: test_grid}\n"
    )
    with pytest.raises(StudyError, match="'scenarios' is missing: model 'test_needy' needs speed"):
        load(text)
    with pytest.raises(StudyError, match=r"scenarios\.0: 'speed' is missing \(speed, in m/s\)"):
        load(text + "scenarios: [{name: a}]\n")


def test_a_failing_check_of_a_model_is_one_line_at_its_name(mistakes, base_text) -> None:
    (issue,) = mistakes(base_text.replace("mass: 3 kg", "mass: 14"))
    assert re.fullmatch(r"test_wheel: \S*\.py:\d+: RuntimeError: the check itself fails", issue.message)
    assert (issue.line, issue.column) == (4, 8)


def test_a_missing_design_input_points_at_the_space(mistakes, base_text) -> None:
    lines = [line for line in base_text.splitlines(keepends=True) if "stiffness: {low" not in line]
    text = "".join(lines).replace("- damping <= 0.1 [s] * stiffness", "- damping <= 3")
    text = text.replace("levels: {stiffness: 5, damping: 3}", "levels: 3")
    (issue,) = mistakes(text)
    assert issue.message == "the design input 'stiffness' of model 'test_wheel' is missing"
    assert (issue.line, issue.column, issue.end_column) == (7, 1, 6)
