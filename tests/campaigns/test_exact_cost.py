"""The worker renders the texts of a campaign for its whole audience, page by page, and survives a kill."""

from decimal import Decimal

import pytest
from tests.campaigns.desk import definition
from tests.experiments.test_holdout import draw_all
from tests.segments.test_members import answering
from tests.support.gateway import ALWAYS

from regulars.campaigns import exact_cost, manage
from regulars.campaigns.exact_cost import CostQueue, ExactCost, find_exact_cost, request_exact_cost
from regulars.cli.campaign_estimate import exact_as_data, print_estimate
from regulars.columns import lifecycle
from regulars.conditions.documents import DefinitionRefused
from regulars.experiments.holdout.settings import change_holdout
from regulars.texts.settings.model import Price, SmsSettings

PRICES = {"FR": Price(Decimal("0.049"), "EUR"), "CH": Price(Decimal("0.053"), "CHF")}
VARIANTS = [
    {"share": 50, "text": "Hello {{ profile.first_name | default('you') }}. " + "A longer text. " * 9},
    {"share": 50, "text": "Only for {{ profile.first_name }}: " + "come and see us. " * 2},
]


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch):
    monkeypatch.setattr(exact_cost, "PAGE_CUSTOMERS", 3)
    monkeypatch.setattr(exact_cost, "PAGES_PER_CLAIM", 1)


@pytest.fixture
def shop(desk):
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS, "CH": ALWAYS}, prices=PRICES))
    desk.crowd(14)
    for number, first_name in enumerate(["Zoë", "Beat", None]):
        name, phone = f"S{number}", f"+4179123450{number}"
        desk.person(name, phone, first_name)
    desk.customer("asked never")
    desk.drain()
    return desk


def request(desk, campaign):
    desk.do(lambda tx: request_exact_cost(tx, desk.organization_id, campaign))


def find(desk, campaign) -> ExactCost | None:
    return desk.do(lambda tx: find_exact_cost(tx, desk.organization_id, campaign))


def render_pages(desk, count: int = 100) -> int:
    """Each by a worker of its own; gives how many pages there were."""

    async def run() -> int:
        async with answering(desk, desk.path) as analysis:
            for done in range(count):
                queue = CostQueue(analysis, desk.database)
                await queue.run_pass(desk.database, desk.organization_id)
                if not await _finish(queue):
                    return done
        return count

    return desk.runner.run(run())


async def _finish(queue: CostQueue) -> bool:
    acted = bool(queue._acting)
    await queue.finish()
    return acted


def test_the_exact_cost_is_that_of_the_texts_which_then_leave(shop):
    campaign = shop.draft(variants=VARIANTS, holdout_percent=20)
    shop.do(lambda tx: change_holdout(tx, shop.organization_id, percent=20, with_journeys=False, by="ann@shop.example"))
    draw_all(shop)
    assert find(shop, campaign) is None
    request(shop, campaign)
    assert find(shop, campaign).size is None
    # Seventeen customers; each page by another worker, as after a kill.
    assert render_pages(shop, 2) == 2
    assert (find(shop, campaign).rendered, find(shop, campaign).customers) == (6, 17)
    assert render_pages(shop) == 4
    found = find(shop, campaign)
    shop.act(manage.schedule, campaign, confirmed_recipients=17, is_now=True)
    shop.drain()
    shop.start()
    shop.work()
    outcomes = shop.outcomes(campaign)
    held_out, in_holdout = outcomes.get("held_out", 0), outcomes.get("global_holdout", 0)
    assert (found.held_out, found.global_holdout) == (held_out, in_holdout)
    assert found.size.recipients == 17 - held_out - in_holdout
    totals = shop.sql(
        "SELECT arm, country, sum(recipients), sum(parts) FROM campaign_totals WHERE organization_id = %s"
        " AND campaign_id = %s AND outcome = 'sent' AND recipients > 0 GROUP BY arm, country",
        campaign,
    )
    # By chance all customers of a country may be held out, or the only other one may get no text.
    countries = {country for _, country, _, _ in totals}
    sent = {country: sum(parts for _, at, _, parts in totals if at == country) for country in countries}
    assert {it.country: it.parts for it in found.size.countries if it.parts} == sent
    prices = {"FR": ("EUR", Decimal("0.049")), "CH": ("CHF", Decimal("0.053"))}
    amounts = {prices[country][0]: parts * prices[country][1] for country, parts in sent.items()}
    assert {currency: amount for currency, amount in found.size.cost.amounts.items() if amount} == amounts
    for arm, variant in enumerate(found.size.variants, start=1):
        assert variant.parts == sum(parts for own, _, _, parts in totals if own == arm)
        assert sum(variant.spread.values()) == sum(times for own, _, times, _ in totals if own == arm)
    assert sum(found.size.skipped.values()) == outcomes.get("skipped", 0)


def test_the_command_prints_the_estimate_and_then_the_exact_cost(shop, capsys):
    campaign = shop.draft(variants=[{"text": "Hello, it\u2019s us."}])
    found = shop.estimate(variants=[{"text": "Hello, it\u2019s us."}])
    print_estimate(found, None)
    said = capsys.readouterr()
    assert "17 recipients, 0 held out, about 17 parts. It costs about 0.69 EUR, 0.16 CHF." in said.err
    assert "\u2019 in it\u2019s forces Unicode" in said.err
    assert said.out.split()[:7] == ["COUNTRY", "RECIPIENTS", "PARTS", "COST", "FR", "14", "14"]
    request(shop, campaign)
    render_pages(shop)
    print_estimate(found, find(shop, campaign))
    assert "17 recipients, 0 held out, 17 parts. It costs 0.69 EUR, 0.16 CHF." in capsys.readouterr().err
    assert exact_as_data(find(shop, campaign))["counted"] == 17


def test_two_counts_at_once_render_each_text_once(shop, monkeypatch):
    rendered = []
    size_text = exact_cost.size_text

    def count(arm, text, *values):
        rendered.append(text)
        return size_text(arm, text, *values)

    monkeypatch.setattr(exact_cost, "size_text", count)
    for text in ("Come and see us", "Come again"):
        request(shop, shop.draft(variants=[{"share": 100, "text": text}]))

    async def run() -> None:
        async with answering(shop, shop.path) as analysis:
            queue = CostQueue(analysis, shop.database)
            await queue.run_pass(shop.database, shop.organization_id)
            while await _finish(queue):
                await queue.run_pass(shop.database, shop.organization_id)

    shop.runner.run(run())
    # Once for each country.
    assert sorted(rendered) == ["Come again"] * 2 + ["Come and see us"] * 2


def test_several_pages_are_counted_between_two_writes(shop, monkeypatch):
    monkeypatch.setattr(exact_cost, "PAGES_PER_CLAIM", 4)
    campaign = shop.draft(variants=VARIANTS)
    request(shop, campaign)
    render_pages(shop, 1)
    assert find(shop, campaign).rendered == 12
    assert render_pages(shop) == 1
    assert (find(shop, campaign).rendered, find(shop, campaign).size.recipients) == (17, 17)


def test_a_change_of_the_campaign_ends_its_count_and_needs_another(shop):
    campaign = shop.draft(variants=VARIANTS)
    request(shop, campaign)
    render_pages(shop, 1)
    changed = definition(shop.reachable, name="Other")
    shop.do(lambda tx: manage.update_campaign(tx, shop.organization_id, campaign, changed))
    assert find(shop, campaign) is None
    assert render_pages(shop) == 0
    request(shop, campaign)
    # A second request does not begin the count again.
    render_pages(shop, 1)
    request(shop, campaign)
    assert render_pages(shop) == 5
    assert find(shop, campaign).size.parts == 17


def test_columns_that_are_built_anew_begin_the_count_again(shop):
    campaign = shop.draft(variants=VARIANTS)
    request(shop, campaign)
    render_pages(shop, 1)
    shop.do(lambda tx: lifecycle.rebuild(tx, shop.organization_id))
    shop.build()
    render_pages(shop)
    assert find(shop, campaign).rendered == 17


def test_a_campaign_that_cannot_be_read_stops_no_other_count_and_shows_its_own(shop):
    counted, damaged, other = shop.draft(), shop.draft(), shop.draft()
    request(shop, counted)
    render_pages(shop)
    for campaign in (damaged, other):
        request(shop, campaign)
    broken = """UPDATE campaigns SET definition = jsonb_set(definition::jsonb, '{include,1}', '""')::json"""
    for campaign in (counted, damaged):
        shop.alter(f"{broken} WHERE organization_id = %s AND id = %s", campaign)
    render_pages(shop)
    assert "include[1]" in find(shop, damaged).reason
    assert [find(shop, campaign).size.recipients for campaign in (counted, other)] == [17, 17]


def test_a_campaign_that_cannot_be_sent_is_not_counted(shop):
    with pytest.raises(DefinitionRefused, match="faults"):
        request(shop, shop.draft(variants=[{"text": "{{ nothing }}"}]))
    shop.customer("someone", tier="gold")
    shop.drain()
    gold = shop.segment({"type": "attribute", "key": "tier", "comparison": "is", "value": "gold"}, name="Gold")
    campaign = shop.draft(segment=gold)
    request(shop, campaign)
    shop.alter("UPDATE profile_attributes SET type = 'date' WHERE organization_id = %s AND key = 'tier'")
    render_pages(shop)
    found = find(shop, campaign)
    assert (found.size, "The segment Gold has a fault" in found.reason) == (None, True)
