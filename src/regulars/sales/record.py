"""Record a list of sales in a transaction: the fallback path, which handles every kind of sale.

For an external_id that is stored already the outcome is the stored sale, whatever the request contains. The store of a
sale must exist. An unknown external_id of a customer gets a light profile (a profile with only an id), if the sale is
inserted.
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
class _Targets:
    """The stores and profiles that the sales of a batch refer to."""

    stores: Mapping[Reference, StoreRef]
    profiles: dict[Reference, ProfileRef]
    # The light profiles that this transaction has created, by id.
    new_profiles: dict[UUID, ProfileRef] = field(default_factory=dict)

    def store(self, sale: Sale) -> StoreRef | None:
        return self.stores.get(sale.store)

    def profile(self, sale: Sale) -> ProfileRef | None:
        return None if sale.profile is None else self.profiles.get(sale.profile)


async def record_sales(
    tx: Tx, organization_id: UUID, sales: Sequence[Sale], *, tolerance: timedelta
) -> list[SaleOutcome | ApiError]:
    """Record the sales in order; return the outcome or the error of each."""
    outcomes: list[SaleOutcome | ApiError | None] = [
        _future_refusal(tolerance) if is_in_future(sale.occurred_at, now=tx.now, tolerance=tolerance) else None
        for sale in sales
    ]
    valid = [sale for sale, outcome in zip(sales, outcomes, strict=True) if outcome is None]
    external_ids = {sale.external_id for sale in valid}
    found_sales = await queries.SALES.find_by_external_ids(tx, organization_id, external_ids)
    stored = {sale.external_id: sale for sale in found_sales}
    # A ticket that is sent again usually names its store and its customer as before, so these are not looked up again.
    to_look_up = [sale for sale in valid if not _has_references_of(sale, stored.get(sale.external_id))]
    stores = await find_stores(tx, organization_id, {sale.store for sale in to_look_up})
    found = await find_profiles(tx, organization_id, {sale.profile for sale in to_look_up if sale.profile is not None})
    # Looking up and locking are two statements: a profile that was erased in between counts as unknown. The profiles of
    # sales that are stored already are only compared, and not locked.
    of_new_sales = {sale.profile for sale in valid if sale.profile is not None and sale.external_id not in stored}
    to_lock = {profile.id for reference, profile in found.items() if reference in of_new_sales}
    erased = to_lock - await lock_profiles(tx, organization_id, to_lock)
    profiles = {reference: profile for reference, profile in found.items() if profile.id not in erased}
    targets = _Targets(stores=stores, profiles=profiles)
    first_indexes = _choose_first_indexes(sales, outcomes, stored, targets)
    inserted = await _insert(tx, organization_id, [sales[index] for index in first_indexes.values()], targets)
    inserted_by_others = [external_id for external_id in first_indexes if external_id not in inserted]
    if inserted_by_others:
        stored |= await _find_committed(tx, organization_id, inserted_by_others)
    collisions: list[tuple[Sale, StoredSale]] = []
    for index, sale in enumerate(sales):
        if outcomes[index] is None:
            outcome = outcomes[index] = _decide_outcome(
                sale, index=index, first_indexes=first_indexes, inserted=inserted, stored=stored, targets=targets
            )
            if isinstance(outcome, SaleOutcome) and outcome.differs:
                collisions.append((sale, outcome.sale))
    await record_collisions(tx, organization_id, collisions)
    if inserted:
        keys = {key for external_id in inserted for key in sales[first_indexes[external_id]].property_keys}
        ids = sorted(sale.id for sale in inserted.values())
        await outbox.record(tx, organization_id, [SalesRecorded(ids, tuple(sorted(keys)))])
    return [outcome for outcome in outcomes if outcome is not None]


def _future_refusal(tolerance: timedelta) -> OccurredAtInFuture:
    return OccurredAtInFuture(
        f"occurred_at lies more than {tolerance.total_seconds():.0f} s in the future of the server's clock."
    )


def _choose_first_indexes(
    sales: Sequence[Sale],
    outcomes: Sequence[SaleOutcome | ApiError | None],
    stored: Mapping[str, StoredSale],
    targets: _Targets,
) -> dict[str, int]:
    """Return, for each external_id that is not stored yet, the index of the first sale that can be inserted."""
    first_indexes: dict[str, int] = {}
    for index, sale in enumerate(sales):
        if outcomes[index] is not None or sale.external_id in stored or sale.external_id in first_indexes:
            continue
        if _refusal(sale, targets) is None:
            first_indexes[sale.external_id] = index
    return first_indexes


def _refusal(sale: Sale, targets: _Targets) -> ApiError | None:
    if targets.store(sale) is None:
        return StoreNotFound("store_id names no store of this organization; stores are never created by a sale.")
    if sale.profile is not None and not isinstance(sale.profile, ByExternalId) and targets.profile(sale) is None:
        return ProfileNotFound("profile_id is a canonical id and names no profile of this organization.")
    return None


async def _insert(tx: Tx, organization_id: UUID, sales: Sequence[Sale], targets: _Targets) -> dict[str, StoredSale]:
    """Insert the sales and their light profiles; delete light profiles of sales that another transaction inserted."""
    if not sales:
        return {}
    missing = [
        sale.profile.external_id
        for sale in sales
        if isinstance(sale.profile, ByExternalId) and sale.profile not in targets.profiles
    ]
    if missing:
        for profile in (await create_light_profiles(tx, organization_id, missing)).values():
            targets.profiles[ByExternalId(profile.external_id)] = profile
            if profile.is_new:
                targets.new_profiles[profile.id] = profile
    candidates = [
        StoredSale(identifier, sale, store, targets.profile(sale), tx.now)
        for sale, identifier in zip(sales, new_uuids_since(tx.now), strict=False)
        if (store := targets.store(sale)) is not None
    ]
    inserted_ids = await queries.insert_sales_if_new(tx, organization_id, candidates)
    inserted = {sale.ticket.external_id: sale for sale in candidates if sale.id in inserted_ids}
    used = {sale.profile.id for sale in inserted.values() if sale.profile is not None}
    unused = [identifier for identifier in targets.new_profiles if identifier not in used]
    await remove_light_profiles(tx, organization_id, unused)
    for identifier in unused:
        del targets.profiles[ByExternalId(targets.new_profiles.pop(identifier).external_id)]
    await publish_light_profiles(tx, organization_id, targets.new_profiles.values())
    return inserted


async def _find_committed(tx: Tx, organization_id: UUID, external_ids: Sequence[str]) -> dict[str, StoredSale]:
    """Return the sales that other transactions committed. Our insert waited for them, so a new statement sees them."""
    sales = await queries.SALES.find_by_external_ids(tx, organization_id, external_ids)
    if len(sales) != len(external_ids):
        raise Unavailable("Another request is writing the same sale; try again.")
    return {sale.external_id: sale for sale in sales}


def _decide_outcome(
    sale: Sale,
    *,
    index: int,
    first_indexes: Mapping[str, int],
    inserted: Mapping[str, StoredSale],
    stored: Mapping[str, StoredSale],
    targets: _Targets,
) -> SaleOutcome | ApiError:
    external_id = sale.external_id
    stored_sale = stored.get(external_id)
    if stored_sale is None:
        inserted_sale = inserted.get(external_id)
        if inserted_sale is None or index < first_indexes[external_id]:
            refusal = _refusal(sale, targets)
            if refusal is None:
                raise AssertionError("a sale without a refusal was inserted or came after one that was")
            return refusal
        if first_indexes[external_id] == index:
            return SaleOutcome(inserted_sale, is_new=True)
        stored_sale = inserted_sale
    if _has_references_of(sale, stored_sale):
        same = is_same_ticket(stored_sale, sale, store=stored_sale.store, profile=stored_sale.profile)
    else:
        same = is_same_ticket(stored_sale, sale, store=targets.store(sale), profile=targets.profile(sale))
    return SaleOutcome(stored_sale, is_new=False, differs=not same)


def _has_references_of(sale: Sale, stored: StoredSale | None) -> bool:
    """Whether the ticket names the store and the customer of the stored sale, by their external ids."""
    if stored is None or not _is_named_by(sale.store, stored.store):
        return False
    if sale.profile is None or stored.profile is None:
        return sale.profile is None and stored.profile is None
    return _is_named_by(sale.profile, stored.profile)


def _is_named_by(reference: Reference, target: StoreRef | ProfileRef) -> bool:
    return isinstance(reference, ByExternalId) and reference.external_id == target.external_id
