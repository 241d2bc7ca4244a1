"""References in a path: any text survives one encoding and one decoding, and no bytes break the router."""

from urllib.parse import quote

import httpx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support.client import Api, segment
from tests.support.contract import Contract
from tests.support.routes import ROUTES
from tests.support.server import Server
from tests.support.tenant import new_tenant

from regulars.http.router import Router
from regulars.kit.errors import MethodNotAllowed, RouteNotFound
from regulars.kit.ids import RESERVED_PREFIXES

router = Router(ROUTES)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=255)
external_ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80).filter(
    lambda text: text == text.strip() and not text.startswith(RESERVED_PREFIXES)
)


@given(texts)
def test_a_reference_survives_the_path(text: str) -> None:
    for path in (f"/v1/stores/{segment(text)}", f"/v1/stores/{''.join(f'%{byte:02x}' for byte in text.encode())}"):
        assert router.find("GET", path.encode()) == (router.find("GET", b"/v1/stores/x")[0], (text,))


@given(texts)
def test_what_need_not_be_escaped_may_stand_as_it_is(text: str) -> None:
    path = "/v1/profiles/" + quote(text, safe="!$&'()*+,;=:@~") + "/attributes"
    route, references = router.find("GET", path.encode())
    assert (route.operation_id, references) == ("getProfileAttributes", (text,))


@given(st.binary(max_size=60), st.sampled_from(["GET", "POST", "DELETE", "PUT"]))
def test_any_bytes_are_routed_or_refused(raw: bytes, method: str) -> None:
    for path in (raw, b"/v1/" + raw, b"/v1/profiles/" + raw):
        try:
            _route, references = router.find(method, path)
        except (RouteNotFound, MethodNotAllowed):
            continue
        assert all(reference and "\x00" not in reference for reference in references)


@pytest.fixture(scope="module")
def caller(server: Server, contract: Contract, http: httpx.Client, api_database_url: str) -> Api:
    return Api(server, contract, http, new_tenant(api_database_url))


@settings(max_examples=60)  # each example is two calls over a socket
@given(external_id=external_ids)
def test_every_external_id_is_accepted_and_read_again_by_path(caller: Api, external_id: str) -> None:
    assume(not external_id.startswith(RESERVED_PREFIXES))
    stored = caller.post("/v1/profiles", {"external_id": external_id})
    assert stored.status in (200, 201)
    read = caller.raw("GET", f"/v1/profiles/{segment(external_id)}")
    assert (read.status, read.json()) == (200, stored.json())
