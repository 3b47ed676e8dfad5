"""A stage that begins with the designs of another study's store."""

from pathlib import Path

import pytest

from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_data, study_from_file, study_from_text
from designopt.study.study import StartFrom

STUDY = """\
study: second
model: {use: test_wheel, mass: 3}
space: {stiffness: [1, 2]}
objectives: [{name: a, minimize: rho}]
stages:
  - name: search
    start_from: START
    solver: {use: test_search}
    budget: {evaluations: 40}
"""


@pytest.fixture
def study_folder(tmp_path: Path) -> Path:
    """A folder with a store in it, one beside it, and folders that are none."""
    below = tmp_path / "studies"
    for store in (below / "first.study", tmp_path / "outside.study", below / "half.study", below / "empty"):
        store.mkdir(parents=True)
    for store in (below / "first.study", tmp_path / "outside.study"):
        (store / "journal.db").touch()
        (store / "problem.json").touch()
    (below / "half.study" / "journal.db").touch()
    (below / "link.study").symlink_to(tmp_path / "outside.study")
    return below


def write_study(folder: Path, start: str) -> Path:
    path = folder / "second.yaml"
    path.write_text(STUDY.replace("START", start))
    return path


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("{store: first.study}", ("nondominated", None)),
        ("{store: first.study, nondominated: all}", ("nondominated", None)),
        ("{store: ./first.study, nondominated: 5}", ("nondominated", 5)),
        ("{store: first.study/, best: 3}", ("best", 3)),
    ],
)
def test_a_store_below_the_folder_of_the_study_is_known_by_its_whole_path(study_folder, start, expected) -> None:
    (stage,) = study_from_file(write_study(study_folder, start)).stages
    assert stage.start_from == StartFrom(None, *expected, str((study_folder / "first.study").resolve()))


def test_a_store_elsewhere_is_given_by_its_whole_path_on_the_command_line_or_in_python(study_folder) -> None:
    outside = str(study_folder.parent / "outside.study")
    path = write_study(study_folder, "{store: first.study}")
    (stage,) = study_from_file(path, overrides=[f"stages.search.start_from.store={outside}"]).stages
    assert stage.start_from == StartFrom(store=outside)
    data = {
        "study": "python",
        "model": {"use": "test_wheel", "mass": 3},
        "space": {"stiffness": [1, 2]},
        "objectives": [{"name": "a", "minimize": "rho"}],
        "stages": [
            {
                "name": "search",
                "start_from": {"store": outside},
                "solver": {"use": "test_search"},
                "budget": {"evaluations": 40},
            }
        ],
    }
    assert study_from_data(data).stages[0].start_from == StartFrom(store=outside)
    assert study_from_data(data, base=study_folder).stages[0].start_from == StartFrom(store=outside)


@pytest.mark.parametrize(
    ("start", "path", "message"),
    [
        ("{store: «frist.study»}", ".store", "there is no folder 'frist.study'; did you mean 'first.study'?"),
        ("{store: «half.study»}", ".store", "'half.study' is not a store: it has no problem.json"),
        ("{store: «empty»}", ".store", "'empty' is not a store: it has no journal.db"),
        ("{store: «second.yaml»}", ".store", "there is no folder 'second.yaml'"),
        ("{store: «../outside.study»}", ".store", "'../outside.study' lies outside the study's folder"),
        ("{store: «link.study»}", ".store", "'link.study' lies outside the study's folder"),
        (
            "{store: «/outside.study»}",
            ".store",
            "a store is a path relative to the study file and below its folder",
        ),
        ("{store: «''»}", ".store", "'' is not the name of a folder"),
        ("{store: «7»}", ".store", "expected a word, not the number 7"),
        ("{store: first.study, «stage»: search}", "", "give 'stage' or 'store', not both"),
        ("«{best: 3}»", "", "'stage' or 'store' is missing"),
        ("{store: first.study, best: 1, «nondominated»: 3}", "", "give 'nondominated' or 'best', not both"),
        ("{«stor»: first.study}", "", "unknown key 'stor'; did you mean 'store'?"),
    ],
)
def test_a_mistake_is_reported_once_at_its_place(study_folder, changed, start, path, message) -> None:
    text, line, column, end = changed(STUDY, "START", start)
    (study_folder / "second.yaml").write_text(text)
    with pytest.raises(StudyError) as caught:
        study_from_file(study_folder / "second.yaml")
    (issue,) = caught.value.issues
    assert issue.path == f"stages.0.start_from{path}"
    assert issue.message.startswith(message)
    if "not both" not in message:
        assert (issue.line, issue.column, issue.end_column) == (line, column, end)


def test_a_study_without_a_folder_has_no_stores_beside_it() -> None:
    with pytest.raises(StudyError, match=r"'first.study' cannot be read: the study has no folder"):
        study_from_text(STUDY.replace("START", "{store: first.study}"), "study.yaml")
