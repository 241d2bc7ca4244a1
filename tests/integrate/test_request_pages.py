"""The request log and the API reference in the frame."""

from tests.support.client import Api
from tests.support.tenant import Tenant
from tests.support.visitor import Visitor
from tests.support.waiting import ask_until

from regulars.integrate.pages.requests import mask_problem
from regulars.kit.ids import API_KEY


def logged(visitor: Visitor, text: str) -> str:
    """The page of the log once it shows this."""
    return ask_until(text, lambda: visitor.get("/requests"))


def test_an_empty_log_says_what_will_be_there(owner):
    page = owner.get("/requests").text
    assert "No requests yet" in page
    assert "incomplete by design" in page


def test_a_refusal_is_shown_with_its_code_and_what_it_said(owner, api: Api, tenant: Tenant):
    api.get("/v1/stores")
    api.post("/v1/profiles", {"external_id": 5})
    page = logged(owner, "VALIDATION_ERROR")
    assert "GET /v1/stores" in page
    only_refused = owner.get("/requests", kind="refused").text
    assert "GET /v1/stores" not in only_refused
    assert "VALIDATION_ERROR" in owner.get("/requests", key=API_KEY.encode(tenant.key_id)).text
    entry = only_refused.split('href="' + f"/o/{owner.who.slug}/requests/")[1].split('"')[0]
    shown = owner.get(f"/requests/{entry}").text
    assert "external_id" in shown
    assert "What VALIDATION_ERROR means" in shown
    assert owner.get("/requests/nonsense").status_code == 404
    assert owner.get("/requests/00000000-0000-7000-8000-000000000000").status_code == 404


def test_names_of_attributes_in_a_refusal_are_masked():
    refused = [{"field": "attributes.wife of Bob", "code": "WRONG_TYPE"}, {"field": "first_name", "code": "LENGTH"}]
    problem = {"code": "VALIDATION_ERROR", "detail": "attributes.wife of Bob must be a string.", "errors": refused}
    masked = mask_problem(problem)
    assert masked["detail"] == "attributes.••• must be a string."
    assert [error["field"] for error in masked["errors"]] == ["attributes.•••", "first_name"]
    assert mask_problem({"code": "RATE_LIMITED"}) == {"code": "RATE_LIMITED"}


def test_the_reference_has_every_operation_and_schema(owner):
    start = owner.get("/reference").text
    assert "Record one transaction" in start
    sales = owner.get("/reference/sales-events").text
    assert f"{owner.base_url}/v1/sales-events" in sales
    assert "server.invalid" not in sales
    assert "SalesEventEnvelope" in owner.get("/reference/schemas").text
    assert owner.get("/reference/nonsense").status_code == 404
