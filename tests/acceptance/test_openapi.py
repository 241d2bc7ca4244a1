"""`GET /v1/openapi.json` (specification 4.11): the served, the committed and the real interface are one."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import openapi_spec_validator
import pytest
from tests.support.client import Api
from tests.support.contract import Contract
from tests.support.routes import ROUTES

from regulars.http.refusals import refusals_of_all
from regulars.webhooks.model import EVENT_TYPES, PING

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"

SPECIFIED = {
    ("POST", "/v1/profiles"),
    ("GET", "/v1/profiles/{profile_id}"),
    ("POST", "/v1/profiles/{profile_id}/attributes"),
    ("GET", "/v1/profiles/{profile_id}/attributes"),
    ("POST", "/v1/stores"),
    ("GET", "/v1/stores"),
    ("GET", "/v1/stores/{store_id}"),
    ("POST", "/v1/subscriptions/opt-in"),
    ("POST", "/v1/subscriptions/opt-out"),
    ("POST", "/v1/subscriptions/check"),
    ("POST", "/v1/sales-events"),
    ("GET", "/v1/sales-events"),
    ("GET", "/v1/openapi.json"),
}
ADDED = {
    ("GET", "/v1/profiles"),
    ("POST", "/v1/profiles/batch"),
    ("DELETE", "/v1/profiles/{profile_id}"),
    ("GET", "/v1/subscriptions"),
    ("GET", "/v1/subscriptions/{subscription_id}"),
    ("GET", "/v1/subscriptions/{subscription_id}/history"),
    ("GET", "/v1/sales-events/{sales_event_id}"),
    ("POST", "/v1/sales-events/batch"),
    ("GET", "/v1/journeys/schema.json"),
}


def test_the_schema_of_a_journey_is_served_as_it_is_committed_and_needs_no_key(anonymous: Api) -> None:
    answer = anonymous.get("/v1/journeys/schema.json")
    assert answer.status == 200
    assert answer.json() == json.loads((COMMITTED.parent / "journey.schema.json").read_text("utf-8"))


def test_it_needs_no_key(anonymous: Api) -> None:
    answer = anonymous.get("/v1/openapi.json")
    assert answer.status == 200
    assert answer.json()["openapi"].startswith("3.1")


def test_the_served_document_is_the_committed_one_at_this_address(anonymous: Api) -> None:
    served = anonymous.get("/v1/openapi.json").json()
    committed = json.loads(COMMITTED.read_text(encoding="utf-8"))
    assert served["servers"] == [{"url": anonymous.server.url}]
    assert {**served, "servers": None} == {**committed, "servers": None}, "run bin/openapi"


def test_the_address_is_the_one_the_caller_used(anonymous: Api) -> None:
    answer = anonymous.get("/v1/openapi.json", headers={"Host": "regulars.example:8443"})
    assert answer.json()["servers"] == [{"url": "http://regulars.example:8443"}]


def test_it_has_every_operation_and_no_other(anonymous: Api) -> None:
    paths = anonymous.get("/v1/openapi.json").json()["paths"]
    described = {(method.upper(), path) for path, item in paths.items() for method in item}
    assert described == SPECIFIED | ADDED
    assert {(route.method, route.path) for route in ROUTES} == described


def test_it_lists_every_code(anonymous: Api) -> None:
    codes = anonymous.get("/v1/openapi.json").json()["components"]["schemas"]["Problem"]["properties"]["code"][
        "examples"
    ]
    assert codes == [error.code for error in refusals_of_all(ROUTES)]


def _examples() -> list[tuple[str, str, str, Any]]:
    return [(route.method, route.path, name, body) for route in ROUTES for name, body in sorted(route.examples.items())]


@pytest.mark.parametrize(("method", "path", "name", "body"), _examples(), ids=lambda value: str(value)[:40])
def test_its_examples_work_as_they_stand(api: Api, method: str, path: str, name: str, body: Any) -> None:
    _prepare_examples(api)
    answer = api.post(path.replace("{profile_id}", "CUST-1042"), body)
    assert answer.status in (200, 201), answer.body


def test_every_operation_with_a_body_has_an_example() -> None:
    without = [route.operation_id for route in ROUTES if route.method == "POST" and not route.examples]
    assert without == []


def _prepare_examples(api: Api) -> None:
    """What the examples refer to: the document's own store and customer."""
    for route in ROUTES:
        if route.operation_id in {"upsertStore", "upsertProfile"}:
            for body in route.examples.values():
                assert api.post(route.path, body).status in (200, 201)


def test_its_examples_fit_its_schemas(anonymous: Api) -> None:
    document = anonymous.get("/v1/openapi.json").json()
    components = document["components"]
    checked = 0
    for path, item in document["paths"].items():
        for operation in item.values():
            media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            for example in media.get("examples", {}).values():
                schema = {**media["schema"], "components": components}
                jsonschema_rs.Draft202012Validator(schema).validate(example["value"])
                checked += 1
            for response in operation["responses"].values():
                problem = response.get("content", {}).get("application/problem+json")
                for code in (problem or {}).get("examples", {}):
                    schema = {**problem["schema"], "components": components}
                    jsonschema_rs.Draft202012Validator(schema).validate(components["examples"][code]["value"])
                    checked += 1
        assert path.startswith("/v1/")
    assert checked > 100
    for schema in components["schemas"].values():
        for property_schema in schema.get("properties", {}).values():
            for example in property_schema.get("examples", []):
                jsonschema_rs.Draft202012Validator({**property_schema, "components": components}).validate(example)


def test_every_reference_in_it_leads_somewhere(anonymous: Api) -> None:
    document = anonymous.get("/v1/openapi.json").json()
    references = set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document)))
    assert references
    for reference in references:
        found: Any = document
        for part in reference.split("/"):
            found = found[part]


def test_every_operation_names_itself_and_what_it_may_answer(anonymous: Api) -> None:
    document = anonymous.get("/v1/openapi.json").json()
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    identifiers = [operation["operationId"] for operation in operations]
    assert len(identifiers) == len(set(identifiers))
    for operation in operations:
        assert operation["summary"]
        assert {"500", "503", "414", "431"} <= set(operation["responses"])
        assert operation.get("security") == [] or {"401", "429"} <= set(operation["responses"])


def test_it_is_valid_by_the_specification_of_openapi() -> None:
    openapi_spec_validator.validate(json.loads(COMMITTED.read_text()))


def _schemas(node: Any) -> Iterator[dict[str, Any]]:
    """Every object in the document that may be a schema."""
    if isinstance(node, dict):
        yield node
        for member in node.values():
            yield from _schemas(member)
    elif isinstance(node, list):
        for member in node:
            yield from _schemas(member)


def test_generators_can_read_it(contract: Contract) -> None:
    """What stopped generators of clients: lists of types, defaults beside `anyOf`, a choice of bodies."""
    document = contract.document
    for schema in _schemas(document):
        assert not isinstance(schema.get("type"), list), schema
        assert not ("default" in schema and "anyOf" in schema), schema
        assert not ("$ref" in schema and ("anyOf" in schema or "oneOf" in schema)), schema
    # Without a size, generated clients read an amount into 32 bits and fail above 21 million euros.
    schemas = document["components"]["schemas"]
    assert schemas["SalesEventOut"]["properties"]["total_amount_cents"]["format"] == "int64"
    assert schemas["LineItemIn"]["properties"]["quantity"]["format"] == "double"
    assert "anyOf" not in schemas["FreeJson"]  # The Java of an object or an array does not compile.
    # A default is sent with every call by the PHP client, as `dry_run=0`.
    assert document["components"]["parameters"]["DryRun"]["schema"] == {"type": "boolean"}
    for path in document["paths"].values():
        for operation in path.values():
            if "requestBody" in operation:
                [media] = operation["requestBody"]["content"].values()
                assert media["schema"].keys() == {"$ref"}, operation["operationId"]


def test_every_webhook_is_described_with_a_payload_that_its_example_fits(contract: Contract) -> None:
    document = contract.document
    assert set(document["webhooks"]) == {*EVENT_TYPES, PING}
    for name, item in document["webhooks"].items():
        media = item["post"]["requestBody"]["content"]["application/json"]
        schema = {**media["schema"], "components": document["components"]}
        example = media["examples"][name]["value"]
        assert example["type"] == name
        jsonschema_rs.Draft202012Validator(schema).validate(example)
