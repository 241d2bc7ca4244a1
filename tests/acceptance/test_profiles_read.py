"""`GET /v1/profiles/{profile_id}` (specification 4.2) and path segments as the wire has them."""

import pytest
from tests.support import samples
from tests.support.client import Api, segment


def test_it_knows_no_profile_that_was_never_sent(api: Api) -> None:
    assert api.get("/v1/profiles/nobody").refused == (404, "PROFILE_NOT_FOUND")


@pytest.mark.parametrize("kind", ["store_", "sub_", "evt_", "prof_"])
def test_a_canonical_id_that_exists_nowhere_is_404(api: Api, kind: str) -> None:
    assert api.get(f"/v1/profiles/{kind}01h455vb4pex5vsknk084sn02q").refused == (404, "PROFILE_NOT_FOUND")


def test_it_reads_a_profile_by_either_reference(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    for reference in (profile["id"], profile["external_id"]):
        answer = api.get(f"/v1/profiles/{reference}")
        assert (answer.status, answer.json()) == (200, profile)


@pytest.mark.parametrize(
    "external_id",
    ["PROF_x", "profile_1", "🧣", "\u00e9", "e\u0301", "a/b", "a%2Fb", "a:b", "a b", "..", ".", "+33", "%", "\U0001f9e3" * 255, "x/attributes", "?", "#", "a;b", "a=b&c", "a+b", "é/%2F/🧣"],
)  # fmt: skip
def test_every_external_id_that_was_accepted_can_be_read_again_by_path(api: Api, external_id: str) -> None:
    stored = api.post("/v1/profiles", {"external_id": external_id}).json()
    answer = api.raw("GET", f"/v1/profiles/{segment(external_id)}")
    assert (answer.status, answer.json()) == (200, stored)


def test_an_encoded_slash_stays_inside_its_segment(api: Api) -> None:
    name = samples.unique()
    inner = api.post("/v1/profiles", {"external_id": f"{name}/attributes", "first_name": "slash"}).json()
    api.post("/v1/profiles", {"external_id": name, "attributes": {"a": "b"}})
    assert api.raw("GET", f"/v1/profiles/{name}%2Fattributes").json() == inner
    assert api.raw("GET", f"/v1/profiles/{name}/attributes").json()["attributes"] == {"a": "b"}


def test_a_path_is_decoded_exactly_once(api: Api) -> None:
    twice = api.post("/v1/profiles", {"external_id": "100%25"}).json()
    once = api.post("/v1/profiles", {"external_id": "100%"}).json()
    assert api.raw("GET", "/v1/profiles/100%2525").json() == twice
    assert api.raw("GET", "/v1/profiles/100%25").json() == once
