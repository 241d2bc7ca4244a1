"""The surface of consent below the socket: what requests decode to, and the pages of the two lists."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

import msgspec
import pytest
from tests.consent.desk import DAY, MINUTE, NOW, NUMBER, PROOF, Desk

from regulars.consent.api import (
    handle_history,
    handle_list,
    handle_subscription,
    prepare_opt_in,
    prepare_opt_out,
    run_opt_ins,
    run_opt_outs,
)
from regulars.consent.model import Proof
from regulars.consent.wire import EntryOut, OptInOut, SubscriptionOut
from regulars.http.request import Request, Write
from regulars.kit.clock import format_timestamp
from regulars.kit.commitments import commit
from regulars.kit.errors import ApiError
from regulars.kit.ids import PROFILE, SUBSCRIPTION, ByExternalId, ById, new_uuid

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


def _refused(act: Any) -> tuple[int, str, str | None]:
    with pytest.raises(ApiError) as refusal:
        act()
    errors = refusal.value.errors
    return refusal.value.status, refusal.value.code, errors[0].field if errors else None


def test_an_opt_in_is_decoded_with_its_time_in_utc_and_its_origin() -> None:
    body = {**OPT_IN, "profile_id": "CUST-1", "consent_proof": {"terms_version": "3"}, "extra": 1}
    consent = prepare_opt_in(_request(body=body))
    assert format_timestamp(consent.consented_at) == "2026-03-02T09:29:00.123Z"
    assert (consent.profile, consent.proof) == (ByExternalId("CUST-1"), Proof(terms_version="3"))
    assert (consent.origin.api_key_id, consent.origin.request_id) == (API_KEY, "req-9")


@pytest.mark.parametrize("proof", [None, {}, {"terms_url": None}])
def test_an_empty_proof_is_no_proof(proof: Any) -> None:
    assert prepare_opt_in(_request(body={**OPT_IN, "consent_proof": proof, "profile_id": None})).proof is None


def test_a_reference_with_another_kind_s_prefix_can_only_be_an_id() -> None:
    assert prepare_opt_out(_request(body={"profile_id": "sub_x"})).profile == ById(None)


@pytest.mark.parametrize("field", ["phone_number", "consent_source", "consented_at"])
@pytest.mark.parametrize("is_null", [True, False])
def test_an_opt_in_without_a_required_field_is_refused(field: str, *, is_null: bool) -> None:
    body: dict[str, Any] = {**OPT_IN, field: None}
    if not is_null:
        del body[field]
    assert _refused(lambda: prepare_opt_in(_request(body=body))) == (400, "VALIDATION_ERROR", field)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"phone_number": 33612345678}, "phone_number"),
        ({"consent_source": "website"}, "consent_source"),
        ({"consent_source": "TELEPATHY"}, "consent_source"),
        ({"consented_at": "2026-03-02T09:30:00"}, "consented_at"),
        ({"consented_at": "2024-02-30T00:00:00Z"}, "consented_at"),
        ({"consented_at": 1772443800}, "consented_at"),
        ({"consented_at": "9999-12-31T23:59:59-23:59"}, "consented_at"),
        ({"consented_at": "0001-01-01T00:00:00+23:59"}, "consented_at"),
        ({"profile_id": ""}, "profile_id"),
        ({"profile_id": " CUST-1"}, "profile_id"),
        ({"profile_id": "x" * 256}, "profile_id"),
        ({"consent_proof": []}, "consent_proof"),
        ({"consent_proof": {"terms_url": "javascript:alert(1)"}}, "consent_proof.terms_url"),
        ({"consent_proof": {"terms_url": "ftp://shop.example"}}, "consent_proof.terms_url"),
        ({"consent_proof": {"terms_url": "https://"}}, "consent_proof.terms_url"),
        ({"consent_proof": {"terms_url": "https://shop.example\n"}}, "consent_proof.terms_url"),
        ({"consent_proof": {"terms_url": "https://shop.example/" + "x" * 1004}}, "consent_proof.terms_url"),
        ({"consent_proof": {"terms_version": "x" * 1025}}, "consent_proof.terms_version"),
        ({"consent_proof": {"source_text": "x" * 10_001}}, "consent_proof.source_text"),
    ],
)
def test_an_opt_in_with_a_bad_field_is_refused_by_name(change: dict[str, Any], field: str) -> None:
    assert _refused(lambda: prepare_opt_in(_request(body={**OPT_IN, **change}))) == (400, "VALIDATION_ERROR", field)


def test_the_longest_texts_are_taken() -> None:
    proof = {
        "terms_url": "HTTPS://shop.example/" + "x" * 1003,
        "source_text": "é" * 10_000,
        "terms_version": "v" * 1024,
    }
    assert prepare_opt_in(_request(body={**OPT_IN, "consent_proof": proof})).proof == Proof(**proof)


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({}, (400, "VALIDATION_ERROR", "phone_number")),
        ({"phone_number": None, "profile_id": None}, (400, "VALIDATION_ERROR", "phone_number")),
        ({"phone_number": "0612345678"}, (400, "INVALID_PHONE_NUMBER", "phone_number")),
        ({"phone_number": NUMBER, "unsubscribed_at": "yesterday"}, (400, "VALIDATION_ERROR", "unsubscribed_at")),
        ({"phone_number": NUMBER, "reason": "x" * 1025}, (400, "VALIDATION_ERROR", "reason")),
        ({"phone_number": NUMBER, "source": 1}, (400, "VALIDATION_ERROR", "source")),
    ],
)
def test_a_bad_opt_out_is_refused(body: dict[str, Any], refusal: tuple[int, str, str]) -> None:
    assert _refused(lambda: prepare_opt_out(_request(body=body))) == refusal


def test_a_created_opt_in_answers_201_with_every_field_and_any_other_200(desk: Desk) -> None:
    profile_id = desk.profile("CUST-1")
    body = {**OPT_IN, "profile_id": "CUST-1", "consent_proof": {"terms_version": "3"}}
    request = _request(desk, body=body)
    writes = [Write(request, prepare_opt_in(request))] * 2
    first, second = desk.do(lambda tx: run_opt_ins(tx, desk.organization_id, writes))
    assert (first.status, second.status) == (201, 200)
    answer = json.loads(first.body)
    identifier = answer["subscription"].pop("id")
    assert SUBSCRIPTION.decode(identifier) is not None
    assert answer == {
        "subscription": {
            "profile": {"id": PROFILE.encode(profile_id), "external_id": "CUST-1"},
            "store": None,
            "phone_number": NUMBER,
            "status": "SUBSCRIBED",
            "consent_source": "WEBSITE",
            "consented_at": "2026-03-02T09:29:00.123Z",
            "unsubscribed_at": None,
            "consent_proof": {"terms_url": None, "terms_version": "3", "source_text": None},
            "created_at": format_timestamp(NOW),
            "updated_at": format_timestamp(NOW),
        },
        "outcome": "created",
        "automation": {"state": "eligible"},
    }
    assert msgspec.json.decode(second.body, type=OptInOut).outcome == "already_subscribed"
    assert _get(desk, handle_subscription, identifier) == {"id": identifier, **answer["subscription"]}


def test_an_opt_out_answers_200_with_the_subscription_and_the_list(desk: Desk) -> None:
    request = _request(desk, body={"phone_number": "+33 6 12 34 56 78"})
    (answer,) = desk.do(lambda tx: run_opt_outs(tx, desk.organization_id, [Write(request, prepare_opt_out(request))]))
    body = json.loads(answer.body)
    assert (answer.status, body["outcome"]) == (200, "unsubscribed")
    assert body["automation"] == {"state": "not_applicable"}
    assert body["subscriptions"] == [body["subscription"]]
    assert body["subscription"]["consent_proof"] is None


def test_the_list_walks_all_pages_in_the_order_of_creation(desk: Desk) -> None:
    made = [SUBSCRIPTION.encode(desk.opt_in(f"+3361234567{digit}").subscription.id) for digit in range(5)]
    desk.neighbour().opt_in()
    seen, query = [], {"limit": "2"}
    while True:
        page = _get(desk, handle_list, **query)
        seen += [it["id"] for it in page["data"]]
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == made


def test_the_list_is_filtered_by_number_profile_and_status(desk: Desk) -> None:
    profile_id = desk.profile("CUST-1")
    one = SUBSCRIPTION.encode(desk.opt_in(profile="CUST-1").subscription.id)
    two = SUBSCRIPTION.encode(desk.opt_out("+447400123456").subscription.id)
    for query, expected in (
        ({"phone_number": NUMBER}, [one]),
        ({"phone_number": " 33 612345678"}, [one]),
        ({"phone_number": "+447400123457"}, []),
        ({"profile_id": "CUST-1"}, [one]),
        ({"profile_id": PROFILE.encode(profile_id), "status": "UNSUBSCRIBED"}, []),
        ({"status": "SUBSCRIBED"}, [one]),
        ({"status": "UNSUBSCRIBED"}, [two]),
        ({}, [one, two]),
    ):
        assert [it["id"] for it in _get(desk, handle_list, **query)["data"]] == expected, query


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ({"limit": "0"}, (400, "VALIDATION_ERROR", "limit")),
        ({"status": "subscribed"}, (400, "VALIDATION_ERROR", "status")),
        ({"status": "PENDING"}, (400, "VALIDATION_ERROR", "status")),
        ({"phone_number": "12"}, (400, "INVALID_PHONE_NUMBER", "phone_number")),
        ({"profile_id": ""}, (400, "VALIDATION_ERROR", "profile_id")),
        ({"profile_id": "nobody"}, (404, "PROFILE_NOT_FOUND", None)),
        ({"profile_id": "store_x"}, (404, "PROFILE_NOT_FOUND", None)),
        ({"cursor": "garbage"}, (400, "INVALID_CURSOR", None)),
        ({"cursor": "garbage", "profile_id": "nobody"}, (400, "INVALID_CURSOR", None)),
    ],
)
def test_a_bad_filter_is_refused(desk: Desk, query: dict[str, str], refusal: tuple[int, str, str | None]) -> None:
    assert _refused(lambda: _get(desk, handle_list, **query)) == refusal


def test_a_cursor_is_good_for_its_own_list_and_filters_only(desk: Desk) -> None:
    subscription = desk.opt_in().subscription
    desk.opt_in("+447400123456")
    desk.opt_in(now=NOW + DAY)
    cursor = _get(desk, handle_list, limit="1")["next_cursor"]
    reference = SUBSCRIPTION.encode(subscription.id)
    invalid = (400, "INVALID_CURSOR", None)
    assert _refused(lambda: _get(desk, handle_list, cursor=cursor, status="SUBSCRIBED")) == invalid
    assert _refused(lambda: _get(desk, handle_history, reference, cursor=cursor)) == invalid
    assert _refused(lambda: _get(desk.neighbour(), handle_list, cursor=cursor)) == invalid


@pytest.mark.parametrize("reference", ["sub_x", "CUST-1", NUMBER, "prof_01jkv5q8z3f7r9t2x4b6d8h0ma", quote("é")])
def test_a_reference_that_is_no_subscription_is_not_found(desk: Desk, reference: str) -> None:
    for handle in (handle_subscription, handle_history):
        assert _refused(lambda handle=handle: _get(desk, handle, reference)) == (404, "SUBSCRIPTION_NOT_FOUND", None)


def test_another_organization_s_subscription_is_not_found(desk: Desk) -> None:
    reference = SUBSCRIPTION.encode(desk.neighbour().opt_in().subscription.id)
    for handle in (handle_subscription, handle_history):
        assert _refused(lambda handle=handle: _get(desk, handle, reference)) == (404, "SUBSCRIPTION_NOT_FOUND", None)


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
