import re

import pytest


@pytest.fixture
def database_url(shop_database_url):
    return shop_database_url


def test_creating_a_key_prints_the_key_alone_and_says_which_database_it_wrote_to(regulars, database_url):
    created = regulars("key", "create", "--organization", "Shop", "--name", "till 1")
    assert created.code == 0
    assert re.fullmatch(r"rgl_[0-9A-Za-z]{36}\n", created.out)
    said = " ".join(created.err.split())
    assert database_url in said
    assert "not shown again" in said


def test_a_program_gets_the_key_with_its_id(regulars):
    made = regulars("key", "create", "--organization", "Shop", "--name", "till 1", "--json").data
    (listed,) = regulars("key", "list", "--organization", "Shop", "--json").data
    assert {name: made[name] for name in listed} == listed
    assert re.fullmatch(r"rgl_[0-9A-Za-z]{36}", made["key"])


def test_the_list_has_ids_and_no_secrets(regulars):
    secret = regulars("key", "create", "--organization", "Shop", "--name", "till 1").out.strip()
    listed = regulars("key", "list", "--organization", "Shop", "--json")
    assert secret not in listed.out
    (key,) = listed.data
    assert key["id"].startswith("key_")
    assert key["name"] == "till 1"
    assert secret.endswith(key["ends_in"])
    assert key["revoked_at"] is None
    assert secret not in regulars("key", "list", "--organization", "Shop").out


def test_a_key_can_be_limited_to_ingest(regulars):
    regulars("key", "create", "--organization", "Shop", "--permission", "ingest")
    regulars("key", "create", "--organization", "Shop")
    keys = regulars("key", "list", "--organization", "Shop", "--json").data
    assert [key["permission"] for key in keys] == ["ingest", "full"]
    assert regulars("key", "create", "--organization", "Shop", "--permission", "root").code == 2


def test_a_revoked_key_says_when_and_revoking_it_again_changes_nothing(regulars):
    regulars("key", "create", "--organization", "Shop")
    (key,) = regulars("key", "list", "--organization", "Shop", "--json").data
    regulars("organization", "create", "Other")
    assert "There is no key" in regulars("key", "revoke", key["id"], "--organization", "Other").complains(code=1)
    assert regulars("key", "revoke", key["id"], "--organization", "Shop").code == 0
    (revoked,) = regulars("key", "list", "--organization", "Shop", "--json").data
    assert revoked["revoked_at"].endswith("Z")
    assert regulars("key", "revoke", key["id"]).code == 0
    assert regulars("key", "list", "--organization", "Shop", "--json").data == [revoked]


def test_a_key_or_an_organization_that_is_not_there_is_refused(regulars):
    assert "There is no key" in regulars("key", "revoke", "key_01h455vb4pex5vsknk084sn02q").complains(code=1)
    assert "no organization named 'Shp'" in regulars("key", "create", "--organization", "Shp").complains(code=1)
    regulars("key", "list", "--organization", "Shp").complains(code=1)
    for malformed in ("x", "key_", "org_01h455vb4pex5vsknk084sn02q"):
        regulars("key", "revoke", malformed).complains(code=2)
