"""Walks cycle by cycle, the motions that repeat in every gait cycle, and where those lose their stability."""

from __future__ import annotations

from typing import Literal

#: Possible contacts: the ends of the sole with the ground, the knee with its stop.
Body = Literal["heel", "toe", "stop"]
BODIES: tuple[Body, ...] = ("heel", "toe", "stop")
