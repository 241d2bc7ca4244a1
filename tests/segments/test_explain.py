"""One customer at a time, straight from the tables: what every faster way is held against."""

from datetime import timedelta

from tests.segments.desk import line

from regulars.catalog.model import AttributeType
from regulars.kit.ids import STORE

DAY = timedelta(days=1)


def attribute(key, comparison, **more):
    return {"type": "attribute", "key": key, "comparison": comparison, **more}


def test_what_cannot_be_read_is_not_known_and_makes_no_group_hold(desk):
    customer = desk.customer("C1", points="12")
    other = desk.customer("C2", points="n/a")
    valueless = desk.customer("C3")
    more_than_ten = attribute("points", "more", value="10")
    assert [desk.holds(it, more_than_ten) for it in (customer, other, valueless)] == [True, False, False]
    assert [desk.holds(it, more_than_ten, kind="none") for it in (customer, other, valueless)] == [False, False, True]
    assert desk.why(other, more_than_ten, kind="none").tree.holds is None
    assert desk.holds(other, more_than_ten, {"type": "named"}, kind="any")
    assert desk.holds(customer, {"type": "named"}, more_than_ten, kind="any")
    seen = desk.why(other, more_than_ten).tree.inner[0].observation
    assert (seen.value, seen.is_parsable) == ("n/a", False)


def test_spend_and_articles_are_net_and_zero_without_sales(desk):
    customer = desk.customer()
    spend = {"type": "spend", "currency": "EUR"}
    assert desk.holds(customer, {**spend, "none": True})
    assert desk.holds(customer, {**spend, "at_most_cents": 0})
    desk.sale(customer, amount=5000, lines=[line(cents=5000, quantity=2)])
    desk.sale(customer, amount=1500, kind="RETURN", lines=[line(cents=1500, quantity=0.5)])
    assert desk.holds(customer, {**spend, "at_least_cents": 3500, "at_most_cents": 3500})
    assert desk.holds(customer, {"type": "articles", "at_least": 1.5, "at_most": 1.5})
    assert not desk.holds(customer, {"type": "spend", "currency": "CHF", "at_least_cents": 1})
    desk.sale(customer, amount=9000, kind="RETURN", lines=[line(cents=9000, quantity=3)])
    assert desk.holds(customer, {**spend, "at_most_cents": -5500})
    assert desk.holds(customer, {"type": "articles", "at_most": -1.5})


def test_bought_tickets_and_ticket_value_speak_of_purchases(desk):
    customer = desk.customer()
    desk.sale(customer, kind="RETURN", amount=700)
    assert not desk.holds(customer, {"type": "bought"})
    assert desk.holds(customer, {"type": "bought", "none": True})
    assert desk.holds(customer, {"type": "returned", "at_least": 1, "at_most": 1})
    assert not desk.holds(customer, {"type": "ticket_value", "currency": "EUR", "at_least_cents": 0})
    desk.sale(customer, amount=700)
    desk.sale(customer, amount=900)
    assert desk.holds(customer, {"type": "tickets", "at_least": 2, "at_most": 2})
    assert desk.holds(customer, {"type": "ticket_value", "currency": "EUR", "at_least_cents": 800})
    assert not desk.holds(customer, {"type": "ticket_value", "currency": "EUR", "at_least_cents": 1000})


def test_by_product_line_totals_count_and_the_line_decides(desk):
    customer = desk.customer()
    desk.declare_property("collection", AttributeType.TEXT)
    desk.declare_property("size", AttributeType.NUMBER)
    linen = line("A", cents=3000, quantity=2, collection="Lin lavé", size=40.0)
    wool = line("B", cents=5000, quantity=1, collection="Laine", size=True)
    fee = line(None, cents=100)
    desk.sale(customer, amount=8100, lines=[linen, wool, fee])
    by_linen = {"property": {"key": "collection", "comparison": "is", "value": "LIN LAVÉ"}}
    spend = {"type": "spend", "currency": "EUR"}
    assert desk.holds(customer, {**spend, "at_least_cents": 3000, "at_most_cents": 3000, **by_linen})
    assert desk.holds(customer, {**spend, "at_least_cents": 5000, "at_most_cents": 5000, "products": ["B"]})
    assert desk.holds(customer, {"type": "articles", "at_least": 3, "at_most": 3})
    assert desk.holds(customer, {"type": "articles", "at_least": 2, "at_most": 2, **by_linen})
    assert not desk.holds(customer, {"type": "bought", "products": ["B"], **by_linen})
    sized = {"type": "articles", "property": {"key": "size", "comparison": "is", "value": "40"}}
    # The other line may be of this size too, since its value cannot be read: there are two articles, or three.
    assert desk.holds(customer, {**sized, "at_least": 2})
    assert desk.why(customer, {**sized, "at_least": 2, "at_most": 2}).tree.holds is None
    assert not desk.holds(customer, {**sized, "at_least": 4})
    unsized = {"key": "size", "comparison": "is_not", "value": "40", "without_value": True}
    assert not desk.holds(customer, {"type": "bought", "property": unsized})
    assert desk.holds(customer, {"type": "ticket_value", "currency": "EUR", "at_most_cents": 3000, **by_linen})


def test_a_zone_decides_which_day_a_sale_fell_on(desk):
    customer = desk.customer()
    desk.alter("UPDATE organizations SET time_zone = 'Pacific/Kiritimati' WHERE id = %s")
    desk.sale(customer)
    today = desk.why(customer, {"type": "bought"}).resolved.today
    assert desk.holds(customer, {"type": "bought", "window": {"from": today.isoformat(), "to": today.isoformat()}})


def test_stores_are_named_by_either_id(desk):
    customer = desk.customer()
    desk.sale(customer)
    assert desk.holds(customer, {"type": "bought", "stores": ["PARIS"]})
    assert desk.holds(customer, {"type": "bought", "stores": [STORE.encode(desk.store_id)]})
    unknown = desk.why(customer, {"type": "bought", "stores": ["ROME"]})
    assert not unknown.is_in
    assert [fault.message for fault in unknown.resolved.faults] == ["There is no store ROME."]


def test_consent_is_judged_as_the_api_judges_it(desk):
    customer = desk.customer()

    def states():
        every = ("may_be_texted", "withdrawn", "never_asked", "do_not_contact")
        return [state for state in every if desk.holds(customer, {"type": "consent", "state": state})]

    assert states() == ["never_asked"]
    desk.opt_in()
    assert states() == ["may_be_texted"]
    may = {"type": "consent", "state": "may_be_texted"}
    assert desk.holds(customer, {**may, "sources": ["OTHER"], "since": {"comparison": "in_last_days", "days": 1}})
    assert not desk.holds(customer, {**may, "sources": ["EVENT"]})
    assert not desk.holds(customer, {**may, "stores": ["PARIS"]})
    desk.opt_out()
    assert states() == ["withdrawn"]
    assert desk.holds(
        customer, {"type": "consent", "state": "withdrawn", "since": {"comparison": "in_last_days", "days": 1}}
    )


def test_an_own_number_that_is_only_a_do_not_contact_entry_is_not_to_be_contacted(desk):
    customer = desk.customer()
    desk.alter("UPDATE profiles SET phone_number = '+33612345678', phone_reachable = true WHERE organization_id = %s")
    assert desk.holds(customer, {"type": "consent", "state": "never_asked"})
    assert desk.holds(customer, {"type": "country", "any_of": ["FR"]})
    desk.opt_out()
    assert desk.holds(customer, {"type": "consent", "state": "do_not_contact"})


def test_texts_count_by_journey_and_day(desk):
    customer = desk.customer()
    desk.opt_in()
    journey = desk.journey({"do": "send_text", "text": "Bonjour"})
    none = {"type": "texts", "days": 30, "got": False}
    assert desk.holds(customer, none)
    desk.sell(customer)
    assert desk.sent
    assert not desk.holds(customer, none)
    from_it = {"type": "texts", "days": 30, "journey": desk.journey_id(journey)}
    assert desk.holds(customer, from_it)
    other = desk.journey({"do": "exit"}, live=False)
    assert not desk.holds(customer, {**from_it, "journey": desk.journey_id(other)})


def test_a_customer_who_does_not_exist_is_in_nothing(desk):
    segment = desk.segment({"type": "named", "is": False})
    assert not desk.is_in(segment, segment)
