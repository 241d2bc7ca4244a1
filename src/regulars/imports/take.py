"""Take a batch of rows in: decode each as the API would, then one call of the list use case in one transaction."""

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
from regulars.consent.ledger import Origin
from regulars.consent.opt_in import Consent, opt_in
from regulars.consent.opt_out import Withdrawal, opt_out
from regulars.imports import queries
from regulars.imports.model import ImportKind, Row, RowOutcome
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
    """Where the rows go, and what the use cases have to know beside them."""

    organization_id: UUID
    secret: bytes
    default_country: str | None
    tolerance: timedelta


@dataclass(frozen=True, slots=True)
class Taken:
    outcome: RowOutcome
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


def decode_row(kind: ImportKind, row: Row, target: Target) -> Any:
    """The command that the use case takes, or the refusal."""
    if row.unreadable is not None:
        return row.unreadable
    try:
        return _DECODERS[kind](row.body, target)
    except ApiError as error:
        return error


async def take(tx: Tx, kind: ImportKind, commands: Sequence[Any], target: Target) -> list[Taken | ApiError]:
    return await _TAKERS[kind](tx, commands, target)


def _decode_consent(body: bytes, target: Target) -> Consent | Withdrawal:
    """A row with `consented_at` is a consent, one with `unsubscribed_at` a withdrawal.

    Over the API a withdrawal without a time counts from now on. In a file that would be another time in every run, and
    would end a consent that was given after the file was written; so a file has to say when.
    """
    origin = Origin(request_id=f"import-{hashlib.sha256(body).hexdigest()[:32]}")
    try:
        marks = _marks_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Whatever is wrong with it, the reader says.
        marks = _Marks()
    if marks.unsubscribed_at is None:
        return decode_opt_in(body, origin=origin)
    if marks.consented_at is not None:
        raise invalid("unsubscribed_at", "NOT_ALLOWED", "A row is a consent or a withdrawal, not both.")
    return decode_opt_out(body, origin=origin, default_country=target.default_country)


class _Marks(msgspec.Struct):
    consented_at: Any = None
    unsubscribed_at: Any = None


_marks_decoder = msgspec.json.Decoder(_Marks)
_DECODERS: dict[ImportKind, Callable[[bytes, Target], Any]] = {
    ImportKind.SALES: lambda body, _: decode_sale(body),
    ImportKind.PROFILES: lambda body, target: decode_profile(body, default_country=target.default_country),
    ImportKind.STORES: lambda body, _: decode_store(body),
    ImportKind.CONSENTS: _decode_consent,
}


async def _take_sales(tx: Tx, sales: Sequence[Any], target: Target) -> list[Taken | ApiError]:
    recorded = await record_sales(tx, target.organization_id, sales, tolerance=target.tolerance)
    return [
        each
        if isinstance(each, ApiError)
        else Taken(RowOutcome.CREATED if each.is_new else RowOutcome.DUPLICATE, differs=each.differs)
        for each in recorded
    ]


async def _take_profiles(tx: Tx, upserts: Sequence[Any], target: Target) -> list[Taken | ApiError]:
    upserted = await upsert_profiles(tx, target.organization_id, upserts)
    return [each if isinstance(each, ApiError) else Taken(RowOutcome(each.change)) for each in upserted]


async def _take_stores(tx: Tx, upserts: Sequence[Any], target: Target) -> list[Taken | ApiError]:
    upserted = await upsert_stores(tx, target.organization_id, upserts)
    return [Taken(RowOutcome(each.change)) for each in upserted]


async def _take_consents(tx: Tx, commands: Sequence[Any], target: Target) -> list[Taken | ApiError]:
    """Runs of consents and of withdrawals take turns, so that every event meets those that stand before it.

    The ledger keeps everything that is said to it, also what it has heard before. A row that an earlier run of the file
    has put there already is therefore left out.
    """
    known = await _known_already(tx, commands, target)
    taken: list[Taken | ApiError] = [Taken(RowOutcome.UNCHANGED)] * len(commands)
    fresh = [position for position, command in enumerate(commands) if command.origin.request_id not in known]
    for is_consent, grouped in groupby(fresh, key=lambda position: isinstance(commands[position], Consent)):
        positions = list(grouped)
        several = [commands[position] for position in positions]
        organization_id, secret = target.organization_id, target.secret
        results: Sequence[Any] = (
            await opt_in(tx, organization_id, several, secret=secret)
            if is_consent
            else await opt_out(tx, organization_id, several, secret=secret)
        )
        for position, result in zip(positions, results, strict=True):
            taken[position] = result if isinstance(result, ApiError) else Taken(CONSENT_OUTCOMES[result.outcome])
    return taken


async def _known_already(tx: Tx, commands: Sequence[Consent | Withdrawal], target: Target) -> set[str]:
    numbers = {command.phone_number for command in commands if command.phone_number is not None}
    references = {command.profile for command in commands if command.profile is not None}
    profiles = await find_profiles(tx, target.organization_id, references) if references else {}
    return await queries.find_recorded_requests(
        tx,
        target.organization_id,
        [command.origin.request_id for command in commands if command.origin.request_id is not None],
        number_hashes=[hash_number(target.secret, number) for number in numbers],
        profile_ids=[profile.id for profile in profiles.values()],
    )


_TAKERS = {
    ImportKind.SALES: _take_sales,
    ImportKind.PROFILES: _take_profiles,
    ImportKind.STORES: _take_stores,
    ImportKind.CONSENTS: _take_consents,
}
