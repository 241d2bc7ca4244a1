"""Authentication (specification 5): one key, one organization, and the same refusal for everything else."""

import json

from tests.support import samples
from tests.support.client import Api
from tests.support.server import Server
from tests.support.tenant import Tenant, another_key, revoke
from tests.support.waiting import wait_until

from regulars.organizations.model import new_key


def test_missing_malformed_and_unknown_keys_get_the_same_refusal(api: Api, tenant: Tenant) -> None:
    """Every route asks for a key first, which tests/bad_inputs looks at."""
    key = tenant.key.encode()
    spellings = [b"", b"x", new_key().encode(), key[:-1], key.lower(), b"Bearer " + key, key.replace(b"rgl_", b"RGL_")]
    refusals = []
    for headers in ([], *([(b"x-api-key", value)] for value in [*spellings, b"\xff\xfe", b'"' + key + b'"'])):
        answer = api.as_tenant(None).raw("GET", "/v1/stores", headers=headers)
        assert answer.refused == (401, "UNAUTHORIZED")
        refusals.append(samples.without(answer.json(), "request_id"))
    assert refusals == [refusals[0]] * len(refusals)


def test_the_refusal_says_how_to_authenticate(anonymous: Api) -> None:
    for answer in (anonymous.get("/v1/stores"), anonymous.post("/v1/sales-events", samples.sale("s1"))):
        assert answer.status == 401
        assert answer.header("www-authenticate") == "ApiKey"


def test_white_space_around_a_header_is_no_part_of_it(api: Api, tenant: Tenant) -> None:
    caller, key = api.as_tenant(None), tenant.key.encode()
    body = json.dumps(samples.store()).encode()
    for space in (b" ", b"\t", b" \t  "):
        padded = space + key + space
        assert caller.raw("GET", "/v1/stores", headers=[(b"x-api-key", padded)]).status == 200
        # Twice: the second head is one that the server knows.
        for _ in range(2):
            headers = [
                (b"x-api-key", padded),
                (b"Content-Type", b"application/json" + space),
                (b"X-Request-Id", b"till-7" + space),
                (b"Content-Encoding", b"identity" + space),
            ]
            answer = caller.raw("POST", "/v1/stores", headers=headers, body=body)
            assert answer.status in (200, 201)
            assert answer.header("x-request-id") == "till-7"
            assert caller.raw("POST", "/v1/stores", headers=headers[:2], body=body).status == 200


def test_several_keys_of_one_organization_see_the_same_data(api: Api, tenant: Tenant, api_database_url: str) -> None:
    store = api.post("/v1/stores", samples.store()).json()
    second = api.as_tenant(another_key(api_database_url, tenant))
    assert second.get(f"/v1/stores/{store['id']}").json() == store


def test_a_revoked_key_is_dead_in_every_process_soon_and_then_for_ever(
    api: Api, tenant: Tenant, api_database_url: str, second_server: Server
) -> None:
    spare = api.as_tenant(another_key(api_database_url, tenant))
    callers = [spare, spare.on(second_server)]
    for caller in callers:
        assert caller.get("/v1/stores").status == 200
    assert spare.tenant is not None
    revoke(api_database_url, spare.tenant)
    # A test of the cache of keys counts the second that it may take.
    for caller in callers:
        wait_until(lambda: caller.get("/v1/stores").status == 401)  # noqa: B023  # at once
    for caller in callers * 3:
        assert caller.get("/v1/stores").refused == (401, "UNAUTHORIZED")
    assert api.get("/v1/stores").status == 200
