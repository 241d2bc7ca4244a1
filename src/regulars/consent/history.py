"""Read the consent ledger of a phone number: its entries, and whether a text was allowed at a past time."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from regulars.consent.chain import LedgerEvent
from regulars.consent.model import Kind, LedgerEntry
from regulars.kit.columns import fill
from regulars.kit.db import Tx

NUMBERS_PER_CUSTOMER_MAX: Final = 20
ENTRIES_PER_NUMBER_MAX: Final = 200
_ENTRY_COLUMNS: Final[LiteralString] = """
    l.sequence, l.kind, l.outcome, l.effective_at, l.claimed_at, l.received_at, l.commitment, l.previous_hash,
    l.hash, p.salt, p.payload::text
"""
_SELECT_ENTRIES: Final[LiteralString] = fill(
    """
    SELECT {columns}
    FROM consent_ledger AS l
    LEFT JOIN consent_payloads AS p
        ON p.organization_id = %(organization_id)s AND p.subscription_id = %(subscription_id)s
        AND p.sequence = l.sequence
    WHERE l.organization_id = %(organization_id)s AND l.subscription_id = %(subscription_id)s
    """,
    columns=_ENTRY_COLUMNS,
)


async def list_entries(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, after: int = 0, limit: int | None
) -> list[LedgerEntry]:
    """Entries in the order of arrival, after the sequence number `after`; erased salts and payloads are None."""
    return await tx.fetch_all(
        LedgerEntry,
        _SELECT_ENTRIES + "AND l.sequence > %(after)s ORDER BY l.sequence LIMIT %(limit)s",
        {"organization_id": organization_id, "subscription_id": subscription_id, "after": after, "limit": limit},
    )


async def list_last_entries(tx: Tx, organization_id: UUID, subscription_id: UUID, *, limit: int) -> list[LedgerEntry]:
    """The entries that arrived last, in the order of their arrival."""
    newest_first = await tx.fetch_all(
        LedgerEntry,
        _SELECT_ENTRIES + "ORDER BY l.sequence DESC LIMIT %(limit)s",
        {"organization_id": organization_id, "subscription_id": subscription_id, "limit": limit},
    )
    return newest_first[::-1]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a text was allowed, and the ledger entry that decided so; None if there was no entry."""

    may_text: bool
    entry: LedgerEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentAtTime:
    """Whether a number could be texted at a past time: by the entries recorded until then (`recorded`), and by all
    entries known now (`known`).

    `recorded` and `known` differ if a store sends a withdrawal late. A dispute is usually about `recorded`.
    """

    at: datetime
    recorded: Judgement
    known: Judgement
    # The first entry after `at` that changed the state, if there is one.
    next: LedgerEntry | None

    @property
    def differs(self) -> bool:
        return self.recorded.may_text != self.known.may_text


async def find_consent_at(tx: Tx, organization_id: UUID, subscription_id: UUID, at: datetime) -> ConsentAtTime:
    recorded, known = await _find_deciding_entries(
        tx, organization_id, [(subscription_id, at, at), (subscription_id, at, tx.now)]
    )
    known_now = _judge(known)
    change = await _find_next_change(tx, organization_id, subscription_id, after=at, is_opt_in=not known_now.may_text)
    return ConsentAtTime(at=at, recorded=_judge(recorded), known=known_now, next=change)


def _judge(entry: LedgerEntry | None) -> Judgement:
    return Judgement(entry is not None and entry.kind == Kind.OPT_IN, entry)


async def find_entries_in_effect(
    tx: Tx, organization_id: UUID, lookups: Sequence[tuple[UUID, datetime]]
) -> list[LedgerEntry | None]:
    """For each subscription and time, the entry that decided whether a text was allowed, among the entries received
    until that time."""
    return await _find_deciding_entries(
        tx, organization_id, [(subscription_id, at, at) for subscription_id, at in lookups]
    )


async def _find_deciding_entries(
    tx: Tx, organization_id: UUID, lookups: Sequence[tuple[UUID, datetime, datetime]]
) -> list[LedgerEntry | None]:
    """For each lookup (subscription, `at`, `received_until`) the latest entry in effect at `at`, among the entries
    received until `received_until`. Among entries of the same time, a withdrawal is later than an opt-in."""
    subscriptions, times, until = ([lookup[column] for lookup in lookups] for column in range(3))
    rows = await tx.fetch(
        fill(
            """
            SELECT it.position, found.*
            FROM unnest(%(subscriptions)s::uuid[], %(times)s::timestamptz[], %(until)s::timestamptz[])
                WITH ORDINALITY AS it (subscription_id, at, received_until, position)
            CROSS JOIN LATERAL (
                SELECT {columns}
                FROM consent_ledger AS l
                LEFT JOIN consent_payloads AS p
                    ON p.organization_id = %(organization_id)s AND p.subscription_id = it.subscription_id
                    AND p.sequence = l.sequence
                WHERE l.organization_id = %(organization_id)s AND l.subscription_id = it.subscription_id
                  AND l.effective_at <= it.at AND l.received_at <= it.received_until
                ORDER BY l.effective_at DESC, (l.kind <> 'OPT_IN') DESC, l.sequence DESC
                LIMIT 1
            ) AS found
            """,
            columns=_ENTRY_COLUMNS,
        ),
        {"organization_id": organization_id, "subscriptions": subscriptions, "times": times, "until": until},
    )
    entries = {position: LedgerEntry(*entry) for position, *entry in rows}
    return [entries.get(position) for position in range(1, len(lookups) + 1)]


async def _find_next_change(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, after: datetime, is_opt_in: bool
) -> LedgerEntry | None:
    """The first opt-in after a time, or with `is_opt_in=False` the first withdrawal."""
    return await tx.fetch_first(
        LedgerEntry,
        _SELECT_ENTRIES
        + """
            AND l.effective_at > %(after)s AND (l.kind = 'OPT_IN') = %(is_opt_in)s
            ORDER BY l.effective_at, l.sequence
            LIMIT 1
        """,
        {
            "organization_id": organization_id,
            "subscription_id": subscription_id,
            "after": after,
            "is_opt_in": is_opt_in,
        },
    )


async def find_withdrawals(tx: Tx, organization_id: UUID, lookups: Sequence[tuple[UUID, datetime]]) -> list[bool]:
    """For each profile and time, whether the consent of one of the profile's present numbers was withdrawn later."""
    if not lookups:
        return []
    found = await tx.fetch_column(
        """
        SELECT it.position
        FROM unnest(%(profile_ids)s::uuid[], %(times)s::timestamptz[]) WITH ORDINALITY AS it (profile_id, at, position)
        WHERE EXISTS (
            SELECT FROM subscriptions AS number
            CROSS JOIN LATERAL (
                SELECT FROM consent_ledger
                WHERE organization_id = %(organization_id)s AND subscription_id = number.id
                  AND outcome = 'unsubscribed' AND received_at > it.at
                LIMIT 1
            ) AS withdrawal
            WHERE number.organization_id = %(organization_id)s AND number.profile_id = it.profile_id
              AND number.updated_at > it.at
        )
        """,
        {
            "organization_id": organization_id,
            "profile_ids": [profile_id for profile_id, _ in lookups],
            "times": [at for _, at in lookups],
        },
    )
    positions = set(found)
    return [position in positions for position in range(1, len(lookups) + 1)]


@dataclass(frozen=True, slots=True)
class NumberHistory:
    subscription_id: UUID
    number_hash: bytes
    phone_number: str | None
    entries: list[LedgerEvent]

    def consented_at(self, at: datetime) -> datetime | None:
        """The time of the consent in effect at `at`, by the entries that had arrived until then, or None."""
        arrived = (entry for entry in self.entries if entry.effective_at <= at and entry.received_at <= at)
        last = max(
            arrived, key=lambda entry: (entry.effective_at, entry.kind != Kind.OPT_IN, entry.sequence), default=None
        )
        return last.effective_at if last is not None and last.kind == Kind.OPT_IN else None


async def load_histories(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]
) -> dict[UUID, list[NumberHistory]]:
    """The numbers linked to each customer now, with their newest entries; customers without numbers are absent."""
    rows = await tx.fetch(
        """
        SELECT it.id, number.id, number.number_hash, number.phone_number, entry.sequence, entry.kind, entry.outcome,
               entry.effective_at, entry.claimed_at, entry.received_at
        FROM unnest(%(profile_ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT id, number_hash, phone_number FROM subscriptions
            WHERE organization_id = %(organization_id)s AND profile_id = it.id
            ORDER BY id
            LIMIT %(numbers_max)s
        ) AS number
        CROSS JOIN LATERAL (
            SELECT sequence, kind, outcome, effective_at, claimed_at, received_at FROM consent_ledger
            WHERE organization_id = %(organization_id)s AND subscription_id = number.id
            ORDER BY sequence DESC
            LIMIT %(entries_max)s
        ) AS entry
        """,
        {
            "organization_id": organization_id,
            "profile_ids": sorted(profile_ids),
            "numbers_max": NUMBERS_PER_CUSTOMER_MAX,
            "entries_max": ENTRIES_PER_NUMBER_MAX,
        },
    )
    by_subscription: dict[UUID, NumberHistory] = {}
    by_profile: dict[UUID, list[NumberHistory]] = {}
    for profile_id, subscription_id, number_hash, phone_number, *event in rows:
        if subscription_id not in by_subscription:
            history = by_subscription[subscription_id] = NumberHistory(subscription_id, number_hash, phone_number, [])
            by_profile.setdefault(profile_id, []).append(history)
        by_subscription[subscription_id].entries.append(LedgerEvent(*event))
    return by_profile
