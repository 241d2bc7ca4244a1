"""The audit log: who did what, from where, before and after. Rows are added in the transaction of the act itself.

Each row has a hash that covers the previous row of its organization. A transaction that appends locks the end of this
chain until its commit, so a use case records last. Acts are rare, and no frequent request waits for this lock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec
from psycopg.sql import SQL

from regulars.accounts.audit import chain
from regulars.accounts.model import Act, ActFilter
from regulars.kit.commitments import commit, new_salt
from regulars.kit.db import Database, Tx
from regulars.kit.ids import API_KEY, new_uuid
from regulars.kit.keyset import Keyset, PageRequest, PageRows, join_filters
from regulars.work.queue import delete_in_batches

if TYPE_CHECKING:
    # Commands record acts too, and must not load the pages.
    from regulars.web.visit import Visit

COMMAND_LINE: Final = "the command line"
EVERY_ACT: Final = ActFilter()


@dataclass(frozen=True, slots=True)
class Actor:
    """A signed-in user, a program with an API key, or the operator at the server."""

    id: UUID | None
    name: str
    address: str | None


OPERATOR: Final = Actor(None, COMMAND_LINE, None)


def is_person(name: str) -> bool:
    """Whether a change is signed by a member, with their email address. A command that names no member signs with its
    own name and the account of the operating system, which may be an address in a domain; a command of before signed
    with that account alone."""
    return "@" in name and not name.startswith(COMMAND_LINE)


def key_actor(key_id: UUID) -> Actor:
    """Return the actor for a program that calls the API with this key."""
    return Actor(None, API_KEY.encode(key_id), None)


def actor_of(visit: "Visit") -> Actor:
    """Return the actor for the signed-in user, with their client address."""
    return Actor(visit.user.id, visit.user.email, visit.client_address or None)


async def record_act(
    tx: Tx,
    visit: "Visit",
    act: str,
    subject: str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Record what the signed-in user does, in the organization of the page."""
    await record(tx, visit.organization_id, actor_of(visit), act, subject, before=before, after=after)


async def record(
    tx: Tx,
    organization_id: UUID,
    actor: Actor,
    act: str,
    subject: str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Append a row. `act` is an object and a verb (`key.revoke`); `subject` is an id or a member's email address, never
    a customer's data."""
    row: dict[str, Any] = {
        "actor_id": actor.id,
        "actor": actor.name,
        "address": actor.address,
        "subject": subject,
        "before": None if before is None else msgspec.json.encode(before).decode(),
        "after": None if after is None else msgspec.json.encode(after).decode(),
    }
    contents = chain.encode_personal_fields(**row)
    salts = {name: new_salt() for name in contents}
    commitments = b"".join(commit(salts[name], content) for name, content in contents.items())
    identifier = new_uuid()
    last_sequence, previous = await lock_chain_end(tx, organization_id)
    sequence = last_sequence + 1
    hash_ = chain.hash_row(
        previous, sequence=sequence, identifier=identifier, at=tx.now, act=act, commitments=commitments
    )
    await tx.execute(
        "INSERT INTO audit_log (organization_id, id, at, actor_id, actor, address, act, subject, before, after,"
        " sequence, address_salt, actor_salt, subject_salt, commitments, hash)"
        " VALUES (%(organization_id)s, %(id)s, %(now)s, %(actor_id)s, %(actor)s, %(address)s, %(act)s,"
        " %(subject)s, %(before)s, %(after)s, %(sequence)s, %(address_salt)s, %(actor_salt)s, %(subject_salt)s,"
        " %(commitments)s, %(hash)s)",
        {
            "organization_id": organization_id,
            "id": identifier,
            "now": tx.now,
            "act": act,
            **row,
            **{f"{name}_salt": salt for name, salt in salts.items()},
            "sequence": sequence,
            "commitments": commitments,
            "hash": hash_,
        },
    )
    await tx.execute(
        "UPDATE audit_heads SET sequence = %s, hash = %s WHERE organization_id = %s", (sequence, hash_, organization_id)
    )


async def lock_chain_end(tx: Tx, organization_id: UUID) -> tuple[int, bytes]:
    """Lock the end of the chain; return the number and the hash of its last row. A transaction that records in the logs
    of several organizations locks them in a fixed order."""
    await tx.execute(
        "INSERT INTO audit_heads (organization_id, sequence, hash) VALUES (%s, 0, %s)"
        " ON CONFLICT (organization_id) DO NOTHING",
        (organization_id, chain.genesis(organization_id)),
    )
    rows = await tx.fetch(
        "SELECT sequence, hash FROM audit_heads WHERE organization_id = %s FOR UPDATE", (organization_id,)
    )
    return rows[0][0], bytes(rows[0][1])


_NEWEST: Final = Keyset({"id": UUID}, is_descending=True)
_FILTERS: Final = {
    "act": "act = %(act)s",
    "actor": "actor = %(actor)s",
    "subject": "subject = %(subject)s",
    "since": "at >= %(since)s",
    "until": "at < %(until)s",
}


async def list_acts(tx: Tx, organization_id: UUID, page: PageRequest, filters: ActFilter = EVERY_ACT) -> PageRows[Act]:
    """List acts, newest first."""
    return await _NEWEST.fetch(
        tx,
        """
        SELECT id, at, actor, address, act, subject, before, after FROM audit_log
        WHERE organization_id = %(organization_id)s {and_filters} {and_after_position}
        ORDER BY {ordered}
        LIMIT %(limit)s
        """,
        page,
        {"organization_id": organization_id, **filters._asdict()},
        make=Act,
        filters=_FILTERS,
    )


async def count_acts(tx: Tx, organization_id: UUID, filters: ActFilter, *, count_max: int) -> int:
    values = {"organization_id": organization_id, "count_max": count_max, **filters._asdict()}
    statement = SQL(
        "SELECT count(*) FROM (SELECT 1 FROM audit_log WHERE organization_id = %(organization_id)s {}"
        " LIMIT %(count_max)s) AS found"
    )
    return await tx.fetch_count(statement.format(join_filters(values, _FILTERS)), values)


async def list_act_kinds(tx: Tx, organization_id: UUID) -> list[str]:
    """Return the kinds of acts in the last 10,000 rows, for the filter."""
    return await tx.fetch_column(
        "SELECT DISTINCT act FROM (SELECT act FROM audit_log WHERE organization_id = %s ORDER BY id DESC LIMIT 10000)"
        " AS latest ORDER BY act LIMIT 200",
        (organization_id,),
    )


async def sweep_addresses(database: Database, organization_id: UUID, *, retention: timedelta) -> int:
    """Delete client addresses that were stored (`address_since`) longer than `retention` ago; return how many."""
    return await delete_in_batches(database, organization_id, _delete_addresses, retention=retention)


async def _delete_addresses(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    return await tx.execute(
        "UPDATE audit_log SET address = NULL, address_salt = NULL WHERE organization_id = %s AND id IN"
        " (SELECT id FROM audit_log WHERE organization_id = %s AND address_since <= %s LIMIT %s"
        " FOR UPDATE SKIP LOCKED)",
        (organization_id, organization_id, before, limit),
    )
