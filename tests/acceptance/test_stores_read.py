"""`GET /v1/stores/{store_id}` (specification 4.6)."""

from tests.support import samples
from tests.support.client import Api, segment


def test_it_knows_no_store_that_was_never_sent(api: Api) -> None:
    assert api.get("/v1/stores/nowhere").refused == (404, "STORE_NOT_FOUND")


def test_a_canonical_id_of_another_kind_is_no_store(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    assert api.get(f"/v1/stores/{profile['id']}").refused == (404, "STORE_NOT_FOUND")


def test_it_reads_a_store_by_either_reference(api: Api) -> None:
    store = api.post("/v1/stores", samples.store(external_id=samples.unique("Paris / Opéra"))).json()
    for reference in (store["id"], store["external_id"]):
        answer = api.get(f"/v1/stores/{segment(reference)}")
        assert answer.status == 200
        assert answer.json() == store
