"""Drive the use cases of consent in an organization of its own, at times the test chooses."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from tests.support import desk as support
from tests.support.desk import NUMBER

from regulars.consent import queries
from regulars.consent.find import find_subscription
from regulars.consent.history import list_entries
from regulars.consent.inbound import Reply, record_inbound_start, record_inbound_stop
from regulars.consent.ledger import EventOrigin, OptInResult, Payload
from regulars.consent.model import Event, LedgerEntry, OptIn, OptOut, Proof
from regulars.consent.opt_in import Consent, opt_in
from regulars.consent.opt_out import OptOutResult, Withdrawal, opt_out
from regulars.consent.personal import erase_consent
from regulars.consent.subscription import Subscription
from regulars.consent.verify import Verification, verify_subscription
from regulars.kit.clock import parse_timestamp
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError
from regulars.kit.ids import PROFILE, STORE, ByExternalId, new_uuid

T = TypeVar("T")

NOW = parse_timestamp("2026-03-02T09:30:00.000Z")
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
PROOF = Proof("https://shop.example/terms", "2026-01", "Offers by SMS, please.")
ORIGIN = EventOrigin(api_key_id=UUID(int=7), request_id="req-1")


def consent(
    number: str = NUMBER,
    *,
    at: datetime = NOW - MINUTE,
    profile: str | None = None,
    store: str | None = None,
    **more: Any,
) -> Consent:
    return Consent(
        store=None if store is None else ByExternalId(store),
        phone_number=number,
        consented_at=at,
        profile=None if profile is None else ByExternalId(profile),
        **{"source": "LOYALTY_PROGRAM", "origin": ORIGIN, **more},
    )


def withdrawal(
    number: str | None = NUMBER, *, at: datetime | None = None, profile: str | None = None, **more: Any
) -> Withdrawal:
    return Withdrawal(
        phone_number=number,
        unsubscribed_at=at,
        profile=None if profile is None else ByExternalId(profile),
        **{"origin": ORIGIN, **more},
    )


class Desk(support.Desk):
    def do(self, act: Callable[[Tx], Awaitable[T]], *, now: datetime = NOW) -> T:
        return super().do(act, now=now)

    def opt_ins(self, *consents: Consent, now: datetime = NOW) -> list[OptInResult | ApiError]:
        return self.do(lambda tx: opt_in(tx, self.organization_id, consents, secret=self.secret), now=now)

    def opt_in(self, number: str = NUMBER, *, now: datetime = NOW, **given: Any) -> OptInResult:
        (result,) = self.opt_ins(consent(number, **given), now=now)
        assert isinstance(result, OptInResult), result
        return result

    def opt_outs(self, *withdrawals: Withdrawal, now: datetime = NOW) -> list[OptOutResult | ApiError]:
        return self.do(lambda tx: opt_out(tx, self.organization_id, withdrawals, secret=self.secret), now=now)

    def opt_out(self, number: str | None = NUMBER, *, now: datetime = NOW, **given: Any) -> OptOutResult:
        (result,) = self.opt_outs(withdrawal(number, **given), now=now)
        assert isinstance(result, OptOutResult), result
        return result

    def refusal(self, command: Consent | Withdrawal, *, now: datetime = NOW) -> tuple[int, str]:
        several: Any = self.opt_ins if isinstance(command, Consent) else self.opt_outs
        (result,) = several(command, now=now)
        assert isinstance(result, ApiError), result
        return result.status, result.code

    def stop(self, number: str = NUMBER, *, text: str = "STOP", now: datetime = NOW) -> Any:
        reply = Reply(phone_number=number, text=text, message_id="msg-1")
        [stopped] = self.do(
            lambda tx: record_inbound_stop(tx, self.organization_id, [reply], secret=self.secret), now=now
        )
        return stopped

    def start(self, number: str = NUMBER, *, now: datetime = NOW) -> Any:
        reply = Reply(phone_number=number, text="Start", message_id="msg-2")
        [started] = self.do(
            lambda tx: record_inbound_start(tx, self.organization_id, [reply], secret=self.secret), now=now
        )
        return started

    def erase(self, profile_id: UUID, *, phone_number: str | None = None, now: datetime = NOW) -> list[UUID]:
        """The ids of the subscriptions it forgot."""
        return self.erase_all({profile_id: phone_number}, now=now)

    def erase_all(self, numbers: Mapping[UUID, str | None], *, now: datetime = NOW) -> list[UUID]:
        return self.do(lambda tx: erase_consent(tx, self.organization_id, numbers, secret=self.secret), now=now)

    def verify(self, subscription_id: UUID) -> Verification:
        found = self.do(lambda tx: verify_subscription(tx, self.organization_id, subscription_id))
        assert found is not None
        return found

    def find(self, subscription_id: UUID) -> Subscription:
        found = self.do(lambda tx: find_subscription(tx, self.organization_id, subscription_id))
        assert found is not None
        return found

    def head(self, subscription_id: UUID) -> queries.LedgerHead:
        found = self.do(lambda tx: queries.find_subscription(tx, self.organization_id, subscription_id))
        assert found is not None
        return found.ledger_head

    def entries(self, subscription_id: UUID) -> list[LedgerEntry]:
        return self.do(lambda tx: list_entries(tx, self.organization_id, subscription_id, after=0, limit=None))

    def profile(self, external_id: str, *, phone_number: str | None = None) -> UUID:
        identifier = new_uuid()
        self.alter(
            "INSERT INTO profiles (organization_id, id, external_id, phone_number, phone_reachable, created_at,"
            " updated_at) VALUES (%s, %s, %s, %s, %s, %s, %s)",
            identifier, external_id, phone_number, phone_number is not None, NOW, NOW,
        )  # fmt: skip
        return identifier


def history(entries: list[LedgerEntry]) -> list[Event]:
    """The events as the ledger kept them, rebuilt from the payloads alone."""
    return [_event(entry) for entry in entries]


def _event(entry: LedgerEntry) -> Event:
    assert entry.payload is not None
    said = msgspec.json.decode(entry.payload, type=Payload)
    assert said.kind == entry.kind
    claimed_at = None if said.claimed_at is None else parse_timestamp(said.claimed_at)
    profile_id = None if said.profile_id is None else PROFILE.decode(said.profile_id)
    if said.kind != "OPT_IN":
        return OptOut(
            phone_number=said.phone_number,
            received_at=entry.received_at,
            claimed_at=claimed_at,
            profile_id=profile_id,
            erases=said.kind == "ERASURE",
        )
    proof = Proof(said.terms_url, said.terms_version, said.source_text)
    assert said.phone_number is not None
    assert said.consent_source is not None
    assert claimed_at is not None
    return OptIn(
        phone_number=said.phone_number,
        source=said.consent_source,
        claimed_at=claimed_at,
        received_at=entry.received_at,
        proof=None if proof == Proof() else proof,
        profile_id=profile_id,
        found_profile_id=None if said.found_profile_id is None else PROFILE.decode(said.found_profile_id),
        store_id=None if said.store_id is None else STORE.decode(said.store_id),
        keeps_profile=said.keeps_profile,
    )
