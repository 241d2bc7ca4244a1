"""Write customers and sales as runs: a patch per batch of customers, a pack per batch of sales."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import msgspec

from regulars.conditions.customers import MILLION, millionths
from regulars.conditions.loading import country_of
from regulars.consent.chain import hash_number
from regulars.kit.db import Tx
from regulars.organizations.manage import find_particulars
from regulars.segments import queries as columns
from regulars.segments.columns.model import (
    DO_NOT_CONTACT,
    MAY_BE_TEXTED,
    NEVER_ASKED,
    WHOLE,
    WITHDRAWN,
    CustomerState,
    Run,
    SalesPack,
    State,
    pack_customers,
    pack_sales,
)
from regulars.segments.feed import queries
from regulars.segments.feed.queries import ConsentRow, ProfileRow, SaleRow

_attributes = msgspec.json.Decoder(dict[str, str])


async def feed_customers(tx: Tx, organization_id: UUID, state: State, profile_ids: Collection[UUID]) -> dict[UUID, int]:
    """Read the customers again and write their states as a patch; return the numbers of those that exist.

    A profile that was erased loses its number, and its patch marks the number as unused.
    """
    ids = sorted(set(profile_ids))
    if not ids:
        return {}
    profiles = await queries.find_profiles(tx, organization_id, ids)
    numbers = await columns.find_numbers(tx, organization_id, state.epoch, ids)
    there = {profile.id for profile in profiles}
    gone = [identifier for identifier in ids if identifier in numbers and identifier not in there]
    new = [profile.id for profile in profiles if profile.id not in numbers]
    if new:
        await columns.insert_numbers(tx, organization_id, state.epoch, new, first=state.next_number)
        numbers |= {identifier: state.next_number + place for place, identifier in enumerate(new)}
        state.next_number += len(new)
    states = await _states(tx, organization_id, profiles, numbers)
    states += [CustomerState(numbers[identifier], is_alive=False) for identifier in gone]
    if gone:
        await columns.delete_numbers(tx, organization_id, state.epoch, gone)
        state.erased_since = state.erased_since or tx.now
    await _write(tx, organization_id, state, states)
    return {identifier: number for identifier, number in numbers.items() if identifier in there}


async def _states(
    tx: Tx, organization_id: UUID, profiles: Sequence[ProfileRow], numbers: Mapping[UUID, int]
) -> list[CustomerState]:
    if not profiles:
        return []
    ids = [profile.id for profile in profiles]
    secret = (await find_particulars(tx.connection, organization_id)).secret
    consents = {row.profile_id: row for row in await queries.find_consents(tx, organization_id, ids)}
    texts: dict[UUID, list[tuple[bytes | None, int]]] = {}
    for profile_id, journey_id, at_s in await queries.find_texts(tx, organization_id, ids):
        texts.setdefault(profile_id, []).append((None if journey_id is None else journey_id.bytes, at_s))
    return [
        _state(profile, numbers[profile.id], consents.get(profile.id), texts.get(profile.id, []), secret=secret)
        for profile in profiles
    ]


def _state(
    profile: ProfileRow,
    number: int,
    consent: ConsentRow | None,
    texts: list[tuple[bytes | None, int]],
    *,
    secret: bytes,
) -> CustomerState:
    own = profile.phone_number if profile.phone_reachable else None
    return CustomerState(
        number,
        is_alive=True,
        profile=profile.id.bytes,
        created_s=profile.created_s,
        is_named=bool((profile.first_name or "").strip() or (profile.last_name or "").strip()),
        country=None if own is None else country_of(own),
        own_hash=0 if own is None else int.from_bytes(hash_number(secret, own)[:8], "big"),
        consent=_standing(consent),
        source=None if consent is None else consent.source,
        store=None if consent is None or consent.store_id is None else consent.store_id.bytes,
        since_s=None if consent is None else consent.since_s,
        attributes=_attributes.decode(profile.attributes),
        texts=tuple(texts),
    )


def _standing(consent: ConsentRow | None) -> int:
    if consent is None:
        return NEVER_ASKED
    if consent.status != "SUBSCRIBED":
        return WITHDRAWN
    return DO_NOT_CONTACT if consent.is_suppressed else MAY_BE_TEXTED


async def _write(tx: Tx, organization_id: UUID, state: State, states: Sequence[CustomerState]) -> None:
    if not states:
        return
    content = pack_customers(states)
    run = Run(state.next_run, "patch", 0, state.next_run, len(states), len(content))
    state.next_run += 1
    await columns.insert_run(tx, organization_id, state.epoch, run)
    await columns.insert_blob(tx, organization_id, state.epoch, run.id, part=WHOLE, content=content)


class _Line(msgspec.Struct, gc=False):
    quantity: int | float
    total_price_cents: int
    # Compared by its bytes, so that equal products are decoded once.
    product: msgspec.Raw = msgspec.Raw(b"null")


_lines = msgspec.json.Decoder(list[_Line])
_NO_PRODUCT = b"null"


async def feed_sales(tx: Tx, organization_id: UUID, state: State, sales: Sequence[SaleRow]) -> None:
    """Write the sales of existing customers; the caller passes each sale once.

    A sale without its profile was recorded while the customer was erased, and is left out.
    """
    named = {sale.profile_id for sale in sales if sale.profile_id is not None}
    if not named:
        return
    numbers = await columns.find_numbers(tx, organization_id, state.epoch, sorted(named))
    numbers |= await feed_customers(tx, organization_id, state, named - numbers.keys())
    pack = pack_of(sales, numbers)
    if not pack.customer:
        return
    content = pack_sales(pack)
    run = Run(
        state.next_run,
        "sales",
        0,
        state.next_run,
        len(pack.customer),
        len(content),
        min(pack.at_s),
        max(pack.at_s),
    )
    state.next_run += 1
    await columns.insert_run(tx, organization_id, state.epoch, run)
    await columns.insert_blob(tx, organization_id, state.epoch, run.id, part=WHOLE, content=content)


def pack_of(sales: Sequence[SaleRow], numbers: Mapping[UUID, int]) -> SalesPack:
    pack = SalesPack([], [], [], [], [], [], [], [], [], [], [], [])
    stores: dict[bytes, int] = {}
    currencies: dict[str, int] = {}
    products: dict[bytes, int] = {}
    for sale in sales:
        number = None if sale.profile_id is None else numbers.get(sale.profile_id)
        if number is None:
            continue
        is_return = sale.type == "RETURN"
        lines = _lines.decode(sale.line_items)
        pack.customer.append(number)
        pack.at_s.append(sale.at_s)
        pack.store.append(stores.setdefault(sale.store_id.bytes, len(stores)))
        pack.kind.append(2 * currencies.setdefault(sale.currency, len(currencies)) + is_return)
        pack.amount.append(-sale.total_amount_cents if is_return else sale.total_amount_cents)
        pack.lines.append(len(lines))
        _add_lines(pack, lines, products, is_return=is_return)
    pack.stores.extend(stores)
    pack.currencies.extend(currencies)
    pack.products.extend(products)
    return pack


def _add_lines(pack: SalesPack, lines: Sequence[_Line], products: dict[bytes, int], *, is_return: bool) -> None:
    quantities, totals, codes = [], [], []
    of_products = []
    for line in lines:
        product = bytes(line.product)
        quantity = line.quantity * MILLION if isinstance(line.quantity, int) else millionths(line.quantity)
        quantities.append(quantity)
        totals.append(line.total_price_cents)
        if product == _NO_PRODUCT:
            codes.append(0)
        else:
            codes.append(products.setdefault(product, len(products)) + 1)
            of_products.append(quantity)
    if is_return:
        sign = sign_of(of_products, is_return=True)
        quantities = [sign * quantity for quantity in quantities]
        sign = sign_of(totals, is_return=True)
        totals = [sign * total for total in totals]
    pack.product.extend(codes)
    pack.quantity.extend(quantities)
    pack.total.extend(totals)


def sign_of(values: Sequence[int], *, is_return: bool) -> int:
    """The factor for the values of a sale's lines: those of a return that sum below 0 have their sign already."""
    return -1 if is_return and sum(values) >= 0 else 1
