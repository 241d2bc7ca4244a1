"""Dry runs: a write in a separate transaction, which is always rolled back.

The use case runs as in a real request, so the response is the one that the request would get. The new ids in it refer
to nothing: each is replaced by the nil id (all zeros) with the same prefix.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from regulars.http.fallback_path import CONTENTION
from regulars.http.in_flight import decided
from regulars.http.large_bodies import LARGE_BYTES
from regulars.http.route import ApiResponse, Request, Write, WriteRoute
from regulars.kit.db import Database
from regulars.kit.errors import ApiError, Unavailable, invalid
from regulars.kit.ids import RESOURCES, collecting_new_ids

PARAMETER: Final = "dry_run"
DRY_RUN: Final = (b"x-dry-run", b"true")
_CANONICAL_ID: Final = re.compile(
    b"(?:%b)[0-9a-z]{26}" % b"|".join([re.escape(kind.prefix.encode()) for kind in RESOURCES])
)
_VALUES: Final = {"true": True, "false": False}


def read_dry_run(value: str) -> bool:
    if value not in _VALUES:
        raise invalid(PARAMETER, "NOT_ALLOWED", "It must be true or false.")
    return _VALUES[value]


class _RollBackError(Exception):
    """Carries the result out of the transaction that it rolls back."""

    def __init__(self, result: ApiResponse | ApiError) -> None:
        super().__init__()
        self.result = result


async def run_dry(database: Database, route: WriteRoute, request: Request, command: object) -> ApiResponse:
    """The response that the write would get. Nothing is stored, no idempotency key is used up and no listener is
    notified."""
    write = Write(request, command)
    with collecting_new_ids() as new_ids:
        try:
            async with database.transaction() as tx:
                [result] = await route.run(tx, request.caller.organization_id, [write])
                raise _RollBackError(result)
        except _RollBackError as rolled_back:
            result = rolled_back.result
        except CONTENTION:
            raise Unavailable("Others are writing the same; try again.") from None
    response = decided(write, result).response
    if len(response.body) > LARGE_BYTES:
        body = await asyncio.to_thread(_without_ids, response.body, new_ids)
    else:
        body = _without_ids(response.body, new_ids)
    return ApiResponse(response.status, body, response.headers)


def _without_ids(body: bytes, new_ids: Sequence[bytes]) -> bytes:
    """Replace the ids in one pass: a batch makes a thousand ids, and its response may have megabytes."""
    nils = {
        identifier.encode(): kind.encode(UUID(int=0)).encode()
        for kind in RESOURCES
        for identifier in kind.encode_all(new_ids)
    }
    return _CANONICAL_ID.sub(lambda found: nils.get(found[0], found[0]), body)
