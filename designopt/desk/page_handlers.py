"""The page of the desk and its files."""

from __future__ import annotations

from importlib.resources import files

from tornado.web import HTTPError

from designopt.desk.handler import Handler

#: Other pages can neither frame these nor load them.
_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; "
    "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_STATIC = {"desk.js": "text/javascript", "desk.css": "text/css"}


class PageHandler(Handler):
    POLICY = _PAGE
    PUBLIC = True

    def get(self) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish((files("designopt.desk") / "desk.html").read_bytes())


class EnterHandler(Handler):
    PUBLIC = True

    def post(self) -> None:
        (token,) = self.body("token")
        session = self.desk.access.enter(str(token))
        if session is None:
            raise HTTPError(403, reason="No session")
        self.desk.on_open()
        self.json(session)


class StaticHandler(Handler):
    PUBLIC = True

    def get(self, name: str) -> None:
        self.set_header("Content-Type", f"{_STATIC[name]}; charset=utf-8")
        self.finish((files("designopt.desk") / name).read_bytes())


class PlotlyHandler(Handler):
    PUBLIC = True

    def get(self) -> None:
        from plotly.offline import get_plotlyjs

        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", "private, max-age=86400")
        self.finish(get_plotlyjs())


class MissingHandler(Handler):
    def prepare(self) -> None:
        super().prepare()
        raise HTTPError(404, reason="Nothing here")
