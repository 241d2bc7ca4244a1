"""References in a path: any text survives one encoding and one decoding, and no bytes break the router."""

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st
from tests.support.client import segment
from tests.support.routes import ROUTES

from regulars.http.router import Router
from regulars.kit.errors import MethodNotAllowed, RouteNotFound

router = Router(ROUTES)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=255)


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
