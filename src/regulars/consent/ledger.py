"""A batch on the ledger: open the heads of its numbers, append events in order of arrival, write everything at once.

Heads are inserted if new, and those that were there are locked, both in the order of their hash, before anything is
decided. Two batches that share numbers therefore queue up one behind the other and cannot wait for each other in a
circle. The heads are never deleted, so the lock statement, which is a new one with a new snapshot, always sees the row
that won.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

import msgspec

from regulars.consent import chain, queries, statements
from regulars.consent.model import Event, OptIn, Outcome, State, apply
from regulars.consent.queries import HeadRow
from regulars.consent.subscription import Subscription
from regulars.consent.tell import Appended, tell_changed
from regulars.kit import ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.work.automation import AutomationState


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Who said it: a key with the request it sent, or a message; an erasure has neither."""

    api_key_id: UUID | None = None
    request_id: str | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the ledger keeps of an event beyond what the rules need."""

    origin: Origin
    reason: str | None = None
    source: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    subscription: Subscription
    outcome: Outcome
    automation: AutomationState = "not_applicable"


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content an entry commits to, in the one way it is written: fields in this order, absent ones left out."""

    kind: str
    phone_number: str | None = None
    profile_id: str | None = None
    found_profile_id: str | None = None
    store_id: str | None = None
    consent_source: str | None = None
    claimed_at: str | None = None
    terms_url: str | None = None
    terms_version: str | None = None
    source_text: str | None = None
    keeps_profile: bool = False
    source: str | None = None
    reason: str | None = None
    message: str | None = None
    message_id: str | None = None
    api_key_id: str | None = None
    request_id: str | None = None


class Ledger:
    """The open heads of one batch, in one transaction."""

    def __init__(self, tx: Tx, organization_id: UUID, heads: Iterable[HeadRow]) -> None:
        self._tx = tx
        self._organization_id = organization_id
        self._heads = {head.number_hash: head for head in heads}
        self._entries: list[statements.NewEntry] = []
        self._payloads: list[statements.NewPayload] = []
        self._changed: dict[bytes, HeadRow] = {}
        self._appended: list[Appended] = []

    def state(self, number_hash: bytes) -> State | None:
        head = self._heads.get(number_hash)
        return None if head is None else head.state

    def linked_to(self, number_hash: bytes) -> UUID | None:
        """Whose it is now: between the look-up and the lock the number may have been linked to somebody else."""
        state = self.state(number_hash)
        return None if state is None else state.profile_id

    def append(self, number_hash: bytes, event: Event, said: Said) -> Appended:
        """Decide one event on its head, in memory; `write` makes it last."""
        before = self._heads[number_hash]
        state, outcome, effective_at = apply(before.state, event)
        # A number that was erased, and still is, gets no new content: its entries say only that something came.
        is_bare = state.is_erased
        payload = msgspec.json.encode(_payload(event, said, is_bare=is_bare))
        salt = chain.new_salt()
        link = chain.Link(
            before.entry_count + 1,
            event.kind.value,
            outcome.value,
            effective_at,
            event.claimed_at,
            event.received_at,
            chain.commit(salt, payload),
            before.last_hash,
        )
        hashed = chain.hash_link(link)
        self._entries.append(statements.NewEntry(before.id, link, hashed))
        named = None if is_bare else _named_profile(event) or state.profile_id
        self._payloads.append(statements.NewPayload(before.id, link.sequence, named, salt, payload))
        is_unmoved = before.state is not None and state.shows_as(before.state)
        after = before._replace(
            state=state,
            entry_count=link.sequence,
            last_hash=hashed,
            updated_at=before.updated_at if is_unmoved else self._tx.now,
            status=state.status.value,
        )
        self._heads[number_hash] = self._changed[number_hash] = after
        was_erased = before.state is not None and before.state.is_erased
        appended = Appended(after, state, outcome, event, was_erased)
        self._appended.append(appended)
        return appended

    async def write(self) -> None:
        """One statement for each of the three tables, whatever the size of the batch; then tell who waits for it."""
        if not self._entries:
            return
        await statements.insert_entries(self._tx, self._organization_id, self._entries)
        await statements.insert_payloads(self._tx, self._organization_id, self._payloads)
        await statements.update_heads(self._tx, self._organization_id, list(self._changed.values()))
        await tell_changed(self._tx, self._organization_id, self._appended)


async def open_ledger(tx: Tx, organization_id: UUID, *, new: Iterable[bytes], known: Collection[bytes] = ()) -> Ledger:
    """Lock the heads of a batch: `new` numbers will surely get an entry, `known` ones are locked where they exist."""
    wanted = list(dict.fromkeys(new))
    heads = []
    for number_hash in wanted:
        identifier = ids.new_uuid()
        genesis = chain.genesis(organization_id, identifier)
        heads.append(statements.NewHead(identifier, number_hash, genesis))
    inserted = await statements.insert_heads_if_new(tx, organization_id, heads) if heads else []
    others = {*wanted, *known} - {head.number_hash for head in inserted}
    locked = await queries.lock_heads(tx, organization_id, others) if others else []
    return Ledger(tx, organization_id, [*inserted, *locked])


def _payload(event: Event, said: Said, *, is_bare: bool) -> Payload:
    origin = said.origin
    payload = Payload(
        kind=event.kind.value,
        claimed_at=None if event.claimed_at is None else format_timestamp(event.claimed_at),
        api_key_id=None if origin.api_key_id is None else ids.API_KEY.encode(origin.api_key_id),
        request_id=origin.request_id,
    )
    if is_bare:
        return payload
    payload = msgspec.structs.replace(
        payload,
        phone_number=event.phone_number,
        profile_id=None if event.profile_id is None else ids.PROFILE.encode(event.profile_id),
        source=said.source,
        reason=said.reason,
        message=said.message,
        message_id=origin.message_id,
    )
    if not isinstance(event, OptIn):
        return payload
    found, store = event.found_profile_id, event.store_id
    return msgspec.structs.replace(
        payload,
        found_profile_id=None if found is None else ids.PROFILE.encode(found),
        store_id=None if store is None else ids.STORE.encode(store),
        consent_source=event.source,
        terms_url=event.proof.terms_url if event.proof else None,
        terms_version=event.proof.terms_version if event.proof else None,
        source_text=event.proof.source_text if event.proof else None,
        keeps_profile=event.keeps_profile,
    )


def _named_profile(event: Event) -> UUID | None:
    return event.profile_id or (event.found_profile_id if isinstance(event, OptIn) else None)
