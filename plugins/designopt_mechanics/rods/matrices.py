"""The 24 coefficient matrices of the equations of motion in closed form (equations 12 to 51 of Borisov, corrected)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt_mechanics.rods.basis import basis, split
from designopt_mechanics.rods.tree import RodTree

#: Rows of the table. Its columns A to H multiply, of rod j: d2phi, d2psi, d2l, dphi^2, dpsi^2, 2 dl dphi, 2 dphi dpsi
#: and 2 dl dpsi.
ROWS = ("phi", "psi", "l")

#: For each matrix the lengths that multiply mu_ij, and the terms of the sum: the sign, the cosine (c) or sine (s) of
#: phi_i - phi_j or neither, and the cosine (C) or sine (S) of psi_i and of psi_j.
TABLE: Mapping[str, tuple[str, tuple[tuple[int, str, str], ...]]] = {
    "A_phi": ("ij", ((1, "c", "CC"),)),
    "A_psi": ("ij", ((-1, "s", "SC"),)),
    "A_l": ("j", ((1, "s", "CC"),)),
    "B_phi": ("ij", ((1, "s", "CS"),)),
    "B_psi": ("ij", ((1, "c", "SS"), (1, "", "CC"))),
    "B_l": ("j", ((-1, "c", "CS"), (1, "", "SC"))),
    "C_phi": ("i", ((-1, "s", "CC"),)),
    "C_psi": ("i", ((-1, "c", "SC"), (1, "", "CS"))),
    "C_l": ("", ((1, "c", "CC"), (1, "", "SS"))),
    "D_phi": ("ij", ((1, "s", "CC"),)),
    "D_psi": ("ij", ((1, "c", "SC"),)),
    "D_l": ("j", ((-1, "c", "CC"),)),
    "E_phi": ("ij", ((1, "s", "CC"),)),
    "E_psi": ("ij", ((1, "c", "SC"), (-1, "", "CS"))),
    "E_l": ("j", ((-1, "c", "CC"), (-1, "", "SS"))),
    "F_phi": ("i", ((1, "c", "CC"),)),
    "F_psi": ("i", ((-1, "s", "SC"),)),
    "F_l": ("", ((1, "s", "CC"),)),
    "G_phi": ("ij", ((-1, "c", "CS"),)),
    "G_psi": ("ij", ((1, "s", "SS"),)),
    "G_l": ("j", ((-1, "s", "CS"),)),
    "H_phi": ("i", ((1, "s", "CS"),)),
    "H_psi": ("i", ((1, "c", "SS"), (1, "", "CC"))),
    "H_l": ("", ((-1, "c", "CS"), (1, "", "SC"))),
}


def matrices(tree: RodTree, q: Any) -> dict[str, Any]:
    """The 24 matrices ("A_phi" to "H_l"), each (..., n, n): entry (i, j) stands in the row of rod i.

    Each is mu_ij times a product of the derivatives of both rods' vectors (`TABLE`); Ix, Iy or the moments of a body of
    revolution are on the diagonals.
    """
    phi, psi, length = split(tree, q)
    apart = phi[..., :, None] - phi[..., None, :]
    cosine, sine = np.cos(psi), np.sin(psi)
    azimuths = {"c": np.cos(apart), "s": np.sin(apart), "": 1.0}
    first = {"C": cosine[..., :, None], "S": sine[..., :, None]}
    second = {"C": cosine[..., None, :], "S": sine[..., None, :]}
    li, lj = length[..., :, None], length[..., None, :]
    factors = {"ij": tree.mu * li * lj, "i": tree.mu * li, "j": tree.mu * lj, "": tree.mu}
    blocks = {
        name: sum(sign * factors[lengths] * azimuths[a] * first[e[0]] * second[e[1]] for sign, a, e in terms)
        for name, (lengths, terms) in TABLE.items()
    }
    one = np.eye(tree.n)
    if tree.inertia == "coordinate":
        blocks["A_phi"] = blocks["A_phi"] + one * tree.column("Ix")
        blocks["B_psi"] = blocks["B_psi"] + one * tree.column("Iy")
        return blocks
    It, Ia = tree.column("It"), tree.column("Ia")
    across = (Ia - It) * sine * cosine
    blocks["A_phi"] = blocks["A_phi"] + one * (It * cosine**2 + Ia * sine**2)[..., None, :]
    blocks["B_psi"] = blocks["B_psi"] + one * It
    blocks["G_phi"] = blocks["G_phi"] + one * across[..., None, :]
    blocks["D_psi"] = blocks["D_psi"] - one * across[..., None, :]
    return blocks


def mass_matrix(tree: RodTree, q: Any) -> Any:
    """M (..., 3 n, 3 n) = [[A_phi, B_phi, C_phi], [A_psi, B_psi, C_psi], [A_l, B_l, C_l]]."""
    block_of = matrices(tree, q)
    rows = [np.concatenate([block_of[f"{name}_{row}"] for name in "ABC"], axis=-1) for row in ROWS]
    return np.concatenate(rows, axis=-2)


def bias(tree: RodTree, q: Any, dq: Any) -> Any:
    """(..., 3 n) what rates and weight add to M d2q: the generalised forces of a motion without accelerations."""
    block_of = matrices(tree, q)
    dphi, dpsi, dl = split(tree, dq)
    columns = {
        "D": dphi**2, "E": dpsi**2, "F": 2.0 * dl * dphi, "G": 2.0 * dphi * dpsi, "H": 2.0 * dl * dpsi,
    }  # fmt: skip
    weight = weight_forces(tree, q)
    parts = []
    for k, row in enumerate(ROWS):
        total = sum((block_of[f"{name}_{row}"] * column[..., None, :]).sum(-1) for name, column in columns.items())
        parts.append(total - weight[..., k * tree.n : (k + 1) * tree.n])
    return np.concatenate(parts, axis=-1)


def weight_forces(tree: RodTree, q: Any) -> Any:
    """(..., 3 n) the generalised forces of the weight, nu_i e^r_i . g."""
    return np.concatenate([tree.nu * (e * np.array(tree.gravity)).sum(-1) for e in basis(tree, q).first], axis=-1)
