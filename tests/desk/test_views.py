"""What the desk says of studies and stores, without a server."""

import pytest

from designopt.desk import views

STUDY = """\
study: own
model: {use: spring_of_mine}
space: {k: [1, 2]}
objectives: [{minimize: low}]
solver: {use: sobol, samples: 4}
"""


@pytest.fixture
def prepared(monkeypatch):
    monkeypatch.setattr(views, "_plugin_files", {})
    monkeypatch.setattr(views, "_data", {})


def test_a_study_of_a_plugin_that_is_not_there_tells_how_the_desk_is_given_one(tmp_path, prepared):
    advice = "designopt desk --plugin FILE"
    path = tmp_path / "own.yaml"
    path.write_text(STUDY)
    (finding,) = views.findings(path, STUDY)
    assert finding["message"].startswith("no plugin named 'spring_of_mine'")
    assert finding["message"].endswith(advice)

    views.prepare({str(tmp_path / "mine.py"): b""}, {})
    (finding,) = views.findings(path, STUDY)
    assert advice not in finding["message"]
