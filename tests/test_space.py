"""Conditional parameters: a design says nothing of a parameter whose condition does not hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from designopt.space import Space
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable

CRITERION = DesignVariable("criterion", "choice", values=("cubed", "entropy", "min_max"))
SCALE = DesignVariable("scale", "real", 20.0, 100.0, when={"criterion": ("entropy", "min_max")})
LEVEL = DesignVariable("level", "real", 1.0, 100.0, scale="log", when={"criterion": ("entropy",)})
TERMS = DesignVariable("terms", "int", 1, 4, when={"criterion": ("min_max",)})
KIND = DesignVariable("kind", "choice", values=("soft", "hard"), when={"terms": (3, 4)})
DAMPING = DesignVariable("damping", "real", 0.0, 2.0, when={"kind": ("hard",)})

#: Declared before what they depend on, as a file may have them.
SPACE = Space((DAMPING, SCALE, LEVEL, KIND, TERMS, CRITERION))
COLUMNS = {name: j for j, name in enumerate(SPACE.names)}


def row(**values: float) -> np.ndarray:
    """A design in which everything not named is at its lowest."""
    x = np.array([0.0 if p.kind == "choice" else p.low for p in SPACE.free])
    for name, value in values.items():
        x[COLUMNS[name]] = value
    return x


def designs(*rows: np.ndarray) -> np.ndarray:
    return np.array(rows)


@st.composite
def any_designs(draw: st.DrawFn) -> np.ndarray:
    """Designs anywhere in the box, inactive entries too."""
    n = draw(st.integers(0, 5))
    S = [[draw(st.floats(low, high)) for low, high in zip(SPACE.lower, SPACE.upper, strict=True)] for _ in range(n)]
    # the columns as `from_search` makes them, without its imputation
    plain = Space(
        tuple(DesignVariable(p.name, p.kind, p.low, p.high, p.values, scale=p.scale) for p in SPACE.parameters)
    )
    return plain.from_search(np.array(S).reshape(n, len(SPACE.names)))


# --------------------------------------------------------------------------------------------------------- activity


def test_a_parameter_is_active_where_its_controller_has_one_of_the_values() -> None:
    active = SPACE.active(designs(row(criterion=0), row(criterion=1), row(criterion=2)))
    assert active[:, COLUMNS["scale"]].tolist() == [False, True, True]
    assert active[:, COLUMNS["level"]].tolist() == [False, True, False]
    assert active[:, COLUMNS["criterion"]].all()


def test_an_inactive_controller_makes_what_depends_on_it_inactive_whatever_stands_in_its_column() -> None:
    chain = row(terms=4, kind=1)
    on, off = designs(chain), designs(chain)
    on[:, COLUMNS["criterion"]] = 2
    assert SPACE.active(on)[0, [COLUMNS["terms"], COLUMNS["kind"], COLUMNS["damping"]]].all()
    assert not SPACE.active(off)[0, [COLUMNS["terms"], COLUMNS["kind"], COLUMNS["damping"]]].any()


def test_a_whole_number_controls_by_its_value() -> None:
    active = SPACE.active(designs(*(row(criterion=2, terms=n) for n in (1, 2, 3, 4))))
    assert active[:, COLUMNS["kind"]].tolist() == [False, False, True, True]


def test_all_conditions_of_a_parameter_have_to_hold() -> None:
    conditional = DesignVariable("both", "real", 0.0, 1.0, when={"criterion": ("entropy",), "n": (2,)})
    space = Space((CRITERION, DesignVariable("n", "int", 1, 3), conditional))
    active = space.active(np.array([[1.0, 2.0, 0.5], [1.0, 3.0, 0.5], [0.0, 2.0, 0.5]]))
    assert active[:, 2].tolist() == [True, False, False]


def test_a_fixed_controller_decides_for_all_designs() -> None:
    for value, expected in (("entropy", True), ("cubed", False)):
        space = Space((DesignVariable("criterion", "fixed", values=(value,)), LEVEL))
        assert space.active(np.array([[5.0]])).tolist() == [[expected]]
        assert ("level" in space.values([5.0])) is expected


def test_true_is_not_one() -> None:
    controller = DesignVariable("c", "choice", values=(1, True))
    space = Space((controller, DesignVariable("x", "real", 0.0, 1.0, when={"c": (True,)})))
    assert space.active(np.array([[0.0, 0.5], [1.0, 0.5]]))[:, 1].tolist() == [False, True]
    assert "x" not in space.values([0.0, 0.5])
    assert "x" in space.values([1.0, 0.5])


def test_conditions_in_a_circle_are_refused() -> None:
    a = DesignVariable("a", "choice", values=(1, 2), when={"b": (1,)})
    b = DesignVariable("b", "choice", values=(1, 2), when={"a": (1,)})
    with pytest.raises(ValueError, match="the condition of 'a' depends on 'a' itself"):
        Space((a, b)).active(np.zeros((1, 2)))


# ------------------------------------------------------------------------------------------------------- imputation


def test_inactive_entries_stand_at_the_middle_of_the_range_or_the_first_choice() -> None:
    x = SPACE.impute(designs(row(criterion=0, damping=2.0, scale=90.0, level=99.0, kind=1, terms=4)))[0]
    assert x[COLUMNS["scale"]] == 60.0
    assert x[COLUMNS["level"]] == pytest.approx(10.0, rel=1e-15)  # the middle of 1 to 100 on a log scale
    assert x[COLUMNS["terms"]] == 2.0  # of 1 2 3 4: whole, towards the lower
    assert x[COLUMNS["kind"]] == 0.0
    assert x[COLUMNS["damping"]] == 1.0


def test_the_middle_of_the_widest_range_is_finite() -> None:
    p = DesignVariable("x", "real", -1.7e308, 1.7e308, when={"criterion": ("entropy",)})
    assert Space((CRITERION, p)).impute(np.array([[0.0, 1.0]]))[0, 1] == 0.0


@given(any_designs())
def test_imputing_twice_is_imputing_once(X: np.ndarray) -> None:
    once = SPACE.impute(X)
    assert np.array_equal(SPACE.impute(once), once)
    assert np.array_equal(SPACE.active(once), SPACE.active(X))


@given(any_designs())
def test_active_entries_are_never_changed(X: np.ndarray) -> None:
    active = SPACE.active(X)
    assert np.array_equal(SPACE.impute(X)[active], X[active])


@given(any_designs(), st.randoms(use_true_random=False))
def test_designs_that_differ_in_inactive_values_only_are_one_design(X: np.ndarray, random) -> None:
    noise = SPACE.from_search(SPACE.lower + random.random() * (SPACE.upper - SPACE.lower) + np.zeros(X.shape))
    varied = np.where(SPACE.active(X), X, noise)
    assert np.array_equal(SPACE.impute(varied), SPACE.impute(X))
    assert [SPACE.values(x) for x in varied] == [SPACE.values(x) for x in X]
    assert [SPACE.design(x) for x in varied] == [SPACE.design(x) for x in X]


@given(any_designs())
def test_a_design_names_exactly_its_active_parameters(X: np.ndarray) -> None:
    for x, active in zip(X, SPACE.active(X), strict=True):
        assert set(SPACE.values(x)) == {name for name, on in zip(SPACE.names, active, strict=True) if on}


def test_search_coordinates_lead_to_imputed_designs() -> None:
    S = np.array([SPACE.lower, SPACE.upper])
    X = SPACE.from_search(S)
    assert np.array_equal(X, SPACE.impute(X))
    assert X[0, COLUMNS["scale"]] == 60.0  # criterion is 'cubed'
    assert X[1, COLUMNS["scale"]] == 100.0
    assert np.array_equal(SPACE.from_search(SPACE.to_search(X)), X)


def test_the_model_is_not_given_inactive_parameters() -> None:
    force = DesignVariable("force", "real", 0.0, 1.0, unit="kN", factor=1000.0, when={"criterion": ("entropy",)})
    fixed = DesignVariable("spare", "fixed", values=(3.0,), when={"criterion": ("cubed",)})
    space = Space((CRITERION, force, fixed))
    assert space.design([1.0, 0.5]) == {"criterion": "entropy", "force": 500.0}
    assert space.design([0.0, 0.5]) == {"criterion": "cubed", "spare": 3.0}


# -------------------------------------------------------------------------------------------------------- relations


def test_a_relation_that_names_an_inactive_parameter_holds() -> None:
    relation = Expression.parse("scale <= 10*damping")
    space = Space(SPACE.parameters, (relation,))
    broken = row(criterion=2, terms=4, kind=1, damping=1.0, scale=50.0)
    assert space.relation_violation(designs(broken)).tolist() == [40.0]
    soft = broken.copy()
    soft[COLUMNS["kind"]] = 0  # no damping then
    assert space.relation_violation(designs(broken, soft, row(criterion=0))).tolist() == [40.0, 0.0, 0.0]


def test_a_relation_of_active_parameters_is_judged_where_others_are_inactive() -> None:
    space = Space((*SPACE.parameters, DesignVariable("x", "real", 0.0, 1.0)), (Expression.parse("x <= 0.25"),))
    assert space.relation_violation(np.array([[*row(criterion=0), 0.75]])).tolist() == [0.5]


def test_a_relation_with_a_conditional_constant_holds_where_there_is_none() -> None:
    fixed = DesignVariable("most", "fixed", values=(0.25,), when={"criterion": ("entropy",)})
    space = Space((CRITERION, fixed, DesignVariable("x", "real", 0.0, 1.0)), (Expression.parse("x <= most"),))
    assert space.relation_violation(np.array([[0.0, 1.0], [1.0, 1.0]])).tolist() == [0.0, 0.75]


# ------------------------------------------------------------------------------------------------ without conditions


def test_without_conditions_everything_is_active_and_nothing_is_copied() -> None:
    space = Space((DesignVariable("x", "real", 0.0, 1.0), DesignVariable("c", "choice", values=("a", "b"))))
    X = np.array([[0.5, 1.0]])
    assert space.impute(X) is X
    assert space.active(X).all()
    assert space.values(X[0]) == {"x": 0.5, "c": "b"}


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.7), (1e-3, 7.3), (2.9, 1e5 / 3.0)])
def test_the_ends_of_a_log_scale_are_the_bounds_to_the_last_digit(low: float, high: float) -> None:
    """exp(log(x)) differs from most x."""
    space = Space((DesignVariable("level", "real", low, high, scale="log"),))
    ends = np.log([[low], [high]])
    assert (np.exp(ends[:, 0]) != [low, high]).any()
    assert space.from_search(ends)[:, 0].tolist() == [low, high]
