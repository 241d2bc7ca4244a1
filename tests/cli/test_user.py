import pytest


@pytest.fixture
def shop(regulars):
    assert regulars("organization", "create", "Shop").code == 0
    return regulars


def test_creating_a_user_prints_a_link_and_nothing_else(shop):
    ran = shop("user", "create", "Me@Shop.example", "--organization", "Shop", "--role", "owner")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("http://127.0.0.1:8080/link/")
    assert len(ran.out.split()) == 1
    assert shop("user", "list", "--json").data == []


def test_the_link_has_the_public_address(shop):
    ran = shop("user", "create", "me@shop.example", "-o", "Shop", REGULARS_PUBLIC_URL="https://regulars.example")
    assert ran.out.startswith("https://regulars.example/link/")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("user", "create", "me", "-o", "Shop"), 2, "is not an address"),
        (("user", "create", "me@shop.example", "-o", "Nowhere"), 1, "There is no organization"),
        (("user", "link", "me@shop.example"), 1, "There is no user me@shop.example"),
        (("user", "disable", "me@shop.example"), 1, "There is no user"),
        (("user", "role", "me@shop.example", "owner", "-o", "Shop"), 1, "There is no user"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_sentence(shop, arguments, code, words):
    assert words in shop(*arguments).complains(code=code)
