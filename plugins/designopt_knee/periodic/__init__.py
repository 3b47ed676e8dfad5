"""Walks cycle by cycle, the motions that repeat in every gait cycle, and where those lose their stability."""
