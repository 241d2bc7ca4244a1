"""Looking at consent: the question about a date, the certificate, the list and the figures."""

import hashlib
import hmac
import json
from datetime import timedelta

import msgspec
from tests.consent.desk import DAY, MINUTE, NOW, NUMBER, PROOF

from regulars.consent import find
from regulars.consent.certificate import certificate_as_json, make_certificate
from regulars.consent.figures import count_figures, read_figures
from regulars.consent.find import list_newest, search_subscription
from regulars.consent.history import find_consent_at
from regulars.kit.clock import format_timestamp
from regulars.kit.ids import SUBSCRIPTION
from regulars.kit.keyset import PageRequest
from regulars.stores.model import StoreUpsert
from regulars.stores.upsert import upsert_stores


def ask(desk, subscription, at, *, now=NOW + 60 * DAY):
    return desk.do(lambda tx: find_consent_at(tx, desk.organization_id, subscription.id, at), now=now)


def test_before_the_first_consent_the_customer_may_not_be_texted(desk):
    subscription = desk.opt_in(at=NOW - DAY).subscription
    answer = ask(desk, subscription, NOW - 2 * DAY)
    assert (answer.recorded.may_text, answer.recorded.entry) == (False, None)
    assert (answer.known.may_text, answer.differs) == (False, False)
    assert answer.next.sequence == 1


def test_the_last_event_before_the_moment_decides_and_is_named(desk):
    subscription = desk.opt_in(at=NOW, now=NOW).subscription
    desk.opt_out(now=NOW + 10 * DAY)
    desk.opt_in(at=NOW + 20 * DAY, now=NOW + 20 * DAY)
    between = ask(desk, subscription, NOW + 5 * DAY)
    assert (between.known.may_text, between.known.entry.sequence, between.next.sequence) == (True, 1, 2)
    withdrawn = ask(desk, subscription, NOW + 15 * DAY)
    assert (withdrawn.known.may_text, withdrawn.known.entry.sequence, withdrawn.next.sequence) == (False, 2, 3)
    assert ask(desk, subscription, NOW + 30 * DAY).known.may_text
    assert not any(ask(desk, subscription, NOW + n * DAY).differs for n in (0, 5, 15, 30))


def test_the_instant_of_a_withdrawal_is_already_no(desk):
    subscription = desk.opt_in(at=NOW, now=NOW).subscription
    desk.opt_out(at=NOW + DAY, now=NOW + DAY)
    assert not ask(desk, subscription, NOW + DAY).known.may_text
    assert ask(desk, subscription, NOW + DAY - timedelta(milliseconds=1)).known.may_text


def test_a_withdrawal_that_arrived_late_gives_two_answers(desk):
    subscription = desk.opt_in(at=NOW, now=NOW).subscription
    # Said on day 3, sent in on day 10.
    desk.opt_out(at=NOW + 3 * DAY, now=NOW + 10 * DAY)
    answer = ask(desk, subscription, NOW + 5 * DAY)
    assert answer.differs
    assert (answer.recorded.may_text, answer.recorded.entry.sequence) == (True, 1)
    assert (answer.known.may_text, answer.known.entry.sequence) == (False, 2)
    assert not ask(desk, subscription, NOW + 11 * DAY).differs


def test_a_consent_that_arrived_late_gives_two_answers_too(desk):
    subscription = desk.opt_in(at=NOW, now=NOW + 7 * DAY).subscription
    answer = ask(desk, subscription, NOW + DAY)
    assert (answer.recorded.may_text, answer.known.may_text) == (False, True)


def test_a_certificate_can_be_checked_without_us(desk):
    subscription = desk.opt_in(proof=PROOF).subscription
    desk.opt_out(now=NOW + DAY)
    certificate = desk.do(
        lambda tx: make_certificate(tx, desk.organization_id, subscription.id, at=NOW + MINUTE), now=NOW + 2 * DAY
    )
    document = json.loads(msgspec.json.encode(certificate_as_json(certificate, organization_name="Maison Corvelle")))
    assert document["subscription"]["phone_number"] == NUMBER
    assert document["question"]["as_known_now"] == {"may_text": True, "decided_by_sequence": 1}
    assert document["verification"]["is_whole"] is True
    previous = hashlib.sha256(
        b"regulars consent ledger\0" + desk.organization_id.bytes + subscription.id.bytes
    ).hexdigest()
    for entry in document["ledger"]:
        assert entry["previous_hash"] == previous
        commitment = hmac.digest(bytes.fromhex(entry["salt"]), entry["payload"].encode(), "sha256").hex()
        assert entry["commitment"] == commitment
        names = ("previous_hash", "sequence", "kind", "outcome", "effective_at", "claimed_at", "received_at")
        hashed = json.dumps([*(entry[name] for name in names), entry["commitment"]], separators=(",", ":"))
        previous = hashlib.sha256(hashed.encode()).hexdigest()
        assert entry["hash"] == previous


def test_there_is_no_certificate_of_another_organization_s_number(desk):
    subscription = desk.opt_in().subscription
    neighbour = desk.neighbour()
    made = neighbour.do(lambda tx: make_certificate(tx, neighbour.organization_id, subscription.id, at=None))
    assert made is None


def test_the_list_is_newest_first_and_filtered(desk):
    first = desk.opt_in("+33612345601", proof=PROOF).subscription
    second = desk.opt_in("+33612345602", source="WEBSITE").subscription
    desk.opt_out("+33612345601")

    def ids(**options):
        found = desk.do(lambda tx: list_newest(tx, desk.organization_id, PageRequest(10), **options))
        return [line.id for line in found]

    assert ids() == [second.id, first.id]
    assert ids(status="UNSUBSCRIBED") == [first.id]
    assert ids(source="WEBSITE") == ids(is_weak=True) == [second.id]
    after = desk.do(lambda tx: list_newest(tx, desk.organization_id, PageRequest(10, (str(second.id),))))
    assert [line.id for line in after] == [first.id]


def test_a_rare_filter_looks_at_a_bounded_stretch_and_says_where_it_ended(desk, monkeypatch):
    monkeypatch.setattr(find, "ROWS_SCANNED_MAX", 2)
    rare = desk.opt_in("+33612345601", source="EVENT").subscription
    others = [desk.opt_in(f"+3361234560{n}").subscription for n in range(2, 6)]

    def look(beyond):
        return desk.do(lambda tx: list_newest(tx, desk.organization_id, PageRequest(10, beyond), source="EVENT"))

    first = look(None)
    assert (first, first.end_position) == ([], (str(others[2].id),))
    second = look(first.end_position)
    assert (second, second.end_position) == ([], (str(others[0].id),))
    third = look(second.end_position)
    assert ([line.id for line in third], third.end_position) == ([rare.id], None)


def test_a_number_or_an_id_means_one_subscription(desk):
    subscription = desk.opt_in().subscription

    def search(text, *, sees_personal=True):
        found = desk.do(
            lambda tx: search_subscription(
                tx, desk.organization_id, text, secret=desk.secret, sees_personal=sees_personal
            )
        )
        return None if found is None else found.id

    assert search(NUMBER) == search("+33 6 12 34 56 78") == search(SUBSCRIPTION.encode(subscription.id))
    assert search(NUMBER, sees_personal=False) is None
    assert search("nonsense") is search("+33600000000") is None


def test_figures_are_counted_on_the_first_request_of_a_page_and_then_stored(desk):
    desk.opt_in("+33612345601", proof=PROOF, at=NOW, now=NOW)
    desk.opt_in("+33612345602", source="WEBSITE", at=NOW, now=NOW)
    desk.opt_in("+33612345603", at=NOW, now=NOW)
    desk.opt_out("+33612345603")

    def read():
        return desk.runner.run(read_figures(desk.database, desk.organization_id, time_zone="Europe/Paris"))

    assert read() == read()
    assert (read().figures, read().is_being_counted) == (None, True)
    desk.runner.run(count_figures(desk.database, desk.organization_id))
    counted = read()
    assert not counted.is_being_counted
    figures = counted.figures
    assert (figures.subscribed, figures.withdrawn, figures.do_not_contact) == (2, 1, 0)
    assert figures.weak_proofs == 1
    assert sorted(figures.sources) == [("LOYALTY_PROGRAM", 1), ("WEBSITE", 1)]
    # The dates of the test are behind the weeks that are counted, or not, by the day it runs on.
    assert all(change.opt_ins + change.withdrawals for change in figures.changes)
    assert format_timestamp(counted.counted_at)


def test_consents_are_counted_at_the_store_they_name(desk):
    store = desk.do(lambda tx: upsert_stores(tx, desk.organization_id, [StoreUpsert(external_id="LYON")]), now=NOW)[
        0
    ].store
    for number in ("+33612345601", "+33612345602"):
        desk.opt_in(number, store="LYON")
    desk.opt_in("+33612345603")
    desk.runner.run(read_figures(desk.database, desk.organization_id, time_zone="UTC"))
    desk.runner.run(count_figures(desk.database, desk.organization_id))
    counted = desk.runner.run(read_figures(desk.database, desk.organization_id, time_zone="UTC"))
    assert [(one.store_id, one.subscribed) for one in counted.figures.stores] == [(store.id, 2)]
