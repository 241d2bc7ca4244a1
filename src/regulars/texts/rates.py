"""Limit how many SMS parts per second each sender (a number or a name) sends, with a token bucket. Tokens are spent
when a worker claims a text, because texts that are already in the queue of the provider cannot be stopped.

The tokens are stored in the database and locked by the claim, so several workers share them, and a restart grants no
additional tokens. A text may be claimed if there is at least part of a token, and spends one token for each of its
parts, so the bucket may become negative. If there are no tokens, texts wait for the next tokens of their sender.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.texts.model import Priority, TextRow
from regulars.texts.number_location import locate_number
from regulars.texts.settings.senders import is_long_code
from regulars.texts.settings.store import Texting

# The rate at which Twilio sends from a long code, which is an ordinary number; Twilio queues faster texts for hours.
LONG_CODE_PARTS_PER_SECOND: Final = 1.0
# The size of the bucket: the tokens of this many seconds.
BURST_S: Final = 2.0
# The next claim waits at least this long, so that there are tokens for several texts.
WAIT_S_MIN: Final = 0.2


def find_rate(texting: Texting, sender: str) -> float | None:
    """The rate of a sender in parts per second; None means no limit."""
    rate = texting.settings.parts_per_second.get(sender)
    if rate is None and texting.provider == "twilio" and is_long_code(sender):
        return LONG_CODE_PARTS_PER_SECOND
    return rate


class SenderRates:
    """The tokens of the senders of an organization, in the transaction that claims texts."""

    def __init__(self, texting: Texting, rates: dict[str, float], tokens: dict[str, float]) -> None:
        self._texting = texting
        self._rates = rates
        self._tokens = tokens
        self._spent: set[str] = set()

    @classmethod
    async def open(cls, tx: Tx, organization_id: UUID, texting: Texting) -> "SenderRates":
        """Lock the rows of the senders that have a rate, and add the tokens of the elapsed time."""
        senders = texting.settings.all_senders() or (texting.provider,)
        rates = {sender: rate for sender in senders if (rate := find_rate(texting, sender)) is not None}
        tokens = {sender: max(1.0, rate * BURST_S) for sender, rate in rates.items()}
        stored = await _lock_tokens(tx, organization_id, sorted(rates)) if rates else {}
        if len(stored) < len(rates):
            await _insert_tokens_if_new(tx, organization_id, tokens)
            stored = await _lock_tokens(tx, organization_id, sorted(rates))
        for sender, (stored_tokens, refilled_at) in stored.items():
            earned = max(timedelta(0), tx.now - refilled_at).total_seconds() * rates[sender]
            tokens[sender] = min(tokens[sender], stored_tokens + earned)
        opened = cls(texting, rates, tokens)
        # A time to come was stored before the clock of the database was set back. It is replaced, so that tokens are
        # earned from now on.
        opened._spent.update(sender for sender, (_, refilled_at) in stored.items() if refilled_at > tx.now)
        return opened

    @property
    def affordable(self) -> int | None:
        """How many texts of one part all senders together may send now; None if a sender has no limit."""
        senders = self._texting.settings.all_senders() or (self._texting.provider,)
        if any(sender not in self._tokens for sender in senders):
            return None
        return sum(math.ceil(max(0.0, tokens)) for tokens in self._tokens.values())

    @property
    def wait_s(self) -> float | None:
        """The seconds until the first sender without tokens gets one; None if all senders have tokens."""
        waits = [-tokens / self._rates[sender] for sender, tokens in self._tokens.items() if tokens <= 0]
        return max(WAIT_S_MIN, min(waits)) if waits else None

    def allows(self, phone_number: str | None, priority: int) -> bool:
        """Whether the sender has tokens for a text to this number; confirmations of STOP and HELP need none."""
        return priority == Priority.REPLY or self._tokens.get(self._sender_of(phone_number), 1.0) > 0

    def spend(self, row: TextRow) -> bool:
        """Whether the text may be sent; if so, the tokens for its parts are spent."""
        if not self._tokens:
            return True
        if not self.allows(row.phone_number, row.priority):
            return False
        sender = self._sender_of(row.phone_number)
        if sender in self._tokens:
            self._tokens[sender] -= row.parts
            self._spent.add(sender)
        return True

    async def save(self, tx: Tx, organization_id: UUID) -> None:
        if self._spent:
            await _save_tokens(tx, organization_id, {sender: self._tokens[sender] for sender in self._spent})

    def _sender_of(self, phone_number: str | None) -> str:
        country = None if phone_number is None else locate_number(phone_number).country
        return self._texting.settings.sender_of(country) or self._texting.provider


async def _lock_tokens(tx: Tx, organization_id: UUID, senders: Sequence[str]) -> dict[str, tuple[float, datetime]]:
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


async def _insert_tokens_if_new(tx: Tx, organization_id: UUID, tokens: Mapping[str, float]) -> None:
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


async def _save_tokens(tx: Tx, organization_id: UUID, tokens: Mapping[str, float]) -> None:
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
