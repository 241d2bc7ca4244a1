"""What erasure leaves: a number that no user can read and that still must not be contacted."""

import asyncio

from tests.consent.desk import DAY, MINUTE, NOW, NUMBER, PROOF, Desk, consent
from tests.support.waiting import until_locked

from regulars.consent import chain
from regulars.consent.find import list_subscriptions
from regulars.consent.ledger import OptInResult
from regulars.consent.model import Outcome, Status, SubscriptionState
from regulars.consent.opt_in import opt_in
from regulars.consent.personal import erase_consent
from regulars.kit.errors import ApiError
from regulars.kit.ids import ByExternalId
from regulars.profiles.personal import delete_profiles, lock_profiles_to_erase

OTHER_NUMBER = "+447400123456"
LATER = NOW + DAY


def _erased(desk: Desk):
    """A profile with a linked number and one of its own, erased at NOW; gives the subscription of the linked number."""
    profile_id = desk.profile("CUST-1", phone_number=OTHER_NUMBER)
    subscription = desk.opt_in(proof=PROOF, profile="CUST-1", at=NOW - DAY).subscription
    desk.erase(profile_id, phone_number=OTHER_NUMBER)
    return subscription


def test_linked_and_own_numbers_become_do_not_contact_entries_dated_at_the_erasure(desk: Desk) -> None:
    subscription = _erased(desk)
    rows = desk.sql(
        "SELECT id, phone_number, profile_id, status, consent_source, consented_at, terms_url, terms_version,"
        " source_text, latest_opt_out_at FROM subscriptions WHERE organization_id = %s ORDER BY id"
    )
    assert len(rows) == 2
    assert rows[0][0] == subscription.id
    assert {row[1:] for row in rows} == {(None, None, "UNSUBSCRIBED", None, None, None, None, None, NOW)}


def test_payloads_are_deleted_and_the_chain_still_verifies(desk: Desk) -> None:
    subscription = _erased(desk)
    payloads = [entry.payload for entry in desk.entries(subscription.id)]
    assert payloads == [None, '{"kind":"ERASURE"}']
    verification = desk.verify(subscription.id)
    assert (verification.entries, verification.payloads_erased, verification.fault) == (2, 1, None)


def test_no_table_of_consent_holds_the_number_or_the_words_any_more(desk: Desk) -> None:
    profile_id = desk.profile("CUST-1", phone_number=OTHER_NUMBER)
    desk.opt_in(proof=PROOF, profile="CUST-1", at=NOW - DAY)
    desk.opt_out(reason="Moved to Lyon")
    desk.erase(profile_id, phone_number=OTHER_NUMBER, now=LATER)
    # Old files keep coming after the erasure.
    desk.opt_in(proof=PROOF, at=NOW - DAY, now=LATER + MINUTE)
    desk.opt_out(reason="Moved to Lyon", now=LATER + 2 * MINUTE)
    stored = "".join(
        str(desk.sql(query))
        for query in (
            "SELECT row_to_json(it)::text FROM subscriptions AS it WHERE organization_id = %s",
            "SELECT row_to_json(it)::text FROM consent_ledger AS it WHERE organization_id = %s",
            "SELECT row_to_json(it)::text FROM consent_payloads AS it WHERE organization_id = %s",
        )
    )
    assert "ERASURE" in stored
    for personal in (NUMBER[1:], OTHER_NUMBER[1:], "Lyon", "shop.example", "Offers", str(profile_id)):
        assert personal not in stored


def test_an_opt_in_dated_before_the_erasure_is_superseded_and_shows_no_profile_and_no_consent(desk: Desk) -> None:
    subscription = _erased(desk)
    desk.profile("CUST-2", phone_number=NUMBER)
    recorded = desk.opt_in(proof=PROOF, at=NOW - MINUTE, now=LATER)
    assert recorded.outcome is Outcome.SUPERSEDED
    assert recorded.subscription.id == subscription.id
    assert recorded.subscription.profile is None
    # The answer names the number, because the caller did; nothing else does.
    assert recorded.subscription.state == SubscriptionState(
        phone_number=NUMBER, latest_opt_in_at=NOW - MINUTE, latest_opt_out_at=NOW
    )
    assert desk.find(subscription.id).state.phone_number is None


def test_an_opt_out_after_the_erasure_leaves_the_number_a_hash(desk: Desk) -> None:
    subscription = _erased(desk)
    withdrawn = desk.opt_out(now=LATER)
    assert withdrawn.outcome is Outcome.ALREADY_UNSUBSCRIBED
    assert withdrawn.subscription.state.unsubscribed_at == LATER
    assert desk.find(subscription.id).state.phone_number is None


def test_an_opt_in_dated_after_the_erasure_resubscribes_and_fills_the_number_again(desk: Desk) -> None:
    subscription = _erased(desk)
    recorded = desk.opt_in(at=NOW + MINUTE, now=LATER)
    assert (recorded.outcome, recorded.automation) == (Outcome.RESUBSCRIBED, "eligible")
    stored = desk.find(subscription.id)
    assert (stored.state.status, stored.state.phone_number, stored.state.proof) == (Status.SUBSCRIBED, NUMBER, None)
    assert desk.verify(subscription.id).fault is None


def test_an_erased_number_is_still_found_by_a_caller_who_knows_it(desk: Desk) -> None:
    subscription = _erased(desk)
    found = desk.do(
        lambda tx: list_subscriptions(tx, desk.organization_id, secret=desk.secret, phone_number=NUMBER, limit=10)
    )
    assert [it.id for it in found] == [subscription.id]


def test_erasure_of_a_profile_without_any_number_touches_no_other_customer(desk: Desk) -> None:
    other = desk.opt_in(proof=PROOF).subscription
    profile_id = desk.profile("CUST-1")
    assert desk.erase(profile_id) == []
    assert desk.erase(profile_id, phone_number="not a number") == []
    assert desk.find(other.id) == other


def test_an_own_number_is_withdrawn_unless_it_is_anothers_subscription(desk: Desk) -> None:
    erased, other = desk.profile("CUST-1", phone_number=NUMBER), desk.profile("CUST-2", phone_number=NUMBER)
    anothers = desk.opt_in(profile="CUST-2", proof=PROOF).subscription
    nobodys = desk.opt_in(OTHER_NUMBER, proof=PROOF).subscription
    assert desk.erase(erased, phone_number=NUMBER) == []
    assert desk.find(anothers.id) == anothers
    assert desk.erase(erased, phone_number=OTHER_NUMBER) == [nobodys.id]
    assert desk.find(nobodys.id).state.status is Status.UNSUBSCRIBED
    assert desk.erase_all({erased: NUMBER, other: NUMBER}) == [anothers.id]


def test_erasure_deletes_what_was_said_about_the_person_on_a_number_that_belongs_to_another_now(desk: Desk) -> None:
    first = desk.profile("CUST-1")
    second = desk.profile("CUST-2")
    subscription = desk.opt_in(proof=PROOF, profile="CUST-1", at=NOW - DAY).subscription
    desk.opt_in(profile="CUST-2", at=NOW - MINUTE)
    assert desk.erase(first) == []
    payloads = [entry.payload is None for entry in desk.entries(subscription.id)]
    assert payloads == [True, False]
    state = desk.find(subscription.id).state
    assert (state.status, state.profile_id, state.phone_number) == (Status.SUBSCRIBED, second, NUMBER)
    assert desk.verify(subscription.id).fault is None


def test_no_consent_links_to_a_profile_that_is_erased_at_the_same_time(desk: Desk) -> None:
    profile_id = desk.profile("CUST-1", phone_number=OTHER_NUMBER)
    numbers = [f"+3361234567{digit}" for digit in range(6)]

    async def consent_to(number: str) -> OptInResult | ApiError:
        async with desk.database.transaction() as tx:
            given = [consent(number, profile="CUST-1")]
            return (await opt_in(tx, desk.organization_id, given, secret=desk.secret))[0]

    async def race() -> list[OptInResult | ApiError]:
        early = [await consent_to(number) for number in numbers[:3]]
        async with desk.database.transaction() as tx:
            locked = await lock_profiles_to_erase(tx, desk.organization_id, [ByExternalId("CUST-1")])
            late = [asyncio.create_task(consent_to(number)) for number in numbers[3:]]
            await until_locked(desk.database, count=len(late))
            await erase_consent(tx, desk.organization_id, {profile_id: OTHER_NUMBER}, secret=desk.secret)
            await delete_profiles(tx, desk.organization_id, list(locked.values()))
        return [*early, *await asyncio.gather(*late)]

    results = desk.runner.run(race())
    assert [getattr(result, "code", "recorded") for result in results] == ["recorded"] * 3 + ["PROFILE_NOT_FOUND"] * 3
    rows = desk.sql("SELECT status, phone_number, profile_id FROM subscriptions WHERE organization_id = %s")
    assert rows == [("UNSUBSCRIBED", None, None)] * 4
    assert desk.sql("SELECT sequence FROM consent_payloads WHERE organization_id = %s AND profile_id IS NOT NULL") == []


def test_several_people_are_erased_at_once_each_number_once(desk: Desk) -> None:
    """One's own number is linked to the other, and both have the same number of their own."""
    first = desk.profile("CUST-1", phone_number=OTHER_NUMBER)
    second = desk.profile("CUST-2", phone_number=OTHER_NUMBER)
    stranger = desk.opt_in("+12125550100").subscription
    linked = desk.opt_in(NUMBER, profile="CUST-1", at=NOW - DAY).subscription
    shared = desk.opt_in(OTHER_NUMBER, profile="CUST-2", at=NOW - DAY).subscription
    forgotten = desk.erase_all({first: OTHER_NUMBER, second: OTHER_NUMBER})
    assert sorted(forgotten) == sorted([linked.id, shared.id])
    for subscription in (linked, shared):
        assert [entry.kind for entry in desk.entries(subscription.id)] == ["OPT_IN", "ERASURE"]
        assert desk.find(subscription.id).state.is_erased
        assert desk.verify(subscription.id).fault is None
    assert desk.find(stranger.id) == stranger


def test_the_heads_of_several_people_are_locked_in_one_order(desk: Desk) -> None:
    """A transaction that locks the first head can still lock the second while an erasure of both waits for the first."""
    numbers = sorted((NUMBER, OTHER_NUMBER), key=lambda number: chain.hash_number(desk.secret, number))
    # The profile that comes first has the number that comes last.
    people = [desk.profile("CUST-1"), desk.profile("CUST-2")]
    heads = [
        desk.opt_in(number, profile=profile).subscription.id
        for number, profile in zip(numbers, ("CUST-2", "CUST-1"), strict=True)
    ]

    async def erase() -> None:
        async with desk.database.transaction() as tx:
            await erase_consent(tx, desk.organization_id, dict.fromkeys(people), secret=desk.secret)

    async def race() -> None:
        async with desk.database.transaction() as tx:
            lock = "SELECT id FROM subscriptions WHERE organization_id = %s AND id = %s FOR UPDATE NOWAIT"
            await tx.fetch(lock, (desk.organization_id, heads[0]))
            erasing = asyncio.create_task(erase())
            await until_locked(desk.database)
            await tx.fetch(lock, (desk.organization_id, heads[1]))
        await erasing

    desk.runner.run(race())
    assert all(desk.find(head).state.is_erased for head in heads)
