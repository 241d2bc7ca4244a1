"""Record a list of sales in a transaction: the fallback path, which handles every kind of sale.

For an external_id that is stored already the response is the stored sale, whatever the request contains. A store must
exist. For an unknown external_id of a customer a light profile is created, but only if the sale is inserted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from regulars.kit.clock import is_in_future
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, Unavailable
from regulars.kit.ids import ByExternalId, Reference, new_uuids_since
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.facts import publish_light_profiles
from regulars.profiles.find import find_profiles, lock_profiles
from regulars.profiles.model import ProfileRef
from regulars.profiles.write import create_light_profiles, remove_light_profiles
from regulars.sales import queries
from regulars.sales.collisions import record_collisions
from regulars.sales.facts import SalesRecorded
from regulars.sales.model import OccurredAtInFuture, Sale, SaleOutcome, StoredSale, is_same_ticket
from regulars.stores.find import find_stores
from regulars.stores.model import StoreNotFound, StoreRef
from regulars.work import outbox


@dataclass(slots=True)
class _References:
    """The stores and profiles that the references of a batch name."""

    stores: Mapping[Reference, StoreRef]
    profiles: dict[Reference, ProfileRef]
    # The light profiles that this transaction has created.
    light: dict[UUID, ProfileRef] = field(default_factory=dict)

    def store(self, sale: Sale) -> StoreRef | None:
        return self.stores.get(sale.store)

    def profile(self, sale: Sale) -> ProfileRef | None:
        return None if sale.profile is None else self.profiles.get(sale.profile)


async def record_sales(
    tx: Tx, organization_id: UUID, sales: Sequence[Sale], *, tolerance: timedelta
) -> list[SaleOutcome | ApiError]:
    """Record the sales in order; returns the outcome or the error of each."""
    outcomes: list[SaleOutcome | ApiError | None] = [
        future_refusal(tolerance) if is_in_future(sale.occurred_at, now=tx.now, tolerance=tolerance) else None
        for sale in sales
    ]
    valid = [sale for sale, outcome in zip(sales, outcomes, strict=True) if outcome is None]
    stored = await queries.find_sales_by_external_id(tx, organization_id, {sale.external_id for sale in valid})
    # A ticket that is sent again usually names its store and its customer as before, so these are not looked up again.
    to_resolve = [sale for sale in valid if not _names_the_same(sale, stored.get(sale.external_id))]
    stores = await find_stores(tx, organization_id, {sale.store for sale in to_resolve})
    found = await find_profiles(tx, organization_id, {sale.profile for sale in to_resolve if sale.profile is not None})
    # Looking up and locking are two statements: a profile that was erased in between counts as unknown. The profiles of
    # sales that are stored already are only compared, and not locked.
    named = {sale.profile for sale in valid if sale.profile is not None and sale.external_id not in stored}
    to_lock = {profile.id for reference, profile in found.items() if reference in named}
    erased = to_lock - await lock_profiles(tx, organization_id, to_lock)
    profiles = {reference: profile for reference, profile in found.items() if profile.id not in erased}
    known = _References(stores=stores, profiles=profiles)
    first = _choose_first(sales, outcomes, stored, known)
    inserted = await _insert(tx, organization_id, [sales[index] for index in first.values()], known)
    # Another transaction has inserted these meanwhile.
    lost = [external_id for external_id in first if external_id not in inserted]
    if lost:
        stored |= await _find_winners(tx, organization_id, lost)
    duplicates: list[tuple[Sale, StoredSale]] = []
    for index, sale in enumerate(sales):
        if outcomes[index] is None:
            outcomes[index] = _outcome(sale, index=index, first=first, inserted=inserted, stored=stored, known=known)
            recorded = outcomes[index]
            if isinstance(recorded, SaleOutcome) and recorded.differs:
                duplicates.append((sale, recorded.sale))
    await record_collisions(tx, organization_id, duplicates)
    if inserted:
        keys = {key for external_id in inserted for key in sales[first[external_id]].property_keys}
        ids = sorted(sale.id for sale in inserted.values())
        await outbox.record(tx, organization_id, [SalesRecorded(ids, tuple(sorted(keys)))])
    return [outcome for outcome in outcomes if outcome is not None]


def future_refusal(tolerance: timedelta) -> OccurredAtInFuture:
    return OccurredAtInFuture(
        f"occurred_at lies more than {tolerance.total_seconds():.0f} s in the future of the server's clock."
    )


def _choose_first(
    sales: Sequence[Sale],
    outcomes: Sequence[SaleOutcome | ApiError | None],
    stored: Mapping[str, StoredSale],
    known: _References,
) -> dict[str, int]:
    """For each external_id that is not stored yet, the index of the first sale of the list that can be inserted."""
    first: dict[str, int] = {}
    for index, sale in enumerate(sales):
        if outcomes[index] is not None or sale.external_id in stored or sale.external_id in first:
            continue
        if _refusal(sale, known) is None:
            first[sale.external_id] = index
    return first


def _refusal(sale: Sale, known: _References) -> ApiError | None:
    if known.store(sale) is None:
        return StoreNotFound("store_id names no store of this organization; stores are never created by a sale.")
    if sale.profile is not None and not isinstance(sale.profile, ByExternalId) and known.profile(sale) is None:
        return ProfileNotFound("profile_id is a canonical id and names no profile of this organization.")
    return None


async def _insert(tx: Tx, organization_id: UUID, sales: Sequence[Sale], known: _References) -> dict[str, StoredSale]:
    """Insert the sales with the light profiles they need; delete those of sales that another transaction inserted."""
    if not sales:
        return {}
    missing = [
        sale.profile.external_id
        for sale in sales
        if isinstance(sale.profile, ByExternalId) and sale.profile not in known.profiles
    ]
    if missing:
        for profile in (await create_light_profiles(tx, organization_id, missing)).values():
            known.profiles[ByExternalId(profile.external_id)] = profile
            if profile.is_new:
                known.light[profile.id] = profile
    candidates = [
        StoredSale(identifier, sale, store, known.profile(sale), tx.now)
        for sale, identifier in zip(sales, new_uuids_since(tx.now), strict=False)
        if (store := known.store(sale)) is not None
    ]
    inserted_ids = await queries.insert_sales_if_new(tx, organization_id, candidates)
    inserted = {sale.ticket.external_id: sale for sale in candidates if sale.id in inserted_ids}
    used = {sale.profile.id for sale in inserted.values() if sale.profile is not None}
    unused = [identifier for identifier in known.light if identifier not in used]
    await remove_light_profiles(tx, organization_id, unused)
    for identifier in unused:
        del known.profiles[ByExternalId(known.light.pop(identifier).external_id)]
    await publish_light_profiles(tx, organization_id, known.light.values())
    return inserted


async def _find_winners(tx: Tx, organization_id: UUID, lost: Sequence[str]) -> dict[str, StoredSale]:
    """The sales that were committed first. Our insert waited for them, so this new statement sees them."""
    winners = await queries.find_sales_by_external_id(tx, organization_id, lost)
    if len(winners) != len(lost):
        raise Unavailable("Another request is writing the same sale; try again.")
    return winners


def _outcome(
    sale: Sale,
    *,
    index: int,
    first: Mapping[str, int],
    inserted: Mapping[str, StoredSale],
    stored: Mapping[str, StoredSale],
    known: _References,
) -> SaleOutcome | ApiError:
    external_id = sale.external_id
    winner = stored.get(external_id)
    if winner is None:
        inserted_sale = inserted.get(external_id)
        if inserted_sale is None or index < first[external_id]:
            refusal = _refusal(sale, known)
            if refusal is None:
                raise AssertionError("a sale without a refusal was inserted or came after one that was")
            return refusal
        if first[external_id] == index:
            return SaleOutcome(inserted_sale, is_new=True)
        winner = inserted_sale
    if _names_the_same(sale, winner):
        same = is_same_ticket(winner, sale, store=winner.store, profile=winner.profile)
    else:
        same = is_same_ticket(winner, sale, store=known.store(sale), profile=known.profile(sale))
    return SaleOutcome(winner, is_new=False, differs=not same)


def _names_the_same(sale: Sale, stored: StoredSale | None) -> bool:
    """Whether the ticket names the same store and customer as the stored one, by their external ids."""
    if stored is None or not _names(sale.store, stored.store):
        return False
    if sale.profile is None or stored.profile is None:
        return sale.profile is None and stored.profile is None
    return _names(sale.profile, stored.profile)


def _names(reference: Reference, found: StoreRef | ProfileRef) -> bool:
    return isinstance(reference, ByExternalId) and reference.external_id == found.external_id
