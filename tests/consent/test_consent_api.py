"""The surface of consent below the socket: what an opt-in is decoded to, and what the history shows."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from tests.consent.desk import DAY, MINUTE, NOW, NUMBER, PROOF, Desk

from regulars.consent.api import handle_history, handle_subscription, prepare_opt_in
from regulars.consent.model import Proof
from regulars.consent.wire import EntryOut, SubscriptionOut
from regulars.http.request import Request
from regulars.kit.clock import format_timestamp
from regulars.kit.commitments import commit
from regulars.kit.ids import SUBSCRIPTION, ByExternalId, new_uuid

OPT_IN = {"phone_number": NUMBER, "consent_source": "WEBSITE", "consented_at": "2026-03-02T10:29:00.123456+01:00"}
API_KEY = new_uuid()


@dataclass(frozen=True)
class Caller:
    organization_id: UUID
    api_key_id: UUID
    secret: bytes
    default_country: str | None = None
    is_ingest_only: bool = False


def _request(desk: Desk | None = None, *, body: Any = None, references: tuple[str, ...] = (), **query: str) -> Request:
    organization_id, secret = (desk.organization_id, desk.secret) if desk else (new_uuid(), b"secret")
    caller = Caller(organization_id, API_KEY, secret)
    return Request(caller, "req-9", references, query, b"" if body is None else json.dumps(body).encode())


def _get(desk: Desk, handle: Any, *references: str, **query: str) -> Any:
    answer = desk.do(lambda tx: handle(tx, _request(desk, references=references, **query)))
    assert answer.status == 200
    return json.loads(answer.body)


def test_an_opt_in_is_decoded_with_its_time_in_utc_and_its_origin() -> None:
    body = {**OPT_IN, "profile_id": "CUST-1", "consent_proof": {"terms_version": "3"}, "extra": 1}
    consent = prepare_opt_in(_request(body=body))
    assert format_timestamp(consent.consented_at) == "2026-03-02T09:29:00.123Z"
    assert (consent.profile, consent.proof) == (ByExternalId("CUST-1"), Proof(terms_version="3"))
    assert (consent.origin.api_key_id, consent.origin.request_id) == (API_KEY, "req-9")


def test_the_longest_texts_are_taken() -> None:
    proof = {
        "terms_url": "HTTPS://shop.example/" + "x" * 1003,
        "source_text": "é" * 10_000,
        "terms_version": "v" * 1024,
    }
    assert prepare_opt_in(_request(body={**OPT_IN, "consent_proof": proof})).proof == Proof(**proof)


def test_the_history_shows_every_event_oldest_first_with_what_a_third_party_needs_to_check_it(desk: Desk) -> None:
    subscription = desk.opt_in(proof=PROOF).subscription
    desk.opt_in(at=NOW - DAY)
    desk.stop(now=NOW + MINUTE)
    reference = SUBSCRIPTION.encode(subscription.id)
    first = _get(desk, handle_history, reference, limit="2")
    rest = _get(desk, handle_history, reference, limit="2", cursor=first["next_cursor"])
    entries = [*first["data"], *rest["data"]]
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert [(it["sequence"], it["kind"], it["outcome"]) for it in entries] == [
        (1, "OPT_IN", "created"),
        (2, "OPT_IN", "superseded"),
        (3, "OPT_OUT", "unsubscribed"),
    ]
    assert [it["previous_hash"] for it in entries[1:]] == [it["hash"] for it in entries[:-1]]
    for entry in entries:
        payload = json.dumps(entry["payload"], separators=(",", ":"), ensure_ascii=False).encode()
        assert commit(bytes.fromhex(entry["salt"]), payload).hex() == entry["commitment"]
    assert {field.name for field in msgspec.structs.fields(EntryOut)} == set(entries[0])


def test_the_history_of_an_erased_person_has_no_content(desk: Desk) -> None:
    profile_id = desk.profile("CUST-1")
    subscription = desk.opt_in(proof=PROOF, profile="CUST-1").subscription
    desk.erase(profile_id, now=NOW + MINUTE)
    erased, last = _get(desk, handle_history, SUBSCRIPTION.encode(subscription.id))["data"]
    assert (erased["payload"], erased["salt"]) == (None, None)
    assert (last["kind"], last["payload"]) == ("ERASURE", {"kind": "ERASURE"})
    shown = _get(desk, handle_subscription, SUBSCRIPTION.encode(subscription.id))
    assert set(shown) == {field.name for field in msgspec.structs.fields(SubscriptionOut)}
    assert (shown["phone_number"], shown["profile"], shown["status"]) == (None, None, "UNSUBSCRIBED")
