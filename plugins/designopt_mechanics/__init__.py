"""Mechanics of trees of rigid bodies: what muscles, exoskeletons and a user's own mechanisms stand on.

A `tree.Tree` is data: `tree.Coordinate` values z, and `tree.Frame` after frame, each fixed to a parent and moved by
elementary `motions` (`Rotate`, `Slide`, `Polar`) in order. A joint variable is a number, the name of a coordinate, or a
joint function of the coordinates (`functions`: affine, splines and polynomials, formulas in text, two-bar closures in
closed form, implicit loop closures). Several motions in one frame make a joint of several axes: the spatial transform
of an OpenSim joint is three slides, then three rotations. A frame without motions is welded. Frames carry a
`body.Body` or nothing. Closed chains, rhythms and couplers are joint functions; rods of variable length are polar
motions; nothing here depends on muscles.

`state.TreeState` is a tree with CasADi symbols for z and its rates: positions, axes, velocities. From it come

- `dynamics.recursion.inverse_dynamics` and `efforts` (forces in the joints), with gravity as a free vector and
  `loads.Load` on any frame; `dynamics.matrices`: mass matrix, bias, Coriolis matrix, forward dynamics, energies;
- `wires.lengths`, `moment_arms` (R = -dl/dz) and `pulls` of `wires.Wire`; `loads.generalised_force` (J' w) for
  whatever pulls otherwise;
- `springs.Spring` along a wire, `contacts.Contact` of a point and `contacts.SphereContact` of a sphere with a plane of
  any frame: their loads, smooth in z and its rates;
- `equations.equations_of`: states and unknowns of a `designopt.dynamics.system.System` in residual form, the only way
  out to simulation, linearisation and collocation;
- `tree_rows.TreeRows`: all of it over the frames of a trial, as arrays, up to a `moment_balance.MomentBalance`.

`checks.check` tries a tree with numbers: joint functions that jump, directions without mass.
`dynamics.assembly.Assembly` is a second way to forward dynamics and joint forces, by joining free bodies.

On the core stand `model_file` (mechanisms in YAML), `anatomy` (wires with virtual links, VRML), `rods` (of variable
length), and the models of `andrews`, `shoulder`, `exoskeleton` and `cables`; `report` has the parts that draw them.

Units are SI with angles in rad. Forces, moments and places are in the axes of the ground unless said otherwise.
"""
