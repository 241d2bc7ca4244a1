"""Write a batch of imported rows: decode each row like a request of the API, then write all rows with one call, such as
`record_sales`, in one transaction."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

import msgspec

from regulars.consent import model as consent_model
from regulars.consent.chain import hash_number
from regulars.consent.decode import decode_opt_in, decode_opt_out
from regulars.consent.ledger import EventOrigin
from regulars.consent.opt_in import Consent, opt_in
from regulars.consent.opt_out import Withdrawal, opt_out
from regulars.imports.model import FileRow, ImportKind, RowOutcome
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, invalid
from regulars.profiles.find import find_profiles
from regulars.profiles.wire import decode_profile
from regulars.profiles.write import upsert_profiles
from regulars.sales.decode import decode_sale
from regulars.sales.record import record_sales
from regulars.stores.decode import decode_store
from regulars.stores.upsert import upsert_stores


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The organization that gets the rows, and its settings that the write functions need. `tolerance` is how far in
    the future a sale may be."""

    organization_id: UUID
    secret: bytes
    default_country: str | None
    tolerance: timedelta


@dataclass(frozen=True, slots=True)
class RowResult:
    outcome: RowOutcome
    # Whether the row is a duplicate sale with other content than the stored sale.
    differs: bool = False


CONSENT_OUTCOMES = {
    consent_model.Outcome.CREATED: RowOutcome.CREATED,
    consent_model.Outcome.RESUBSCRIBED: RowOutcome.UPDATED,
    consent_model.Outcome.UPDATED: RowOutcome.UPDATED,
    consent_model.Outcome.ALREADY_SUBSCRIBED: RowOutcome.UNCHANGED,
    consent_model.Outcome.SUPERSEDED: RowOutcome.SUPERSEDED,
    consent_model.Outcome.UNSUBSCRIBED: RowOutcome.UPDATED,
    consent_model.Outcome.ALREADY_UNSUBSCRIBED: RowOutcome.UNCHANGED,
}


def decode_row(kind: ImportKind, row: FileRow, target: Target) -> Any:
    """Return the decoded row (a command for `write_rows`), or the error."""
    if row.error is not None:
        return row.error
    try:
        return _DECODERS[kind](row.body, target)
    except ApiError as error:
        return error


async def write_rows(tx: Tx, kind: ImportKind, commands: Sequence[Any], target: Target) -> list[RowResult | ApiError]:
    return await _WRITERS[kind](tx, commands, target)


def _decode_consent(body: bytes, target: Target) -> Consent | Withdrawal:
    """A row with `consented_at` is a consent, one with `unsubscribed_at` a withdrawal.

    In the API a withdrawal without a time counts from now. In a file the time is required: otherwise each import would
    record another time, and would end a consent that was given after the file was written.
    """
    origin = EventOrigin(request_id=f"import-{hashlib.sha256(body).hexdigest()[:32]}")
    try:
        times = _times_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The opt-in decoder below reports the error.
        times = _Times()
    if times.unsubscribed_at is None:
        return decode_opt_in(body, origin=origin)
    if times.consented_at is not None:
        raise invalid("unsubscribed_at", "NOT_ALLOWED", "A row is a consent or a withdrawal, not both.")
    return decode_opt_out(body, origin=origin, default_country=target.default_country)


class _Times(msgspec.Struct):
    consented_at: Any = None
    unsubscribed_at: Any = None


_times_decoder = msgspec.json.Decoder(_Times)
_DECODERS: dict[ImportKind, Callable[[bytes, Target], Any]] = {
    ImportKind.SALES: lambda body, _: decode_sale(body),
    ImportKind.PROFILES: lambda body, target: decode_profile(body, default_country=target.default_country),
    ImportKind.STORES: lambda body, _: decode_store(body),
    ImportKind.CONSENTS: _decode_consent,
}


async def _write_sales(tx: Tx, sales: Sequence[Any], target: Target) -> list[RowResult | ApiError]:
    recorded = await record_sales(tx, target.organization_id, sales, tolerance=target.tolerance)
    return [
        outcome
        if isinstance(outcome, ApiError)
        else RowResult(RowOutcome.CREATED if outcome.is_new else RowOutcome.DUPLICATE, differs=outcome.differs)
        for outcome in recorded
    ]


async def _write_profiles(tx: Tx, upserts: Sequence[Any], target: Target) -> list[RowResult | ApiError]:
    upserted = await upsert_profiles(tx, target.organization_id, upserts)
    return [each if isinstance(each, ApiError) else RowResult(RowOutcome(each.change)) for each in upserted]


async def _write_stores(tx: Tx, upserts: Sequence[Any], target: Target) -> list[RowResult | ApiError]:
    upserted = await upsert_stores(tx, target.organization_id, upserts)
    return [RowResult(RowOutcome(each.change)) for each in upserted]


async def _write_consents(tx: Tx, commands: Sequence[Any], target: Target) -> list[RowResult | ApiError]:
    """Write consents and withdrawals in the order of the file; consecutive rows of one kind are written with one call.

    Rows that an earlier import of the file has recorded are skipped: the consent ledger would append them again.
    """
    recorded_ids = await _find_recorded(tx, commands, target)
    outcomes: list[RowResult | ApiError] = [RowResult(RowOutcome.UNCHANGED)] * len(commands)
    unrecorded = [n for n, command in enumerate(commands) if command.origin.request_id not in recorded_ids]
    for is_consent, grouped in groupby(unrecorded, key=lambda position: isinstance(commands[position], Consent)):
        positions = list(grouped)
        group = [commands[position] for position in positions]
        organization_id, secret = target.organization_id, target.secret
        results: Sequence[Any] = (
            await opt_in(tx, organization_id, group, secret=secret)
            if is_consent
            else await opt_out(tx, organization_id, group, secret=secret)
        )
        for position, result in zip(positions, results, strict=True):
            outcomes[position] = result if isinstance(result, ApiError) else RowResult(CONSENT_OUTCOMES[result.outcome])
    return outcomes


async def _find_recorded(tx: Tx, commands: Sequence[Consent | Withdrawal], target: Target) -> set[str]:
    """Return the request ids of commands that an earlier import of the same file has recorded in the consent ledger."""
    numbers = {command.phone_number for command in commands if command.phone_number is not None}
    references = {command.profile for command in commands if command.profile is not None}
    profiles = await find_profiles(tx, target.organization_id, references) if references else {}
    request_ids = await tx.fetch_column(
        "SELECT p.payload ->> 'request_id' FROM consent_payloads p"
        " JOIN subscriptions s ON s.organization_id = p.organization_id AND s.id = p.subscription_id"
        " WHERE p.organization_id = %(organization_id)s AND s.number_hash = ANY(%(number_hashes)s)"
        " AND p.payload ->> 'request_id' = ANY(%(request_ids)s)"
        " UNION SELECT p.payload ->> 'request_id' FROM consent_payloads p"
        " WHERE p.organization_id = %(organization_id)s AND p.profile_id = ANY(%(profile_ids)s)"
        " AND p.payload ->> 'request_id' = ANY(%(request_ids)s)",
        {
            "organization_id": target.organization_id,
            "request_ids": [command.origin.request_id for command in commands if command.origin.request_id is not None],
            "number_hashes": [hash_number(target.secret, number) for number in numbers],
            "profile_ids": [profile.id for profile in profiles.values()],
        },
    )
    return set(request_ids)


_WRITERS = {
    ImportKind.SALES: _write_sales,
    ImportKind.PROFILES: _write_profiles,
    ImportKind.STORES: _write_stores,
    ImportKind.CONSENTS: _write_consents,
}
