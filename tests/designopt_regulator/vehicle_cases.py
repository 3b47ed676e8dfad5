"""Vehicles, controllers and manoeuvres of the specification, sections 6.1 and 9.6, for the tests of the vehicle."""

import numpy as np
from designopt_regulator.controllers.pid import pid
from designopt_regulator.vehicle.equations import Vehicle, plant
from designopt_regulator.vehicle.simulation import Manoeuvre, simulate
from designopt_regulator.vehicle.terrains import TERRAINS

T = 0.05

#: (terrain, speed in m/s) of the course study.
COURSE = (
    ("paved", 5), ("dry_dirt", 3), ("turf", 2), ("wet_dirt", 4), ("sand", 2), ("snow_road", 5), ("turf", 5),
    ("paved", 2),
)  # fmt: skip

#: (terrain, grade, mass factor) of the speed study.
SPEED = (
    ("paved", 0.05, 1.0), ("dry_dirt", 0.05, 1.0), ("turf", 0.05, 1.2), ("wet_dirt", 0.03, 1.0), ("sand", 0.03, 1.0),
    ("snow_road", 0.05, 0.9),
)  # fmt: skip

A = {"kp": 1.5, "ti": 8.0, "td": 0.6, "tf": 0.1, "b": 1.0, "tt": 3.0}
B = {"kp": 0.8, "ti": 30.0, "td": 0.4, "tf": 0.1, "b": 0.8, "tt": 3.0}

#: Step of the course, rad.
TURN = np.radians(20.0)

#: The speed controller of the course study.
HOLDS_SPEED = {"kp": 0.55, "ti": 4.0, "td": 0.0, "tf": 0.1, "b": 0.6, "tt": 2.0}


def vehicles(terrains, mass_factor=1.0, **changes):
    """Default vehicles, one on each of the terrains, as a `Plant`; yaw inertia goes with the mass."""
    v, ground = Vehicle(), [TERRAINS[name] for name in terrains]
    factor = np.broadcast_to(np.asarray(mass_factor, float), len(ground))
    fields = {
        name: getattr(v, name)
        for name in (
            "rotating_mass_factor", "track_distance", "contact_length", "max_force", "power", "lag", "air_drag"
        )
    } | {"mass": v.mass * factor, "yaw_inertia": v.yaw_inertia * factor}  # fmt: skip
    fields |= {name: [getattr(g, name) for g in ground] for name in ("rolling", "turning", "adhesion")}
    return plant(**fields | changes)


def rows(n, settings):
    """n controllers with these settings."""
    return pid(
        **{name: np.broadcast_to(np.asarray(value, float), n) for name, value in settings.items()}, sample_time=T
    )


def turn(speeds, angle=TURN, moment=6000.0, **times):
    """The manoeuvre of the course study at these speeds."""
    v, one = np.asarray(speeds, float), np.ones(len(speeds))
    times = {"step_at": 1.0, "load_at": 15.0, "horizon": 30.0} | times
    return Manoeuvre(v, v, angle * one, moment * one, 0.0 * one, **times)


def course_runs(designs, scenarios=COURSE, *, substeps=20, manoeuvre=None, changes=None, **options):
    """The course study: one row for each pair of the two sequences; `changes` are those of the vehicles."""
    n = len(scenarios)
    controllers = rows(n, {name: [d[name] for d in designs] for name in designs[0]})
    manoeuvre = manoeuvre or turn([speed for _, speed in scenarios])
    delay = np.full(n, 4 * substeps)
    ground = vehicles([terrain for terrain, _ in scenarios], **(changes or {}))
    return simulate(ground, rows(n, HOLDS_SPEED), controllers, manoeuvre, delay, substeps=substeps, **options)


def random_designs(n, seed=1):
    """Designs of the course study's space."""
    rng = np.random.default_rng(seed)
    return [
        {"kp": 10 ** rng.uniform(-1, 1), "ti": 10 ** rng.uniform(0, 2), "td": rng.uniform(0, 1.5),
         "tf": rng.uniform(0.05, 0.5), "b": rng.uniform(0, 1), "tt": 3.0}
        for _ in range(n)
    ]  # fmt: skip
