"""Handlers for stores, and for designs that are evaluated again."""

from __future__ import annotations

import asyncio

from designopt.desk import views
from designopt.desk.handler import Handler


class StateHandler(Handler):
    async def get(self) -> None:
        self.json(await self.desk.state())


class ReportHandler(Handler):
    async def get(self) -> None:
        parts = self.get_query_arguments("part")
        self.json(self.desk.keep(await self.desk.view(views.report, self.store, parts, self.changes)))


class CompareHandler(Handler):
    async def get(self) -> None:
        stores = [self.entry(self.desk.folder.store, name) for name in self.get_query_arguments("store")]
        self.json(self.desk.keep(await self.desk.view(views.comparison_page, stores)))


class QuestionHandler(Handler):
    async def get(self) -> None:
        self.json(await self.desk.view(views.question, self.store))


class ProgressHandler(Handler):
    async def get(self) -> None:
        self.json(await self.desk.view(views.progress, self.store))


class DesignsHandler(Handler):
    async def get(self) -> None:
        self.json(await self.desk.view(views.designs, self.store, self.changes))


class DesignHandler(Handler):
    async def get(self) -> None:
        self.json(await self.desk.view(views.design, self.store, self.row, self.changes))


class ComputeHandler(Handler):
    async def post(self) -> None:
        name, row = self.body("store", "row")
        store = self.entry(self.desk.folder.store, str(name))
        messages, arrays = await asyncio.to_thread(self.runs.compute, store, self.number(row))
        page = await self.desk.view(views.arrays_page, store, self.number(row), arrays, messages)
        self.json(self.desk.keep(page))


class ComputedHandler(Handler):
    """A computed page, once: a frame cannot send the session, and only our page knows the name."""

    PUBLIC = True

    def get(self) -> None:
        self.finish(self.entry(self.desk.take_page, self.get_query_argument("page")))
