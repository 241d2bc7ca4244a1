"""Links in texts: what may be written, which code a recipient gets, and what the customer finds there."""

from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from tests.inbox.test_erasure import customer, erase
from tests.support.desk import NUMBER

from regulars.inbox.pages.links import ShortLinkPages
from regulars.kit.ids import new_uuid
from regulars.links.marks import SAMPLE_CODE, set_link_url
from regulars.links.origin_kind import OriginKind
from regulars.texts.request import compose
from regulars.texts.settings.store import Texting
from regulars.texts.template import TemplateError, check_fields, parse_template, render, render_plain
from regulars.texts.template_labels import describe_template

HOST = "https://s.example"
SHOP = "https://shop.example/sale?a=1|2"
LINK = f'See {{{{ link("{SHOP}") }}}}'


@pytest.fixture
def host() -> Iterator[None]:
    set_link_url(HOST)
    yield
    set_link_url(None)


@pytest.fixture
def opened(desk, host):
    """Requests to the pages of short links, as a customer's browser makes them."""
    pages = ShortLinkPages(desk.database, fallback_url="https://shop.example")
    transport = httpx.ASGITransport(Starlette(routes=pages.routes()))

    def send(url, *, method="GET", agent="Mozilla/5.0 (iPhone) Safari", **headers):
        async def run():
            async with httpx.AsyncClient(transport=transport) as client:
                found = await client.request(method, url, headers={"user-agent": agent, **headers})
            await pages.clicks.write()
            return found

        return desk.runner.run(run())

    return send


def words(text):
    return render(parse_template(text), {})


def sent_links(desk):
    """The short links of the texts that were sent."""
    return [word for text in desk.gateway.sent for word in text.body.split() if word.startswith(HOST)]


@pytest.mark.parametrize(
    ("destination", "part"),
    [
        ("javascript:alert(1)", "begins with https://"),
        ("//shop.example", "begins with https://"),
        ("https://", "begins with https://"),
        ("https://[", "begins with https://"),
        ("https://me@shop.example", "user name"),
        ("https://käse.example", "special letter"),
        ("https://shop.example/a b", "space"),
        ("", "empty"),
        ("https://shop.example/" + "x" * 1000, "at most 1000 characters"),
        ("https://s.example/l/abc", "host of the short links"),
        ("https://s.example./l/abc", "host of the short links"),
        ("http://S.Example:8443/l/abc", "host of the short links"),
        ("https://s.example\\l\\abc", "backslash"),
        ("https://s%2Eexample/l/abc", "backslash or a “%”"),
        ("https://s。example/l/abc", "special letter"),
    ],
)
def test_a_link_to_such_an_address_is_refused_with_a_sentence(host, destination, part):
    with pytest.raises(TemplateError, match=part):
        check_fields(parse_template(f'Hi {{{{ link("{destination}") }}}}'), attribute_keys=())


def test_a_text_has_at_most_three_links():
    assert parse_template(LINK * 3)
    with pytest.raises(TemplateError, match="at most 3 links; this has 10"):
        parse_template(LINK * 10)
    with pytest.raises(TemplateError, match="quotes"):
        parse_template("{{ link(https://shop.example) }}")


@pytest.mark.parametrize(
    "text",
    [
        "Hi {{ profile.first_name }}, ^{{ link('https://s.example/l/abc') }}",
        f"{LINK} ^{{{{ link('https://s.example/l/abc') }}}} {LINK}",
        f"{LINK * 3} ^{{{{ opt_out_link() }}}} {LINK}",
    ],
)
def test_the_error_is_at_the_link(host, text):
    """It stands at the mark: a link to our own host, or the first link above the limit."""
    with pytest.raises(TemplateError) as refused:
        check_fields(parse_template(text.replace("^", "")), attribute_keys=())
    assert refused.value.position == text.index("^")


def test_a_link_to_opt_out_needs_the_host():
    with pytest.raises(TemplateError, match="REGULARS_LINK_URL"):
        render_plain("{{ opt_out_link() }}")


def test_a_text_is_described_and_measured_with_its_links(host):
    assert describe_template(LINK) == "See [link to shop.example/sale?a=1|2]"
    assert compose(words(LINK), shop(), notice=None).body == f"Shop: See {HOST}/l/{SAMPLE_CODE}"
    # What a text or a value contains is never taken for a link.
    assert words("a\x02https://evil.example\x03") == "ahttps://evil.example"
    assert "\x02" not in render(parse_template("{{ profile.first_name }}"), {"profile.first_name": "\x02x\x03"})


def test_without_a_host_a_demo_has_short_links_on_the_server_itself(host):
    """Other organizations keep the host, or the address as it was written."""
    set_link_url(None, demo_url="http://127.0.0.1:8080")
    assert compose(words(LINK), shop(is_demo=True), notice=None).body.endswith(f"http://127.0.0.1:8080/l/{SAMPLE_CODE}")
    assert compose(words(LINK), shop(), notice=None).body.endswith(SHOP)
    set_link_url(HOST, demo_url="http://127.0.0.1:8080")
    assert compose(words(LINK), shop(is_demo=True), notice=None).body.endswith(f"{HOST}/l/{SAMPLE_CODE}")


def shop(*, is_demo: bool = False) -> Texting:
    return Texting(organization_id=new_uuid(), organization_name="Shop", secret=b"", is_demo=is_demo)


def test_without_a_host_links_stay_as_written(desk):
    desk.subscribe()
    desk.order(words(LINK))
    desk.turn()
    assert SHOP in desk.gateway.sent[0].body
    assert desk.sql("SELECT count(*) FROM links WHERE organization_id = %s") == [(0,)]


def test_recipients_of_one_step_share_a_link_and_other_steps_have_their_own(desk, host):
    desk.subscribe()
    campaign = new_uuid()
    for step in ("1", "1", "2"):
        desk.order(words(LINK), origin_kind=OriginKind.CAMPAIGN, origin_id=campaign, step=str(new_uuid()), link_origin=(campaign, step))  # fmt: skip
    bodies = desk.sql("SELECT body, parts FROM texts WHERE organization_id = %s ORDER BY id")
    first, second, other = [body.split()[2] for body, _ in bodies]
    assert first == second != other
    assert len(first) == len(f"{HOST}/l/{SAMPLE_CODE}")
    rows = desk.sql("SELECT url, step, personal_since, profile_id FROM links WHERE organization_id = %s ORDER BY step")
    assert rows == [(SHOP, "1", None, None), (SHOP, "2", None, None)]


def test_personal_links_have_a_code_for_each_text_and_destination(desk, host):
    ann = customer(desk, "ann")
    twice = words(LINK + ' or {{ link("https://other.example/") }}')
    origin = new_uuid()
    text_id = desk.order(twice, origin_id=origin, profile_id=ann, has_personal_links=True)
    # The same step again queues nothing, and leaves no links behind.
    desk.order(twice, origin_id=origin, profile_id=ann, has_personal_links=True)
    rows = desk.sql("SELECT url, text_id, profile_id FROM links WHERE organization_id = %s ORDER BY url")
    assert rows == [("https://other.example/", text_id, ann), (SHOP, text_id, ann)]


def test_a_link_leads_to_its_destination_without_a_referrer_or_a_cookie(desk, opened):
    desk.subscribe()
    desk.order(words(LINK))
    desk.turn()
    [link] = sent_links(desk)
    found = opened(link)
    assert (found.status_code, found.headers["location"]) == (302, SHOP.replace("|", "%7C"))
    assert (found.headers["cache-control"], found.headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert "set-cookie" not in found.headers
    assert opened(link.upper().replace("HTTPS://S.EXAMPLE/L", f"{HOST}/l")).status_code == 302


@pytest.mark.parametrize("code", ["zzzzzzzzzzzz", "a", "%00%00", "x" * 300, "éééééééééééé"])
def test_an_unknown_code_gets_a_plain_page(opened, code):
    found = opened(f"{HOST}/l/{code}")
    assert found.status_code == 404
    assert found.headers["cache-control"] == "no-store"


def test_while_the_database_is_away_the_page_shows_the_fallback_and_known_links_still_lead_on(
    desk, opened, monkeypatch
):
    desk.subscribe()
    desk.order(words(LINK))
    desk.turn()
    [known] = sent_links(desk)
    opened(known)

    # Connections are lost and no new one can be made.
    monkeypatch.setattr(desk.database, "url", "postgresql://nobody@127.0.0.1:1/nothing")
    desk.database._key_reads._close_idle()
    away = opened(f"{HOST}/l/zzzzzzzzzzzz")
    assert away.status_code == 503
    assert 'href="https://shop.example"' in away.text
    assert opened(known).status_code == 302


def test_opening_a_link_to_opt_out_changes_nothing_and_its_button_withdraws(desk, opened):
    customer(desk, "ann")
    desk.order(render_plain("Bye {{ opt_out_link() }}"))
    desk.turn()
    [link] = sent_links(desk)
    page = opened(link)
    assert page.status_code == 200
    assert "<button" in page.text
    assert desk.is_subscribed()
    assert opened(link, method="POST").status_code == 200
    assert not desk.is_subscribed()
    assert desk.may_text() == (False, "UNSUBSCRIBED")
    # A link to a shop has no such button.
    desk.order(words(LINK), number="+33612345679")
    [shop] = [f"{HOST}/l/{it[0]}" for it in desk.sql("SELECT (SELECT prefix FROM link_prefixes WHERE organization_id = %s) || code FROM links WHERE organization_id = %s AND url <> 'opt-out'", desk.organization_id)]  # fmt: skip
    assert opened(shop, method="POST").status_code == 404


def test_an_erasure_takes_the_person_from_their_links_which_still_lead_on(desk, opened):
    ann = customer(desk, "ann")
    desk.order(words(LINK), profile_id=ann, has_personal_links=True)
    desk.turn()
    [link] = sent_links(desk)
    opened(link)
    desk.runner.run(erase(desk, desk.texting.secret, ann))
    assert desk.sql("SELECT profile_id, text_id FROM links WHERE organization_id = %s") == [(None, None)]
    assert desk.sql("SELECT class, address, agent FROM clicks WHERE organization_id = %s") == [("machine", None, None)]
    assert opened(link).status_code == 302
    assert NUMBER not in str(desk.sql("SELECT links::text FROM links WHERE organization_id = %s"))
