"""Walks cycle by cycle, the motions that repeat in every gait cycle, and where those lose their stability."""

from __future__ import annotations

from typing import Literal

#: What may touch: the ends of the sole the ground, the knee its stop.
Body = Literal["heel", "toe", "stop"]
BODIES: tuple[Body, ...] = ("heel", "toe", "stop")
