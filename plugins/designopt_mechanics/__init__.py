"""Mechanics of trees of rigid bodies: what muscles, exoskeletons and a user's own mechanisms stand on."""
