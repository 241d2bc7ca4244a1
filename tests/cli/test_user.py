import pytest
from tests.support.open_database import in_transaction

from regulars.accounts import users
from regulars.kit.db import Tx
from regulars.organizations.manage import find_organization
from regulars.web.access import Role


@pytest.fixture
def database_url(shop_database_url):
    return shop_database_url


def test_creating_a_user_prints_a_link_and_nothing_else(regulars):
    ran = regulars("user", "create", "Me@Shop.example", "--organization", "Shop", "--role", "owner")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("http://127.0.0.1:8080/link/")
    assert len(ran.out.split()) == 1
    assert regulars("user", "list", "--json").data == []


def test_the_link_has_the_public_address(regulars):
    ran = regulars("user", "create", "me@shop.example", "-o", "Shop", REGULARS_PUBLIC_URL="https://regulars.example")
    assert ran.out.startswith("https://regulars.example/link/")


def test_one_sentence_says_why_something_cannot_be_done(regulars):
    for arguments, code, words in [
        (("user", "create", "me", "-o", "Shop"), 2, "is not an address"),
        (("user", "create", "me@shop.example", "-o", "Nowhere"), 1, "There is no organization"),
        (("user", "link", "me@shop.example"), 1, "There is no user me@shop.example"),
        (("user", "disable", "me@shop.example"), 1, "There is no user"),
        (("user", "role", "me@shop.example", "owner", "-o", "Shop"), 1, "There is no user"),
    ]:
        assert words in regulars(*arguments).complains(code=code)


def test_a_person_is_listed_gets_another_role_and_is_disabled(regulars, database_url):
    hire(database_url, "me@shop.example", Role.OWNER)
    hire(database_url, "other@shop.example", Role.ANALYST)
    assert regulars("user", "role", "other@shop.example", "admin", "-o", "Shop").code == 0
    ran = regulars("user", "list", "--json")
    assert {(one["email"], one["organization"], one["role"]) for one in ran.data} == {
        ("me@shop.example", "Shop", "owner"),
        ("other@shop.example", "Shop", "admin"),
    }
    assert "other@shop.example" in regulars("user", "list").out
    assert regulars("user", "disable", "other@shop.example").code == 0
    disabled = {one["email"]: one["disabled_at"] for one in regulars("user", "list", "--json").data}
    assert (disabled["me@shop.example"], disabled["other@shop.example"] is None) == (None, False)
    assert regulars("user", "enable", "other@shop.example").code == 0
    assert {one["disabled_at"] for one in regulars("user", "list", "--json").data} == {None}


def test_the_last_owner_stays_one(regulars, database_url):
    hire(database_url, "me@shop.example", Role.OWNER)
    assert "owner" in regulars("user", "role", "me@shop.example", "analyst", "-o", "Shop").complains(code=1)


def hire(database_url: str, email: str, role: Role) -> None:
    """A user who has used their link."""

    async def act(tx: Tx) -> None:
        found = await find_organization(tx.connection, "Shop")
        assert found is not None
        person = await users.create_account(tx, email=email, name=email)
        await users.join(tx, found.id, found.name, person.id, role)

    in_transaction(database_url, act)
