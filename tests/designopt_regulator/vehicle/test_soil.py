"""Soft ground: the table of the specification, 2.4, and what it does to the vehicle."""

import re

import numpy as np
import pytest
from designopt_regulator.vehicle.declarations import Disturbance
from designopt_regulator.vehicle.model import TrackedVehicle
from designopt_regulator.vehicle.soil import SOILS, SoftGround, compaction, sinkage, traction
from vehicle_cases import A

from designopt.plugin import InvalidDesign

VEHICLE = (10_000.0 * 9.80665, 0.38, 2.67)  # weight in N, width and length of the tracks in m

#: Sinkage in m, compaction, greatest traction, and at 20 % slip, as shares of the weight.
TABLE = {
    "dry_sand": (0.0432, 0.00771, 0.5532, 0.5273),
    "sandy_loam": (0.0072, 0.00158, 0.5899, 0.5623),
    "clayey_soil": (0.0044, 0.00110, 0.3165, 0.3130),
    "snow": (0.4014, 0.05782, 0.3794, 0.3509),
}


def test_the_pressure_of_the_default_vehicle():
    weight, width, length = VEHICLE
    assert weight / (2.0 * width * length) == pytest.approx(48_328.0, abs=0.5)


@pytest.mark.parametrize("name", SOILS)
def test_the_soils_of_the_table(name):
    soil, expected = SOILS[name], TABLE[name]
    assert sinkage(soil, *VEHICLE) == pytest.approx(expected[0], abs=5.1e-5)  # as many digits as are given
    assert compaction(soil, *VEHICLE) == pytest.approx(expected[1], abs=5.1e-6)
    assert traction(soil, *VEHICLE) == pytest.approx(expected[2], abs=5.1e-5)
    assert traction(soil, *VEHICLE, slip=0.2) == pytest.approx(expected[3], abs=5.1e-5)


def test_traction_grows_with_slip_to_the_greatest():
    soil = SOILS["snow"]
    shares = [traction(soil, *VEHICLE, slip=slip) for slip in (1e-6, 0.1, 0.5, 1.0)] + [traction(soil, *VEHICLE)]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(shares[-1] * 0.5 * 1e-6 * 2.67 / 0.04, rel=1e-4), "the slope at no slip"


def figures(conditions=None, **settings):
    model = TrackedVehicle(horizon=2.5, disturbance=Disturbance(at=2.0), **settings)
    scene = {"terrain": "turf", "speed": 3.0, **(conditions or {})}
    return model.evaluate(A, scene, frozenset())[0]


def test_a_soil_adds_to_rolling_resistance_and_replaces_adhesion():
    soil = SOILS["snow"]
    firm = {"rolling": 0.09 + compaction(soil, *VEHICLE), "adhesion": traction(soil, *VEHICLE, slip=0.3)}
    soft = figures(soft_ground=SoftGround(soil="snow", slip=0.3, clearance=0.5))
    assert soft == figures(firm)
    assert soft["energy"] > figures()["energy"]


def test_a_heavier_vehicle_sinks_deeper():
    ground = SoftGround(soil="sandy_loam")
    plain, soft = (
        figures({"mass_factor": 1.2}, **settings)["energy"] / figures(**settings)["energy"]
        for settings in ({}, {"soft_ground": ground})
    )
    assert soft > plain


@pytest.mark.parametrize("name", ["adhesion", "adhesion_at"])
def test_adhesion_is_not_given_twice(name):
    with pytest.raises(InvalidDesign, match=re.escape(f"{name}: the adhesion is the soil's with 'soft_ground'")):
        figures({name: 0.5}, soft_ground=SoftGround(soil="dry_sand"))


def test_sinkage_beyond_the_clearance_is_warned_of():
    deep = TrackedVehicle(soft_ground=SoftGround(soil="snow"))
    with pytest.warns(UserWarning, match=r"soft_ground: the tracks sink 0\.401 m into snow, .* clearance of 0\.4 m"):
        deep.check()
    TrackedVehicle(soft_ground=SoftGround(soil="dry_sand")).check()
    TrackedVehicle(soft_ground=SoftGround(soil="snow", clearance=0.45)).check()


def test_numbers_are_plain():
    assert all(isinstance(v, float) and np.isfinite(v) for soil in SOILS.values() for v in soil)
