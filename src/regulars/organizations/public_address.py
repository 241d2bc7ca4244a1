"""The public address that the database stores, with the check in progress, and the task with which every process takes
a new address."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Final
from uuid import UUID

from psycopg import errors

from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.kit.public_address import PublicAddress

# Every process has a new address within 5 seconds.
FOLLOW_EVERY_S: Final = 2.0
READ_S_MAX: Final = 2.0
CHECK_LIFE: Final = timedelta(seconds=30)


async def find_stored_address(tx: Tx) -> str | None:
    url: str | None = await tx.fetch_value("SELECT url FROM public_address")
    return url


async def store_address(tx: Tx, url: str | None) -> None:
    await tx.execute(
        "INSERT INTO public_address (url, changed_at) VALUES (%(url)s, %(now)s)"
        " ON CONFLICT (only_one) DO UPDATE SET url = excluded.url, changed_at = excluded.changed_at,"
        " nonce_hash = NULL, answer = NULL, nonce_expires_at = NULL",
        {"url": url, "now": tx.now},
    )


async def begin_check(tx: Tx, *, nonce_hash: bytes, answer: str) -> None:
    """Let every process answer a request with this nonce for some seconds; ends an older check."""
    await tx.execute(
        "INSERT INTO public_address (changed_at, nonce_hash, answer, nonce_expires_at)"
        " VALUES (%(now)s, %(nonce_hash)s, %(answer)s, %(expires_at)s)"
        " ON CONFLICT (only_one) DO UPDATE SET nonce_hash = excluded.nonce_hash, answer = excluded.answer,"
        " nonce_expires_at = excluded.nonce_expires_at",
        {"now": tx.now, "nonce_hash": nonce_hash, "answer": answer, "expires_at": tx.now + CHECK_LIFE},
    )


async def find_answer(tx: Tx, nonce_hash: bytes) -> str | None:
    answer: str | None = await tx.fetch_value(
        "SELECT answer FROM public_address WHERE nonce_hash = %s AND nonce_expires_at > %s", (nonce_hash, tx.now)
    )
    return answer


async def has_server_alone(tx: Tx, organization_id: UUID) -> bool:
    """Whether this is the only organization of the server. Demos do not count, and never have it alone."""
    rows = await tx.fetch("SELECT id FROM organizations WHERE NOT is_demo LIMIT 2")
    return [row[0] for row in rows] == [organization_id]


async def load_address(database: Database, address: PublicAddress) -> None:
    """Load the stored address. Without a database or its migrations, the process goes on with the address it has."""
    with contextlib.suppress(TimeoutError, errors.UndefinedTable, *CONNECTION_ERRORS):
        async with database.reading(until=monotonic() + READ_S_MAX) as tx:
            address.update(await find_stored_address(tx))


async def follow_address(database: Database, address: PublicAddress) -> None:
    """Take every new address, until the task is cancelled."""
    while not address.is_fixed:
        await load_address(database, address)
        await asyncio.sleep(FOLLOW_EVERY_S)
