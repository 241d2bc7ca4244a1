"""A small room for tests of the write engine: one table, and commands that misbehave on request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import msgspec
from tests.support.database_fixtures import request
from tests.support.waiting import until

from regulars.http.request import ApiResponse, Request
from regulars.http.route import WriteRoute
from regulars.http.writes import Writes
from regulars.kit.db import Database, Tx
from regulars.kit.errors import ApiError, invalid
from regulars.profiles.errors import person_erased

Act = Callable[[Tx, Request], Awaitable[ApiResponse | ApiError | None]]
Call = asyncio.Task[ApiResponse | ApiError]


class Workshop:
    """`make` inserts a thing and responses 201; an act planted under its name happens inside the batch before that."""

    def __init__(self, database: Database, organization_id: UUID, **of_its_route: Any) -> None:
        self.organization_id = organization_id
        self.database = database
        self.acts: dict[str, Act] = {}
        self.batches: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.route = WriteRoute(
            path="/v1/things",
            operation_id="makeThing",
            tag="",
            summary="",
            responses={},
            prepare=self._prepare,
            run=self._run,
            **of_its_route,
        )
        self.writes = Writes(database, [self.route], erased_error=person_erased())

    def _prepare(self, asked: Any) -> str:
        name = msgspec.json.decode(asked.body)
        if not isinstance(name, str):
            raise invalid("", "WRONG_TYPE", "A thing is a string.")
        return name

    async def _run(self, tx: Tx, _organization_id: UUID, requests: Sequence[Request]) -> list[ApiResponse | ApiError]:
        self.batches.append([asked.command for asked in requests])
        await self.gate.wait()
        responses: list[ApiResponse | ApiError] = []
        for asked in requests:
            act = self.acts.get(asked.command)
            instead = None if act is None else await act(tx, asked)
            if instead is None:
                await tx.execute("INSERT INTO things VALUES (%s, %s)", (asked.command, asked.key))
                instead = ApiResponse(201, msgspec.json.encode({"made": asked.command}))
            responses.append(instead)
        return responses

    def call(self, name: object, *, key: str | None = None, target: bytes = b"/v1/things") -> Call:
        """Start a request; its task gives the answer, or the refusal that was raised before the batch."""
        return asyncio.create_task(self._submit(name, key=key, target=target))

    async def _submit(self, name: object, *, key: str | None, target: bytes) -> ApiResponse | ApiError:
        body = msgspec.json.encode(name)
        asked = request(self.organization_id, body=body)
        try:
            return await self.writes.submit(self.route, asked, target=target, key=key, charge=lambda _: None)
        except ApiError as error:
            return error

    async def one_batch(self, *names: object, keys: dict[str, str] | None = None) -> list[ApiResponse | ApiError]:
        """Have all of these in one batch, by letting them gather behind one that is in flight."""
        self.gate.clear()
        lead = f"first{'' if not self.batches else len(self.batches)}"
        first = self.call(lead)
        await until(lambda: self.batches and self.batches[-1] == [lead])
        calls = [self.call(name, key=(keys or {}).get(str(name))) for name in names]
        await until(lambda: self.writes.in_flight.coalescer.waiting_items == len(names))
        self.gate.set()
        assert status(await first) == 201
        return list(await asyncio.gather(*calls))

    async def things(self) -> list[str]:
        async with self.database.reading() as tx:
            rows = await tx.fetch("SELECT name FROM things WHERE name NOT LIKE 'first%%' ORDER BY name")
        return [row[0] for row in rows]

    async def stored(self) -> dict[str, int]:
        async with self.database.reading() as tx:
            return dict(await tx.fetch("SELECT key, status FROM idempotency_keys ORDER BY key"))  # type: ignore[arg-type]  # rows of two columns


def status(answer: ApiResponse | ApiError) -> int:
    return answer.status


def is_replay(answer: ApiResponse | ApiError) -> bool:
    return (b"idempotent-replayed", b"true") in answer.headers
