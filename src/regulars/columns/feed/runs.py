"""Writes customers and sales to the columns, their columnar copy, as runs (immutable chunks): for a batch of customers
one run with their new states, called a patch, and for a batch of sales one or two runs.

Each customer has a number, which is the index in the columns; each run has a number too. The state has the next free
number of both (`next_number`, `next_run`), and the number of the build (`epoch`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from uuid import UUID

import msgspec

from regulars.columns import column_rows as columns
from regulars.columns.feed import queries
from regulars.columns.feed.queries import ConsentRow, ProfileRow
from regulars.columns.feed.sales_packing import RESERVED_NUMBERS, pack_runs
from regulars.columns.feed.sales_queries import SaleColumns
from regulars.columns.model import (
    DO_NOT_CONTACT,
    ERASED,
    MAY_BE_TEXTED,
    NEVER_ASKED,
    PACKED,
    WITHDRAWN,
    CustomerState,
    Run,
    State,
    pack_customers,
    pack_sales,
)
from regulars.consent.chain import hash_number
from regulars.kit.db import Tx
from regulars.organizations.manage import find_secret_and_country
from regulars.texts.number_location import find_country

_attributes = msgspec.json.Decoder(dict[str, str])


async def write_customers(tx: Tx, organization_id: UUID, state: State, profile_ids: Iterable[UUID]) -> dict[UUID, int]:
    """Read the customers from the tables and write their states as a patch; return the numbers of existing customers.

    If a profile was erased, its number is deleted, and the patch marks the number as not alive.
    """
    ids = sorted(set(profile_ids), key=attrgetter("int"))
    if not ids:
        return {}
    profiles = await queries.find_profiles(tx, organization_id, ids)
    stored_numbers = await columns.find_numbers(
        tx, organization_id, state.epoch, [profile_id.bytes for profile_id in ids]
    )
    numbers = {UUID(bytes=profile_id): number for profile_id, number in stored_numbers.items()}
    existing_ids = {profile.id for profile in profiles}
    erased_ids = [profile_id for profile_id in ids if profile_id in numbers and profile_id not in existing_ids]
    new_ids = [profile.id for profile in profiles if profile.id not in numbers]
    if new_ids:
        await columns.insert_numbers(tx, organization_id, state.epoch, new_ids, first=state.next_number)
        numbers |= {profile_id: state.next_number + index for index, profile_id in enumerate(new_ids)}
        state.next_number += len(new_ids)
    states = await _build_states(tx, organization_id, profiles, numbers)
    states += [CustomerState(numbers[profile_id], is_alive=False) for profile_id in erased_ids]
    if erased_ids:
        await columns.delete_numbers(tx, organization_id, state.epoch, erased_ids)
        state.erased_since = state.erased_since or tx.now
    if states:
        content = pack_customers(states)
        await _write_run(tx, organization_id, state, Run(0, "patch", 0, 0, len(states), len(content)), content)
    return {profile_id: number for profile_id, number in numbers.items() if profile_id in existing_ids}


async def _build_states(
    tx: Tx, organization_id: UUID, profiles: Sequence[ProfileRow], numbers: Mapping[UUID, int]
) -> list[CustomerState]:
    if not profiles:
        return []
    ids = [profile.id for profile in profiles]
    secret = (await find_secret_and_country(tx.connection, organization_id)).secret
    consents = {row.profile_id: row for row in await queries.find_consents(tx, organization_id, ids)}
    texts: dict[UUID, list[tuple[bytes | None, int]]] = {}
    for profile_id, sender_id, at_s in await queries.find_texts(tx, organization_id, ids):
        texts.setdefault(profile_id, []).append((None if sender_id is None else sender_id.bytes, at_s))
    return [
        _build_state(profile, numbers[profile.id], consents.get(profile.id), texts.get(profile.id, []), secret=secret)
        for profile in profiles
    ]


def _build_state(
    profile: ProfileRow,
    number: int,
    consent: ConsentRow | None,
    texts: list[tuple[bytes | None, int]],
    *,
    secret: bytes,
) -> CustomerState:
    # The number in the profile; the consent may be of another number.
    own_number = profile.phone_number if profile.phone_reachable else None
    return CustomerState(
        number,
        is_alive=True,
        profile=profile.id.bytes,
        created_s=profile.created_s,
        is_named=bool((profile.first_name or "").strip() or (profile.last_name or "").strip()),
        country=None if own_number is None else find_country(own_number),
        own_hash=0 if own_number is None else int.from_bytes(hash_number(secret, own_number)[:8], "big"),
        consent=_consent_state(consent),
        source=None if consent is None else consent.source,
        store=None if consent is None or consent.store_id is None else consent.store_id.bytes,
        since_s=None if consent is None else consent.since_s,
        attributes=_attributes.decode(profile.attributes),
        texts=tuple(texts),
    )


def _consent_state(consent: ConsentRow | None) -> int:
    if consent is None:
        return NEVER_ASKED
    if consent.status != "SUBSCRIBED":
        return WITHDRAWN
    return DO_NOT_CONTACT if consent.is_suppressed else MAY_BE_TEXTED


async def _write_run(tx: Tx, organization_id: UUID, state: State, run: Run, content: bytes) -> None:
    """Write a packed run under the next free number."""
    numbered = run._replace(id=state.next_run, ordinal=state.next_run)
    state.next_run += 1
    await columns.insert_run(tx, organization_id, state.epoch, numbered)
    await columns.insert_blob(tx, organization_id, state.epoch, numbered.id, part=PACKED, content=content)


async def write_sales(
    tx: Tx, organization_id: UUID, state: State, sales: SaleColumns, *, without: Collection[UUID] = ()
) -> None:
    """Write the sales, except those in `without`; sales without an existing customer go to a separate run. Callers pass
    each sale only once.

    A sale that was recorded during the erasure of its customer may name a customer who does not exist.
    """
    named_ids = set(sales.profiles) - RESERVED_NUMBERS.keys()
    numbers = await columns.find_numbers(tx, organization_id, state.epoch, sorted(named_ids))
    new_numbers = await write_customers(
        tx, organization_id, state, [UUID(bytes=profile_id) for profile_id in named_ids - numbers.keys()]
    )
    numbers |= RESERVED_NUMBERS | {identifier.bytes: number for identifier, number in new_numbers.items()}
    customers = [numbers.get(profile, ERASED) for profile in sales.profiles]
    for kind, pack in pack_runs(sales, customers, without={identifier.bytes for identifier in without}):
        content = pack_sales(pack)
        run = Run(0, kind, 0, 0, pack.sales, len(content), pack.first_s, pack.last_s)
        await _write_run(tx, organization_id, state, run, content)
