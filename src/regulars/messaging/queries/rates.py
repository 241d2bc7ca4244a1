"""The SQL of the token buckets that limit the rate of each sender of texts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from regulars.kit.db import Tx


async def lock_tokens(tx: Tx, organization_id: UUID, senders: Sequence[str]) -> dict[str, tuple[float, datetime]]:
    """Lock the rows of senders, in the order of their names; return their tokens and when these were refilled."""
    rows = await tx.fetch(
        """
        SELECT sender, tokens, refilled_at FROM sender_rates
        WHERE organization_id = %s AND sender = ANY (%s::text[])
        ORDER BY sender
        FOR UPDATE
        """,
        (organization_id, list(senders)),
    )
    return {sender: (tokens, refilled_at) for sender, tokens, refilled_at in rows}


async def insert_tokens_if_new(tx: Tx, organization_id: UUID, tokens: Mapping[str, float]) -> None:
    """Insert the first tokens of senders. A concurrent insert waits, so that no token is spent twice."""
    await tx.execute(
        """
        INSERT INTO sender_rates (organization_id, sender, tokens, refilled_at)
        SELECT %(organization_id)s::uuid, it.sender, it.tokens, %(now)s::timestamptz
        FROM unnest(%(senders)s::text[], %(tokens)s::float8[]) AS it (sender, tokens)
        ORDER BY it.sender
        ON CONFLICT (organization_id, sender) DO NOTHING
        """,
        _values(tx, organization_id, tokens),
    )


async def save_tokens(tx: Tx, organization_id: UUID, tokens: Mapping[str, float]) -> None:
    await tx.execute(
        """
        UPDATE sender_rates SET tokens = it.tokens, refilled_at = %(now)s
        FROM unnest(%(senders)s::text[], %(tokens)s::float8[]) AS it (sender, tokens)
        WHERE sender_rates.organization_id = %(organization_id)s AND sender_rates.sender = it.sender
        """,
        _values(tx, organization_id, tokens),
    )


def _values(tx: Tx, organization_id: UUID, tokens: Mapping[str, float]) -> dict[str, object]:
    return {
        "organization_id": organization_id,
        "now": tx.now,
        "senders": list(tokens),
        "tokens": list(tokens.values()),
    }
