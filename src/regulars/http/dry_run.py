"""Run a write of the API as a dry run: in a transaction that is always rolled back.

The route's function runs as in a real request, so the response is the one that the request would get. The new ids in it
refer to nothing: each is replaced by the nil id (all zeros) with the same prefix.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from regulars.http.fallback_path import CONTENTION_ERRORS
from regulars.http.in_flight import make_outcome
from regulars.http.large_bodies import LARGE_BYTES
from regulars.http.request import ApiResponse, Request, Write
from regulars.http.route import WriteRoute
from regulars.kit.db import Database
from regulars.kit.errors import Unavailable, invalid
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


async def run_dry(database: Database, route: WriteRoute, request: Request, command: object) -> ApiResponse:
    """Return the response that the write would get; nothing is stored, not even an idempotency key."""
    write = Write(request, command)
    with collecting_new_ids() as new_ids:
        try:
            async with database.dry_run() as tx:
                [result] = await route.run(tx, request.caller.organization_id, [write])
        except CONTENTION_ERRORS:
            raise Unavailable("Others are writing the same; try again.") from None
    response = make_outcome(write, result).response
    if len(response.body) > LARGE_BYTES:
        body = await asyncio.to_thread(_replace_new_ids, response.body, new_ids)
    else:
        body = _replace_new_ids(response.body, new_ids)
    return ApiResponse(response.status, body, response.headers)


def _replace_new_ids(body: bytes, new_ids: Sequence[bytes]) -> bytes:
    """Replace the new ids in one pass: a batch makes a thousand ids, and its response may have megabytes."""
    nil_ids = {
        identifier.encode(): kind.encode(UUID(int=0)).encode()
        for kind in RESOURCES
        for identifier in kind.encode_all(new_ids)
    }
    return _CANONICAL_ID.sub(lambda match: nil_ids.get(match[0], match[0]), body)
