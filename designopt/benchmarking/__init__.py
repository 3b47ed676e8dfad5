"""Solvers compared on problems over seeds: a study of studies."""
