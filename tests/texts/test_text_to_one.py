"""A person writes to one customer: what is queued goes through the gate, once."""

import base64
import re
from uuid import uuid4

import psycopg
import pytest
from tests.explore.shop import Shop, open_shop

from regulars.web.access import Role
from regulars.web.cookies import FLASH


@pytest.fixture
def shop(api) -> Shop:
    return open_shop(api)


@pytest.fixture
def texts(tenant, api_database_url):
    """What was asked for by a person: words, state, reason."""

    def read() -> list[tuple[str, str, str | None]]:
        with psycopg.connect(api_database_url) as connection:
            return connection.execute(
                "SELECT body, state, reason FROM texts WHERE organization_id = %s AND origin_kind = 'person' ORDER BY id",
                (tenant.organization_id,),
            ).fetchall()

    return read


@pytest.fixture
def recorded(tenant, api_database_url):
    """How often the audit log says that a text was sent by a person."""

    def read() -> int:
        with psycopg.connect(api_database_url) as connection:
            query = "SELECT count(*) FROM audit_log WHERE organization_id = %s AND act = 'text.send'"
            return connection.execute(query, (tenant.organization_id,)).fetchone()[0]

    return read


def said(response) -> str:
    """The message of the cookie that the next page shows, behind its signature."""
    return base64.urlsafe_b64decode(response.cookies[FLASH])[16:].decode()


def once_of(page: str) -> str:
    return re.search(r'name="once" value="([^"]+)"', page)[1]


def test_a_text_is_queued_once_and_recorded(visitor_as, shop, texts, recorded):
    marketer = visitor_as(Role.MARKETER)
    path = f"/customers/{shop.customer['id']}"
    assert f"{path}/text" in marketer.get(path).text
    form = marketer.get(f"{path}/text").text
    before, acts = len(texts()), recorded()
    preview = marketer.post(f"{path}/text", words="Your coat is ready.", once=once_of(form), act="preview")
    assert "1 SMS part" in preview.text
    assert len(texts()) == before
    for _ in range(2):
        answer = marketer.post(f"{path}/text", words="Your coat is ready.", once=once_of(form))
        assert answer.status_code == 303
    assert said(answer) == "You already sent this text. It is not sent twice."
    [(body, state, reason)] = texts()[before:]
    assert "Your coat is ready." in body
    assert (state, reason) in {("queued", None), ("skipped", "country_not_set")}
    assert recorded() == acts + 1


def test_nothing_is_sent_without_words_a_number_or_the_right(visitor_as, shop, api, texts):
    marketer = visitor_as(Role.MARKETER)
    path = f"/customers/{shop.customer['id']}/text"
    before = texts()
    assert marketer.post(path, words=" ", once=str(uuid4())).status_code == 400
    assert marketer.post(path, words="Hello {{first_name}}", once=str(uuid4())).status_code == 400
    assert visitor_as(Role.ANALYST).get(path).status_code == 403
    unasked = api.post("/v1/profiles", {"external_id": "unasked"}).json()["id"]
    assert "This customer cannot be texted" in marketer.get(f"/customers/{unasked}/text").text
    assert texts() == before
    # A user who posts all the same reads why nothing was sent.
    answer = marketer.post(f"/customers/{unasked}/text", words="Hello", once=str(uuid4()))
    assert answer.status_code == 303
    assert [(state, reason) for _, state, reason in texts()[len(before) :]] == [("skipped", "no_consent")]


def test_erasing_stands_in_a_menu(visitor_as, shop):
    page, other = (visitor_as(it).get(f"/customers/{shop.customer['id']}").text for it in (Role.OWNER, Role.MARKETER))
    assert "Erase customer" not in other
    menu = page[page.index('aria-label="More actions"') :]
    assert "Erase customer" in menu
