"""A Plotly figure that a notebook keeps as a picture, too, so that it survives `nbconvert` without JavaScript."""

from __future__ import annotations

import base64
import html
import json
from typing import Any

import plotly.graph_objects as go

from designopt.report.figure_file import FigureError, draw, has_browser

#: Width (CSS pixels) of a figure that has none of its own.
WIDTH = 900


class NotebookFigure(go.Figure):  # type: ignore[misc]  # Plotly has no types
    """A figure whose output in a notebook is interactive where the notebook knows Plotly, and a picture elsewhere.

    With Chromium or Chrome on this machine the output has an SVG (in its HTML) and a PNG, which pages and PDF of
    `nbconvert` show; without one it has Plotly's own HTML with the library.
    """

    _ipython_display_ = None  # Plotly's own would show the interactive form alone

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {
            "application/vnd.plotly.v1+json": json.loads(self.to_json()),
            "text/plain": f"<Figure: {self.layout.title.text or ''}>",
        }
        try:
            images = (
                draw(self, int(self.layout.width or WIDTH), int(self.layout.height or 460)) if has_browser() else {}
            )
        except FigureError:
            images = {}
        if not images:
            return bundle | {"text/html": self.to_html(full_html=False)}
        encodings = {key: base64.b64encode(content).decode() for key, content in images.items()}
        style = "max-width:100%;height:auto;background:white"
        title = html.escape(self.layout.title.text or "figure")
        picture = f'<img alt="{title}" style="{style}" src="data:image/svg+xml;base64,{encodings["svg"]}">'
        # not as image/svg+xml: LaTeX documents of nbconvert would need Inkscape for it, and take the PNG
        return bundle | {"image/png": encodings["png"], "text/html": picture}
