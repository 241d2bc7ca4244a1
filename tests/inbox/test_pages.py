"""Messages, the inbox and the simulator in the web application."""

import html
import re

import psycopg
import pytest
from tests.support import samples
from tests.support.client import Api
from tests.support.drain_queues import drain_queues
from tests.support.tenant import Tenant, new_tenant
from tests.support.texts import open_at_any_hour, send_text
from tests.support.visitor import Visitor, sign_in_now

from regulars.kit.ids import REPLY, TEXT, new_uuid
from regulars.texts.model import SkipReason
from regulars.texts.settings.model import Cap, SendHoursRule, Simulation
from regulars.web.access import Role

WORDS = "Bonjour, les soldes commencent demain"


class Desk:
    """An organization with one subscribed number."""

    def __init__(self, url: str, tenant: Tenant, api: Api, become) -> None:
        self.url, self.tenant, self.api, self.become = url, tenant, api, become
        self.number = samples.phone()
        self.owner: Visitor = become(Role.OWNER)
        open_at_any_hour(url, tenant.organization_id)
        self.opt_in(self.number)

    def opt_in(self, number: str, **more) -> dict:
        body = {"phone_number": number, "consent_source": "WEBSITE", "consented_at": samples.ago(days=1), **more}
        return self.api.post("/v1/subscriptions/opt-in", body).json()

    def send(self, words: str = WORDS, *, number: str | None = None) -> str:
        return TEXT.encode(send_text(self.url, self.tenant.organization_id, number or self.number, words))

    def work(self) -> None:
        drain_queues(self.url, self.tenant.organization_id)

    def phone(self, visitor: Visitor | None = None) -> str:
        """The page of the simulator that shows the number."""
        return (visitor or self.owner).get(f"/simulator/{self.number}").text

    def reply(self, words: str) -> str:
        """The path of the phone after the reply."""
        answer = self.owner.post(f"/simulator/{self.number}/reply", text=words)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"].partition("#")[0]

    def count_answers(self) -> int:
        """How many answers the simulator accepted."""
        with psycopg.connect(self.url) as connection:
            [(answers,)] = connection.execute(
                "SELECT count(*) FROM simulated_texts JOIN texts ON texts.id = text_id"
                " WHERE texts.organization_id = %s AND origin_kind = 'answer'",
                (self.tenant.organization_id,),
            )
        return answers

    def inbox(self) -> list[str]:
        return re.findall(r"/messages/inbox/(rpl_\w+)\"", self.owner.get("/messages/inbox").text)


@pytest.fixture
def desk(api_database_url, tenant, api, visitor_as) -> Desk:
    return Desk(api_database_url, tenant, api, visitor_as)


def test_a_text_is_on_the_phone_in_the_list_and_on_a_page_of_its_own(desk):
    text = desk.send()
    assert WORDS in desk.phone()
    assert WORDS in desk.owner.get("/messages").text
    page = desk.owner.get(f"/messages/{text}").text
    assert "The provider has accepted it." in page
    assert f"Corvelle: {WORDS}" in page


def test_a_skip_says_why_and_can_be_filtered_by(desk):
    stranger = samples.phone()
    desk.send("Not for you", number=stranger)
    desk.send()
    page = desk.owner.get("/messages", reason="no_consent").text
    assert "Not for you" in page
    assert WORDS not in page
    assert "No consent" in page
    assert "Not for you" not in desk.owner.get("/messages", state="sent").text
    assert "Not for you" not in desk.owner.get("/messages", direction="received").text
    assert "No message matches" in desk.owner.get("/messages", **{"from": "2040-01-01"}).text
    assert WORDS in desk.owner.get("/messages", to="2040-01-01").text


def test_a_text_over_the_cap_names_the_cap_the_text_that_counted_and_the_next_moment(desk):
    first, second = desk.send(), desk.send("Too soon")
    page = desk.owner.get(f"/messages/{second}").text
    assert "The cap of 1 text in 24 hours was full on" in page
    assert "The caps allow the next text from" in page
    assert re.search(rf'/messages/{first}">Text of [^<]+: Written by your team<', page)
    assert "/settings/texts/rules" in page
    assert "<dt>Why not sent</dt><dd>Frequency cap</dd>" in page
    assert "Passed all checks" not in page
    assert "<dt>Expires</dt>" not in page
    assert "<dt>Passed all checks</dt>" in desk.owner.get(f"/messages/{first}").text
    open_at_any_hour(desk.url, desk.tenant.organization_id, caps=(Cap(0, 48), Cap(1, 24)))
    page = desk.owner.get(f"/messages/{second}").text
    assert "so another cap may have applied" in page
    assert "A cap of 0 texts allows no text until you change it." in page
    open_at_any_hour(desk.url, desk.tenant.organization_id, caps=(Cap(5, 24),))
    page = desk.owner.get(f"/messages/{second}").text
    assert "Today&#39;s caps were not full then." in page
    assert "The caps allow a text to this number now, within sending hours." in page


def test_other_skips_say_what_the_check_found_and_where_to_change_it(desk):
    unknown = desk.send(number=samples.phone())
    assert "This number never opted in." in desk.owner.get(f"/messages/{unknown}").text
    desk.reply("STOP")
    withdrawn = desk.send()
    page = desk.owner.get(f"/messages/{withdrawn}").text
    assert "The number opted out on" in page
    assert re.search(r'/consent/numbers/sub_\w+">Open consent of this number', page)
    other = samples.phone()
    desk.opt_in(other)
    closed = SendHoursRule(days=(None,) * 7)
    open_at_any_hour(desk.url, desk.tenant.organization_id, rules={"FR": closed})
    page = desk.owner.get(f"/messages/{desk.send(number=other)}").text
    assert "Sending hours of France: Mon to Sun closed; closed on public holidays." in page
    assert '/settings/texts/countries/FR">Change rules of France' in page


# What the page of a text says for each reason, and where it leads; the frequency cap has a test of its own.
EXPLANATIONS = {
    "no_consent": ("The number may be texted now. It opted in on", "Open consent of this number"),
    "not_linked": ("belonged to another customer when the text was checked", "Open the customer who has the number"),
    "suppressed": ("It still waits for a decision of your team.", "Decide about the reply"),
    "hours": ("Sending hours of France: ", "Change rules of France"),
    "expired": ("and could be sent until", "Open text settings"),
    "no_country": ("The number belongs to no country that we know.", None),
    "country_not_set": ("The rules of France were changed since", "Change rules of France"),
    "sender_refused": ("texts can be sent there now.", "Change rules of France"),
    "missing_value profile.nickname": ("Variable without a value: ", None),
    "too_long": ("It would have more than ten SMS parts.", None),
    "left": ("The customer left the journey", None),
    "cancelled": ("The campaign was cancelled", None),
    "global_holdout": ("The customer gets no journey texts in this quarter", "Open global holdout"),
    "refused: 21610 No": ("Message of the provider: ", "Open text settings"),
    "not_reached": ("Several attempts to connect to the provider failed.", "Open text settings"),
    "undelivered 30003": ("Message of the provider: ", None),
}


def test_every_reason_is_explained_on_the_page_of_the_text(desk):
    assert {re.match(r"\w+", reason)[0] for reason in EXPLANATIONS} == set(SkipReason) - {SkipReason.CAP}
    desk.api.post("/v1/profiles", {"external_id": "C-now"})
    desk.opt_in(desk.number, profile_id="C-now", consented_at=samples.ago(hours=1))
    path = f"/messages/{desk.send()}"
    desk.reply("Arrêtez-vous à Noël ?")
    with psycopg.connect(desk.url, autocommit=True) as connection:

        def show(reason: str) -> str:
            state = "failed" if reason.startswith(("refused", "not_reached", "undelivered")) else "skipped"
            connection.execute(
                "UPDATE texts SET state = %s, reason = %s WHERE organization_id = %s AND origin_kind = 'person'",
                (state, reason, desk.tenant.organization_id),
            )
            return " ".join(desk.owner.get(path).text.split())

        for reason, (sentence, button) in EXPLANATIONS.items():
            page = show(reason)
            assert sentence in page, reason
            assert "The provider could not deliver it." not in page, reason
            card = page.partition('id="wt"')[2].partition("</section>")[0]
            buttons = re.findall(r'class="button is-small"[^>]*>([^<]*)<', card)
            assert buttons == [button] * (button is not None), reason
        conversation = re.search(r"/messages/numbers/[0-9a-f]+", page)[0]
        assert "· Not delivered" in desk.owner.get(conversation).text
        desk.reply("STOP")
        assert "The reply needs no decision any more." in show("suppressed")


def test_a_state_that_most_texts_have_is_searched_further_back(desk):
    desk.send()
    with psycopg.connect(desk.url, autocommit=True) as connection:
        organization_id = desk.tenant.organization_id
        connection.execute("UPDATE texts SET state = 'delivered' WHERE organization_id = %s", (organization_id,))
        connection.execute(
            "INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, body, parts, state, expires_at,"
            " created_at) SELECT %s, id, 'person', id, '1', 'x', 1, 'sent', now(), now() FROM unnest(%s::uuid[]) AS id",
            (organization_id, [new_uuid() for _ in range(10_000)]),
        )
    assert "No message matches" in desk.owner.get("/messages", state="failed").text
    page = desk.owner.get("/messages", state="delivered").text
    assert "among the 10,000 texts searched." in page
    further = html.unescape(re.search(r'href="([^"]+)">Search further back', page)[1])
    found = desk.owner.get("//" + further.removeprefix("/")).text
    assert WORDS in found
    assert "further back" not in found


def test_stop_on_the_phone_withdraws_and_shows_the_ledger_entry_and_the_confirmation(desk):
    desk.send()
    here = desk.reply("STOP")
    desk.work()
    page = desk.owner.get("//" + here.removeprefix("/")).text
    assert "Opted out: entry 2 of this number" in page
    assert "Confirmation: sent" in page
    assert "Vous ne recevrez plus de SMS de notre part." in page
    assert "Opted out at" in page
    found = desk.api.post("/v1/subscriptions/check", {"items": [{"phone_number": desk.number}]}).json()
    assert found["results"][0]["reason"] == "UNSUBSCRIBED"
    assert desk.number.lstrip("+") not in here


def test_the_list_of_phones_keeps_the_name_after_a_stop(desk):
    number = samples.phone()
    desk.api.post("/v1/profiles", {"external_id": "C-9", "first_name": "Odile", "last_name": "Fictive"})
    desk.opt_in(number, profile_id="C-9")
    desk.send(number=number)
    desk.work()
    desk.owner.post(f"/simulator/{number}/reply", text="STOP")
    desk.work()
    newest = desk.owner.get("/simulator").text.partition('<ul class="threads"')[2].partition("</a>")[0]
    assert "Odile Fictive" in newest


def test_an_unknown_number_can_write_too(desk):
    stranger = samples.phone()
    assert "Nothing on this phone yet." in desk.owner.get(f"/simulator/{stranger}").text
    answer = desk.owner.post(f"/simulator/{stranger}/reply", text="STOP")
    page = desk.owner.get("//" + answer.headers["location"].removeprefix("/").partition("#")[0]).text
    assert "Opted out: entry 1 of this number" in page


def test_the_simulator_finds_a_phone_by_its_number_and_refuses_what_is_none(desk):
    spaced = f"{desk.number[:3]} {desk.number[3:6]} {desk.number[6:]}"
    found = desk.owner.get("/simulator", q=spaced)
    assert found.headers["location"].endswith(desk.number.replace("+", "%2B"))
    refused = desk.owner.get("/simulator", q="pizza")
    assert refused.status_code == 400
    assert "That did not work." in refused.text
    assert desk.owner.get("/simulator/nobody").status_code == 404
    assert desk.owner.post(f"/simulator/{desk.number}/reply", text="  ").status_code == 400
    assert desk.owner.post(f"/simulator/{desk.number}/reply", text="x" * 2001).status_code == 400


def test_a_reply_without_a_keyword_waits_for_a_person_who_withdraws(desk):
    desk.reply("Arrêtez de m'écrire")
    assert '<span class="count">1' in desk.owner.get("/").text
    assert "This number gets no texts until" in desk.phone()
    [reply] = set(desk.inbox())
    asked = desk.owner.get(f"/messages/inbox/{reply}/withdraw")
    assert "Only the customer can undo it" in asked.text
    desk.owner.post(f"/messages/inbox/{reply}/withdraw")
    assert desk.inbox() == []
    assert "Opted out" in desk.phone()
    again = desk.owner.post(f"/messages/inbox/{reply}/not-a-withdrawal")
    assert again.status_code == 400
    assert "This reply was decided before" in again.text


def test_a_reply_that_is_no_withdrawal_is_answered(desk):
    desk.reply("Arrêtez-vous à Noël ?")
    [reply] = set(desk.inbox())
    desk.owner.post(f"/messages/inbox/{reply}/not-a-withdrawal")
    form = {"words": "Oui, du 24 au 26.", "once": str(new_uuid())}
    for _ in range(2):
        assert desk.owner.post(f"/messages/inbox/{reply}/answer", **form).status_code == 303
    desk.work()
    assert "Oui, du 24 au 26." in desk.phone()
    assert desk.count_answers() == 1
    page = desk.owner.get(f"/messages/inbox/{reply}").text
    assert "Kept opted in" in page
    # The decision and the answer each name who made them.
    assert len(re.findall(r"by [^ ]+@[^ ]+</span>", page)) == 2
    assert desk.owner.post(f"/messages/inbox/{reply}/answer", words="Hi {{ profile.first_name }}").status_code == 400
    assert desk.owner.post(f"/messages/inbox/{reply}/answer", words=" ").status_code == 400


def test_an_answer_waits_in_the_inbox_and_one_that_the_cap_stops_may_be_sent_anyway(desk):
    """Closed until tomorrow, then stopped by a cap because it was written after 72 hours, then sent."""
    desk.reply("A quelle heure ouvrez-vous ?")
    [reply] = set(desk.inbox())
    path = f"/messages/inbox/{reply}"
    with psycopg.connect(desk.url, autocommit=True) as connection:
        ours = (desk.tenant.organization_id,)
        connection.execute("UPDATE replies SET received_at = now() - interval '73 h' WHERE organization_id = %s", ours)
        assert desk.owner.post(f"{path}/answer", words="A 9 h.", once=str(new_uuid())).status_code == 303
        connection.execute(
            "UPDATE texts SET due_at = now() + interval '1 day' WHERE organization_id = %s AND state = 'queued'", ours
        )
        for page in ("/messages/inbox", path):
            assert re.search(r"Waiting until \d+ \w+, \d\d:\d\d", desk.owner.get(page).text), page
        connection.execute("UPDATE texts SET due_at = created_at WHERE organization_id = %s AND state = 'queued'", ours)
    open_at_any_hour(desk.url, desk.tenant.organization_id, caps=(Cap(0, 24),))
    desk.work()
    assert desk.inbox() == [reply]
    assert "Not sent: frequency cap" in desk.owner.get("/messages/inbox").text
    page = desk.owner.get(path).text
    action = re.search(r'action="[^"]*?(/messages/inbox/[^"]+/send-anyway)"', page)[1]
    assert "Send anyway" in page
    assert desk.owner.post(action).status_code == 303
    assert "past the frequency cap" in desk.owner.get("/settings/audit").text
    desk.work()
    assert desk.inbox() == []
    assert "Answered" in desk.owner.get(path).text
    again = desk.owner.post(action)
    assert (again.status_code, desk.count_answers()) == (400, 1)
    stranger = re.sub("/answers/[^/]+/", f"/answers/{TEXT.encode(new_uuid())}/", action)
    assert desk.owner.post(stranger).status_code == 404


def test_a_keyword_has_no_form_to_answer_it(desk):
    desk.reply("HELP")
    with psycopg.connect(desk.url) as connection:
        [(reply_id,)] = connection.execute(
            "SELECT id FROM replies WHERE organization_id = %s", (desk.tenant.organization_id,)
        )
    path = f"/messages/inbox/{REPLY.encode(reply_id)}"
    assert "Send answer" not in desk.owner.get(path).text
    refused = desk.owner.post(f"{path}/answer", words="Hello", once=str(new_uuid()))
    assert refused.status_code == 400
    assert "there is nothing to answer" in refused.text


def test_a_text_of_unknown_fate_is_sent_again_only_by_a_person(desk):
    open_at_any_hour(desk.url, desk.tenant.organization_id, simulation=Simulation(loses=1.0))
    text = desk.send()
    assert "May have been sent" in desk.owner.get(f"/messages/{text}").text
    assert WORDS not in re.findall(r'id="talk".*?phone-reply', desk.phone(), re.DOTALL)[0]
    assert "gets it twice" in desk.owner.get(f"/messages/{text}/resend").text
    open_at_any_hour(desk.url, desk.tenant.organization_id)
    assert desk.owner.post(f"/messages/{text}/resend").status_code == 303
    desk.work()
    again = desk.owner.post(f"/messages/{text}/resend")
    assert again.status_code == 400
    assert "only one that is unknown or failed" in again.text


def test_a_number_goes_to_its_conversation_and_texts_are_exported(desk):
    desk.send("=cmd()")
    desk.reply("Merci")
    found = desk.owner.get("/messages", q=desk.number)
    page = desk.owner.get("//" + found.headers["location"].removeprefix("/")).text
    assert "=cmd()" in page
    assert "Merci" in page
    exported = desk.owner.get("/messages.csv").text.splitlines()
    assert len(exported) == 3
    assert exported[0].startswith("id,direction,at,number")
    assert "received" in exported[1]
    assert desk.number in exported[2]


def test_pages_go_through_a_long_list_in_both_directions(desk):
    for n in range(3):
        desk.reply(f"Question {n}")
    for n in range(52):
        desk.reply(f"Again {n}")
    first = desk.owner.get("/messages").text
    following = re.search(r'rel="next" href="([^"]+)"', first)[1].replace("&amp;", "&")
    second = desk.owner.get("//" + following.removeprefix("/")).text
    assert "Question 0" in second
    assert "Question 0" not in first
    back = re.search(r'rel="prev" href="([^"]+)"', second)[1].replace("&amp;", "&")
    assert "Again 51" in desk.owner.get("//" + back.removeprefix("/")).text
    inbox = desk.owner.get("/messages/inbox").text
    assert "Question 0" in inbox
    following = re.search(r'rel="next" href="([^"]+)"', inbox)[1].replace("&amp;", "&")
    assert "Again 51" in desk.owner.get("//" + following.removeprefix("/")).text


def test_another_organization_sees_nothing_of_it(desk, api_database_url):
    text = desk.send()
    here = desk.reply("Bonjour")
    [reply] = set(desk.inbox())
    other = new_tenant(api_database_url)
    stranger = Visitor(
        desk.owner.http, desk.owner.base_url, sign_in_now(api_database_url, other.organization_id, Role.OWNER)
    )
    number = here.rpartition("/")[2]
    for path in (
        f"/messages/{text}",
        f"/messages/inbox/{reply}",
        f"/messages/numbers/{number}",
        f"/simulator/{number}",
    ):
        assert stranger.get(path).status_code == 404, path
    assert stranger.post(f"/messages/inbox/{reply}/withdraw").status_code == 404
    assert stranger.post(f"/messages/{text}/resend").status_code == 404
    assert WORDS not in stranger.get("/messages").text


def test_what_is_no_id_is_no_page(desk):
    for path in ["/messages/x", "/messages/inbox/x", "/messages/numbers/zz", "/messages/numbers/aa", "/simulator/%2B1"]:
        assert desk.owner.get(path).status_code == 404, path
