"""Take a person out of the facts that wait: in the outbox, for a listener that failed, or parked."""

from collections.abc import Callable, Collection
from typing import TypeVar
from uuid import UUID

import msgspec

from regulars.kit.db import Tx
from regulars.work import queries
from regulars.work.facts import Fact

AnyFact = TypeVar("AnyFact", bound=Fact)


async def rewrite_waiting_facts(
    tx: Tx,
    organization_id: UUID,
    kind: type[AnyFact],
    ids: Collection[UUID],
    rewrite: Callable[[AnyFact], AnyFact | None],
) -> None:
    """Replace each waiting fact in which one of the ids stands by what `rewrite` makes of it; None removes it.

    A row that the worker holds is waited for: what its listeners made of it is then there for the caller to look at.
    """
    needles = [str(identifier) for identifier in ids]
    if not needles:
        return
    decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]  # known at run time only
    for row in await queries.lock_rows_with(tx, organization_id, kind.topic, needles):
        left = [fact for fact in map(rewrite, decoder.decode(row.payload)) if fact is not None]
        if left:
            await queries.update_payload(tx, organization_id, row.id, msgspec.json.encode(left).decode())
        else:
            await queries.delete_rows(tx, organization_id, [row.id])
    for retry in await queries.lock_retries_with(tx, organization_id, kind.topic, needles):
        left = [fact for fact in map(rewrite, decoder.decode(retry.payload)) if fact is not None]
        if left:
            await queries.update_retry_payload(tx, organization_id, retry, msgspec.json.encode(left).decode())
        else:
            await queries.delete_retries(tx, organization_id, [retry])
