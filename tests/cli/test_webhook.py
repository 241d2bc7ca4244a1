import re

import pytest

from regulars.lists.columns import Place
from regulars.webhooks.delivery_columns import DELIVERY_COLUMNS

URL = "https://shop.example/hook"
KEY = {"REGULARS_SECRET_KEY": "a key of at least thirty-two characters"}


@pytest.fixture
def database_url(shop_database_url):
    return shop_database_url


def webhook(regulars, *arguments):
    return regulars("webhook", *arguments, "--organization", "Shop", "--json", **KEY)


@pytest.fixture
def endpoint(regulars):
    return webhook(regulars, "create", URL, "--description", "the shop's own").data


def test_creating_an_endpoint_prints_its_id_and_its_secret(regulars, endpoint):
    assert re.fullmatch(r"wh_[0-9a-z]{26}", endpoint["id"])
    assert re.fullmatch(r"whsec_[0-9A-Za-z+/=]{40,}", endpoint["secret"])
    plain = regulars(
        "webhook", "create", URL, "--organization", "Shop", "--events", "profile.*, subscription.created", **KEY
    )
    assert re.fullmatch(r"wh_[0-9a-z]{26} whsec_\S+\n", plain.out)
    first, second = webhook(regulars, "list").data
    assert (first["events"], first["description"]) == (["profile.*", "subscription.*"], "the shop's own")
    assert second["events"] == ["profile.*", "subscription.created"]
    assert endpoint["secret"] not in regulars("webhook", "list", "--organization", "Shop").out
    shown = regulars("webhook", "show", endpoint["id"], "--organization", "Shop", **KEY).out.splitlines()
    assert {f"id: {endpoint['id']}", "events: profile.*, subscription.*", "description: the shop's own"} <= {*shown}


def test_what_cannot_be_an_endpoint_is_refused(regulars):
    for arguments, sentence in [
        (["http://shop.example/"], "https"),
        (["https://127.0.0.1/"], "public internet"),
        ([URL, "--events", "sale.created"], "'sale.created' is no type of event"),
        ([URL, "--events", ","], "at least one type"),
        ([URL, "--description", "x" * 256], "at most 255 characters"),
    ]:
        refused = regulars("webhook", "create", *arguments, "--organization", "Shop", **KEY)
        assert sentence in refused.complains(code=1)


def test_an_endpoint_is_disabled_enabled_and_deleted(regulars, endpoint):
    disabled = webhook(regulars, "disable", endpoint["id"]).data
    assert (disabled["state"], disabled["disabled_by"]) == ("disabled", "person")
    assert "gets no events" in webhook(regulars, "show", endpoint["id"]).data["note"]
    assert "enable it first" in webhook(regulars, "ping", endpoint["id"]).complains(code=1)
    assert webhook(regulars, "enable", endpoint["id"]).data["state"] == "enabled"
    assert webhook(regulars, "delete", endpoint["id"]).data == {"id": endpoint["id"], "deleted": True}
    assert webhook(regulars, "list").data == []
    webhook(regulars, "show", endpoint["id"]).complains(code=1)


def test_a_ping_is_a_delivery_that_can_be_listed_and_replayed(regulars, endpoint):
    first = webhook(regulars, "ping", endpoint["id"]).data["delivery"]
    second = webhook(regulars, "replay", first).data["delivery"]
    listed = webhook(regulars, "deliveries", "--endpoint", endpoint["id"], "--state", "pending").data
    assert [one["id"] for one in listed] == [second, first]
    assert {one["event"] for one in listed} == {"webhook.ping"}
    assert len({one["webhook_id"] for one in listed}) == 1
    assert [one["is_replay"] for one in listed] == [True, False]
    declared = [it.json_name or it.name for it in DELIVERY_COLUMNS.columns if Place.COMMAND in it.places]
    assert [list(one) for one in listed] == [declared] * 2
    ranged = webhook(regulars, "replay", "--endpoint", endpoint["id"], "--from", "2020-01-01T00:00:00Z")
    assert ranged.data == {"replayed": 1}
    failed = webhook(regulars, "replay", "--endpoint", endpoint["id"], "--from", "2020-01-01T00:00:00Z", "--failed")
    assert failed.data == {"replayed": 0}


def test_a_rotation_prints_a_new_secret_and_says_until_when_the_old_one_signs(regulars, endpoint):
    rotated = webhook(regulars, "rotate", endpoint["id"]).data
    assert rotated["secret"] != endpoint["secret"]
    assert rotated["old_secret_until"].endswith("Z")


def test_a_command_that_cannot_be_meant_is_refused(regulars):
    for arguments in [
        ["show", "x"],
        ["replay", "wh_01h455vb4pex5vsknk084sn02q"],
        ["replay"],
        ["replay", "--endpoint", "wh_01h455vb4pex5vsknk084sn02q"],
        ["replay", "--endpoint", "wh_01h455vb4pex5vsknk084sn02q", "--from", "yesterday"],
        ["deliveries", "--state", "lost"],
    ]:
        regulars("webhook", *arguments, "--organization", "Shop").complains(code=2)


def test_without_a_secret_key_the_advice_for_an_external_database_is_to_set_one(regulars):
    refused = regulars("webhook", "create", URL, "--organization", "Shop")
    assert "REGULARS_SECRET_KEY" in refused.complains(code=2)


def test_ids_that_name_nothing_are_refused_in_a_sentence(regulars):
    assert "no webhook endpoint" in webhook(regulars, "show", "wh_01h455vb4pex5vsknk084sn02q").complains(code=1)
    assert "no delivery" in webhook(regulars, "replay", "dlv_01h455vb4pex5vsknk084sn02q").complains(code=1)
    assert "no organization" in regulars("webhook", "list", "--organization", "Shp").complains(code=1)
