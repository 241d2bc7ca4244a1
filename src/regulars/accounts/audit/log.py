"""The audit log: who did what, from where, before and after. Rows are added in the transaction of the act itself.

Each row is chained to the one before it in its organization. A transaction that appends locks the end of the chain
until its commit, so a use case records last: acts are rare, and nothing that runs often waits here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from regulars.accounts.audit import chain, queries
from regulars.accounts.model import Act, ActFilter
from regulars.kit.commitments import new_salt
from regulars.kit.db import Database, Tx
from regulars.kit.ids import API_KEY, new_uuid
from regulars.kit.keyset import PageRequest, PageRows

COMMAND_LINE: Final = "the command line"
EVERY_ACT: Final = ActFilter()


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a signed-in user, a program with an API key, or the operator at the server."""

    id: UUID | None
    name: str
    address: str | None


OPERATOR: Final = Actor(None, COMMAND_LINE, None)


def key_actor(key_id: UUID) -> Actor:
    """A program that calls the API with this key."""
    return Actor(None, API_KEY.encode(key_id), None)


class _User(Protocol):
    @property
    def id(self) -> UUID: ...

    @property
    def email(self) -> str: ...


class _Visit(Protocol):
    """As much of a page's visit as the log needs: commands record too, and load nothing of the pages."""

    @property
    def user(self) -> _User: ...

    @property
    def client_address(self) -> str: ...


def actor_of(visit: _Visit) -> Actor:
    """Whoever is signed in, with the address they come from."""
    return Actor(visit.user.id, visit.user.email, visit.client_address or None)


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
    """`act` is a verb and its object (`key.revoke`); `subject` an id or a member's address, never a customer's data."""
    row: dict[str, Any] = {
        "actor_id": actor.id,
        "actor": actor.name,
        "address": actor.address,
        "subject": subject,
        "before": None if before is None else msgspec.json.encode(before).decode(),
        "after": None if after is None else msgspec.json.encode(after).decode(),
    }
    salts = {"address_salt": new_salt(), "actor_salt": new_salt(), "subject_salt": new_salt()}
    commitments = chain.Content.of(**row).commitments(**salts)
    identifier = new_uuid()
    last, previous = await lock_end(tx, organization_id)
    sequence = last + 1
    hash_ = chain.hash_row(
        previous, sequence=sequence, identifier=identifier, at=tx.now, act=act, commitments=commitments
    )
    await queries.insert_act(
        tx,
        organization_id,
        identifier=identifier,
        act=act,
        sequence=sequence,
        commitments=commitments,
        hash=hash_,
        **row,
        **salts,
    )
    await queries.move_head(tx, organization_id, sequence=sequence, hash_=hash_)


async def lock_end(tx: Tx, organization_id: UUID) -> tuple[int, bytes]:
    """The number and hash of the last row. A transaction that records in several logs locks them all in one order."""
    await queries.insert_head_if_new(tx, organization_id, genesis=chain.genesis(organization_id))
    return await queries.lock_head(tx, organization_id)


async def list_acts(tx: Tx, organization_id: UUID, page: PageRequest, only: ActFilter = EVERY_ACT) -> PageRows[Act]:
    """The newest first."""
    return await queries.list_acts(tx, organization_id, page, only)


async def count_acts(tx: Tx, organization_id: UUID, only: ActFilter, *, cap: int) -> int:
    return await queries.count_acts(tx, organization_id, only, cap=cap)


async def list_kinds(tx: Tx, organization_id: UUID) -> list[str]:
    """The acts that happened here, for the filter."""
    return await queries.list_kinds(tx, organization_id)


ROWS_PER_TRANSACTION_MAX: Final = 1_000


async def sweep_addresses(database: Database, organization_id: UUID, *, keep: timedelta) -> int:
    swept = 0
    while True:
        async with database.transaction() as tx:
            deleted = await queries.delete_addresses_before(
                tx, organization_id, until=tx.now - keep, at_most=ROWS_PER_TRANSACTION_MAX
            )
        swept += deleted
        if deleted < ROWS_PER_TRANSACTION_MAX:
            return swept
