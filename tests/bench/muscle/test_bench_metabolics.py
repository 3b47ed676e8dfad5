"""Metabolic rates beside those of OpenSim's probes, which run out of process: see the fixture `opensim_peer`."""

from pathlib import Path

import numpy as np
import pytest
from designopt_muscle.metabolics import FibreState, metabolic_rates
from designopt_muscle.osim.read import read_model
from designopt_muscle.strength import Fibres

pytestmark = pytest.mark.bench


def test_rates_are_those_of_opensims_probes(shared_data, opensim_peer):
    """40 random states of Arm26, six muscles. OpenSim's heat of Bhargava has the complete force of the fibre, which
    differs from that of the active one beyond the optimal length."""
    path = shared_data("opensim") / "models/arm26.osim"
    theirs = opensim_peer(Path(__file__).parent / "peer_metabolics.py", path)
    model = read_model(path.read_bytes())
    names = tuple(theirs.pop("muscles"))
    assert names == tuple(muscle.name for muscle in model.muscles)
    rows = {name: np.array(values) for name, values in theirs.items()}
    ones = np.ones_like(rows["length"])
    state = FibreState(
        rows["activation"], rows["force"], Fibres(names, rows["length"], rows["speed"], ones, 0.0 * ones)
    )
    active = np.abs(rows["total"] - rows["force"]) < 1e-9
    assert 0.4 < active.mean() < 0.9
    assert (rows["speed"] > 0.0).mean() > 0.3
    bhargava, umberger = (metabolic_rates(model.muscles, state, name) for name in ("bhargava", "umberger"))
    assert bhargava[active] == pytest.approx(rows["bhargava"][active], rel=1e-9, abs=1e-9)
    assert umberger == pytest.approx(rows["umberger"], rel=1e-9, abs=1e-9)
