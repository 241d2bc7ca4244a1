"""Run a write of the API as a dry run: in a transaction that is always rolled back.

The route's function runs as in a real request, so the response is the one that the request would get. The new ids in it
refer to nothing: each is encoded as the nil id (all zeros) with its prefix.
"""

from typing import Final

from regulars.http.fallback_path import CONTENTION_ERRORS
from regulars.http.in_flight import make_response
from regulars.http.request import ApiResponse, Request
from regulars.http.route import WriteRoute
from regulars.kit.db import Database
from regulars.kit.errors import Unavailable, invalid
from regulars.kit.ids import hiding_new_ids

PARAMETER: Final = "dry_run"
DRY_RUN: Final = (b"x-dry-run", b"true")
_VALUES: Final = {"true": True, "false": False}


def read_dry_run(value: str) -> bool:
    if value not in _VALUES:
        raise invalid(PARAMETER, "NOT_ALLOWED", "It must be true or false.")
    return _VALUES[value]


async def run_dry(database: Database, route: WriteRoute, request: Request) -> ApiResponse:
    """Return the response that the write would get; nothing is stored, not even an idempotency key."""
    with hiding_new_ids():
        try:
            async with database.dry_run() as tx:
                [result] = await route.run(tx, request.caller.organization_id, [request])
        except CONTENTION_ERRORS:
            raise Unavailable("Others are writing the same; try again.") from None
    return make_response(request, result)
