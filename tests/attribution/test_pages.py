"""The pages of attribution: the overview in all its states, and the results of campaigns and journeys."""

from datetime import timedelta

from tests.analytics.test_pages import links, rows_of, text_of
from tests.attribution.results_shop import ResultsShop, arm

from regulars.cli.attribution import GroupBy, _load
from regulars.kit.ids import CAMPAIGN, JOURNEY

MORE, LESS = arm(90_000, 9_900, 60), arm(10_000, 900, 60)
SAME = arm(10_000, 1_100, 60)
PATH = "/analyse/attribution"


def first_month(shop: ResultsShop) -> str:
    """The month in which the window of a result begins."""
    return f"{shop.today - timedelta(days=20):%Y-%m}"


def test_of_what_is_attributed_the_page_says_how_much_was_extra(shop, analyst):
    spring, summer = shop.campaign("Spring"), shop.campaign("Summer", holdout_percent=0)
    shop.attribute("campaign", spring, 20_000_000)
    shop.attribute("campaign", summer, 3_000_000)
    shop.measure("campaign", spring, MORE, LESS)
    page = analyst.get(PATH).text
    words = text_of(page)
    assert "EUR, 1 campaign or journey with a result Of €100 attributed, €54 were extra" in words
    assert "The other €46 would have been spent without a text." in words
    assert "Extra sales, net, measured with the holdout +€108,000" in words
    assert "€30,000 more is attributed to texts without a result. It is not included." in words
    assert "Attributed sales in total: €230,000.00." in words
    assert "Spring Campaign · 100 sent · 10,000 held out" in words
    assert 'role="img" aria-label="+€108,000, between' in page
    assert 'class="whisker is-tall"' in page


def test_each_result_has_one_state_in_words(shop, analyst):
    names = ("Measured", "Provisional one", "Unclear", "Small", "Running", "Just over", "Whole audience")
    ids = {name: shop.campaign(name, holdout_percent=0 if name == "Whole audience" else 10) for name in names}
    for campaign in ids.values():
        shop.attribute("campaign", campaign, 100_000)
    shop.measure("campaign", ids["Measured"], MORE, LESS)
    shop.measure("campaign", ids["Provisional one"], MORE, LESS, state="provisional")
    shop.measure("campaign", ids["Unclear"], MORE, SAME)
    shop.measure("campaign", ids["Small"], arm(900, 90, 60), arm(100, 8, 60))
    shop.measure("campaign", ids["Running"], None, state="open", days=3)
    shop.measure("campaign", ids["Just over"], None, state="open")
    page = analyst.get(PATH).text
    rows = {row["name"]: row for row in rows_of(analyst.get(f"{PATH}.csv").text)}
    assert {name: row["result"] for name, row in rows.items()} == {
        "Measured": "Final",
        "Provisional one": "Provisional",
        "Unclear": "No effect shown",
        "Small": "Too few",
        "Running": "Window open",
        "Just over": "Being computed",
        "Whole audience": "No holdout",
    }
    words = text_of(page)
    assert "9 buyers in the smaller group, 100 needed" in words
    assert "result on" in words
    assert "Being computed result follows shortly" in words
    assert rows["Small"]["extra_net_cents"] == ""
    assert int(rows["Measured"]["extra_low_cents"]) > 0 > int(rows["Unclear"]["extra_low_cents"])
    final = text_of(analyst.get(PATH, state="final").text)
    assert ("Measured" in final, "Unclear" in final, "Small" in final) == (True, True, False)
    assert "Provisional one" in text_of(analyst.get(PATH, state="provisional").text)


def test_a_result_that_also_covers_days_outside_the_period_is_left_out(shop, analyst):
    early, late, journey = shop.campaign("Early"), shop.campaign("Late"), shop.journey()
    shop.attribute("campaign", early, 20_000_000, days=39)
    shop.measure("campaign", early, MORE, LESS, days=40)
    shop.attribute("campaign", late, 20_000_000, days=20)
    shop.measure("campaign", late, MORE, LESS, days=20)
    shop.attribute("journey", journey, 20_000_000, days=39, step="thanks")
    month = f"{shop.today - timedelta(days=39):%Y-%m}"
    shop.measure("journey", journey, MORE, LESS, days=39, sent_days=28, step="split", period=month)

    def results(first, last):
        days = {"from": str(shop.today - timedelta(days=first)), "to": str(shop.today - timedelta(days=last))}
        states = {row["name"]: row["result"] for row in rows_of(analyst.get(f"{PATH}.csv", **days).text)}
        return states, text_of(analyst.get(PATH, **days).text)

    states, words = results(40, 10)
    assert set(states.values()) == {"Final"}
    assert "more is attributed" not in words
    states, words = results(39, 10)
    assert states == {"Early": "Outside period", "Late": "Final", "Thank you": "Final"}
    assert "€200,000 more is attributed to texts without a result, or with a result that covers days outside" in words
    states, words = results(40, 20)
    assert states == {"Early": "Final", "Late": "Outside period", "Thank you": "Outside period"}
    assert "Of €100 attributed, €54 were extra" in words
    states, words = results(39, 20)
    assert set(states.values()) == {"Outside period"}
    assert "Extra sales are not known for this period" in words


def test_results_without_a_shown_effect_count_and_prove_nothing(shop, analyst):
    unclear = shop.campaign("Unclear")
    shop.attribute("campaign", unclear, 100_000)
    shop.measure("campaign", unclear, MORE, SAME)
    words = text_of(analyst.get(PATH).text)
    assert "No effect shown The extra sales are between −€" in words
    assert "This does not prove that the texts do nothing." in words


def test_a_campaign_that_ended_before_its_first_text_says_so(shop, analyst):
    spring = shop.campaign("Spring")
    # The overview has campaigns with credits only.
    shop.attribute("campaign", spring, 0)
    shop.write(
        "INSERT INTO lifts (organization_id, kind, source_id, step, period, state, held_out_share, window_days, reason)"
        " VALUES (%s, 'campaign', %s, '', '', 'final', 0.1, 7, 'No text was sent.')",
        spring,
    )
    words = text_of(analyst.get(f"/campaigns/{CAMPAIGN.encode(spring)}/results").text)
    assert "No text was sent The campaign ended before its first text, so there is nothing to measure." in words
    assert "Too few buyers" not in words
    assert "No text was sent nothing to measure" in text_of(analyst.get(PATH).text)
    assert "No text was sent nothing to measure" in text_of(analyst.get(PATH, state="unmeasured").text)
    [row] = rows_of(analyst.get(f"{PATH}.csv").text)
    assert row["result"] == "No text was sent"
    table = shop.do(
        lambda tx: _load(tx, shop.organization_id, shop.today - timedelta(days=60), shop.today, GroupBy.ORIGIN)
    )
    assert [row["lift"] for row in (*table.rows, *table.totals)] == ["no_text", "no_text"]


def test_texts_that_cost_sales_are_said_to(shop, analyst):
    spring = shop.campaign("Spring")
    shop.attribute("campaign", spring, 100_000)
    shop.measure("campaign", spring, arm(90_000, 8_100, 60), SAME)
    assert "The texts cost €108,000 of sales The range is −€" in text_of(analyst.get(PATH).text)


def test_the_file_has_the_rows_the_order_and_the_currency_of_the_page(shop, analyst):
    spring, summer, journey = shop.campaign("Spring"), shop.campaign("Summer"), shop.journey()
    shop.attribute("campaign", spring, 100_000)
    shop.attribute("campaign", summer, 300_000)
    shop.attribute("journey", journey, 200_000, step="thanks")
    shop.attribute("campaign", summer, 70_000, currency="CHF")
    rows = rows_of(analyst.get(f"{PATH}.csv").text)
    assert [(row["kind"], row["name"], row["attributed_net_cents"]) for row in rows] == [
        ("campaign", "Summer", "300000"),
        ("journey", "Thank you", "200000"),
        ("campaign", "Spring", "100000"),
    ]
    assert [row["name"] for row in rows_of(analyst.get(f"{PATH}.csv", currency="CHF").text)] == ["Summer"]
    assert [row["name"] for row in rows_of(analyst.get(f"{PATH}.csv", kind="journey").text)] == ["Thank you"]
    assert next(row["name"] for row in rows_of(analyst.get(f"{PATH}.csv", sort="name").text)) == "Spring"
    words = text_of(analyst.get(PATH).text)
    assert "Other currencies CHF" in words
    found = links(analyst.get(f"{PATH}?period=12m&kind=campaign&currency=CHF&sort=name&by=month").text, "period=30d")
    assert found
    assert all("kind=campaign&" in one and "currency=CHF" in one and "sort=name" in one for one in found)


def test_months_add_up_and_open_their_campaigns(shop, analyst):
    spring, summer = shop.campaign("Spring"), shop.campaign("Summer")
    shop.attribute("campaign", spring, 100_000, days=40)
    shop.attribute("campaign", summer, 300_000, days=5)
    shop.measure("campaign", spring, MORE, LESS, days=40)
    rows = rows_of(analyst.get(f"{PATH}.csv", by="month").text)
    assert [int(row["attributed_net_cents"]) for row in rows] == [300_000, 100_000]
    assert [row["result"] for row in rows] == ["Window open", "Final"]
    page = analyst.get(PATH, by="month").text
    # The newest month is the first, until another order is chosen.
    assert "↓" not in text_of(page)
    [by_net] = links(page, "sort=net")
    assert "Attributed sales ↓" in text_of(analyst.get(by_net).text)
    month = f"from={(shop.today - timedelta(days=40)).replace(day=1)}"
    [opened] = [one for one in links(page, f"{PATH}?") if month in one and "by=" not in one]
    assert "Spring" in text_of(analyst.get(opened).text)


def test_a_month_whose_customers_were_texted_later_has_its_result(shop, analyst):
    """They passed the split of a journey in one month and got their texts in the next one."""
    journey = shop.journey()
    texted = (shop.today.replace(day=1) - timedelta(days=1)).replace(day=1)
    passed = (texted - timedelta(days=1)).replace(day=1)
    shop.attribute("journey", journey, 20_000_000, days=(shop.today - texted).days, step="thanks")
    shop.measure(
        "journey", journey, MORE, LESS, days=(shop.today - passed).days, step="split", period=f"{passed:%Y-%m}"
    )
    [by_origin], by_month = (rows_of(analyst.get(f"{PATH}.csv", period="12m", by=by).text) for by in ("", "month"))
    assert by_origin["extra_net_cents"] == "10800000"
    assert [(row["key"], row["texts"], row["extra_net_cents"]) for row in by_month] == [
        (f"{texted:%Y-%m}", "100", ""),
        (f"{passed:%Y-%m}", "0", "10800000"),
    ]


def test_months_of_a_journey_that_are_too_small_have_a_result_together(shop, analyst):
    journey = shop.journey()
    months = [((shop.today.replace(day=1) - timedelta(days=days)).replace(day=1)) for days in (1, 32)]
    for first in months:
        days = (shop.today - first).days
        shop.attribute("journey", journey, 2_000_000, days=days, step="thanks")
        small = arm(9_000, 900, 60), arm(1_000, 60, 60)
        shop.measure("journey", journey, *small, days=days, step="split", period=f"{first:%Y-%m}")
    by_origin = text_of(analyst.get(PATH, period="12m").text)
    assert "EUR, 1 campaign or journey with a result Of €100 attributed, €108 were" not in by_origin
    assert "The texts brought €43,200 extra" in by_origin
    by_month = text_of(analyst.get(PATH, period="12m", by="month").text)
    assert "EUR, months together The texts brought €43,200 extra" in by_month
    assert by_month.count("96 buyers in the smaller group, 100 needed") == 2
    results = text_of(analyst.get(f"/journeys/{JOURNEY.encode(journey)}/results").text)
    assert "2 months together · split" in results
    assert "Customers 18,000 2,000" in results


def test_the_quarters_of_the_global_holdout_stand_apart(shop, analyst):
    shop.attribute("campaign", shop.campaign("Spring"), 100_000)
    assert "with the global holdout" not in text_of(analyst.get(PATH).text)
    shop.measure("holdout", shop.organization_id, MORE, LESS, period="2026-Q3")
    shop.measure("holdout", shop.organization_id, None, state="open", days=3, period="2026-Q4")
    words = text_of(analyst.get(PATH).text)
    assert "All texts, measured with the global holdout 2026-Q4 Window open" in words
    assert "2026-Q3 Final +€108,000 extra" in words
    # They have the same sales as the campaigns, so no sum has them.
    assert "Extra sales, EUR" in words
    # A quarter that began after the period is not shown.
    days = {"from": str(shop.today - timedelta(days=30)), "to": str(shop.today - timedelta(days=10))}
    words = text_of(analyst.get(PATH, **days).text)
    assert "2026-Q3" in words
    assert "2026-Q4" not in words


def test_the_command_has_results_without_credits_by_month_and_in_total(shop):
    spring, summer = shop.campaign("Spring"), shop.campaign("Summer")
    shop.send("campaign", spring)
    shop.measure("campaign", spring, MORE, LESS)
    shop.attribute("campaign", summer, 300_000)
    first = shop.today - timedelta(days=60)
    origins, months = (
        shop.do(lambda tx, by=by: _load(tx, shop.organization_id, first, shop.today, by)) for by in GroupBy
    )
    values = "name", "net_cents", "lift", "extra_net_cents"
    assert [[row[it] for it in values] for row in origins.rows] == [
        ["Summer", 300_000, "open", None],
        ["Spring", 0, "final", 10_800_000],
    ]
    for rows in (months.rows, months.totals, origins.totals):
        assert [(row["net_cents"], row["extra_net_cents"]) for row in rows] == [(300_000, 10_800_000)]
    assert [row["month"] for row in months.rows] == [first_month(shop)]


def test_the_command_has_the_quarters_of_the_global_holdout_beside_the_totals(shop):
    spring = shop.campaign("Spring", holdout_percent=0)
    shop.attribute("campaign", spring, 300_000)
    shop.measure("holdout", shop.organization_id, MORE, LESS, period="2026-Q3")
    shop.measure("holdout", shop.organization_id, None, state="open", days=3, period="2026-Q4")

    def show(by, *, until=shop.today):
        return shop.do(lambda tx: _load(tx, shop.organization_id, shop.today - timedelta(days=60), until, by))

    origins, months = show(GroupBy.ORIGIN), show(GroupBy.MONTH)
    values = "kind", "id", "name", "currency", "net_cents", "lift", "extra_net_cents"
    assert [[row[it] for it in values] for row in origins.rows[1:]] == [
        ["global_holdout", None, "2026-Q3", "EUR", None, "final", 10_800_000],
        ["global_holdout", None, "2026-Q4", None, None, "open", None],
    ]
    values = "month", "currency", "net_cents", "lift", "extra_net_cents"
    assert [[row[it] for it in values] for row in months.rows[1:]] == [
        ["2026-Q3", "EUR", None, "final", 10_800_000],
        ["2026-Q4", None, None, "open", None],
    ]
    # They have the same sales as the campaigns, so no total has them.
    for table in (origins, months):
        assert [(row["net_cents"], row["lift"]) for row in table.totals] == [(300_000, "no_holdout")]
        assert all(set(table.columns) == set(row) for row in table.rows)
    # A quarter that began after the period is not shown.
    until = shop.today - timedelta(days=10)
    assert [row["name"] for row in show(GroupBy.ORIGIN, until=until).rows] == ["Spring", "2026-Q3"]


def test_a_view_is_saved_with_its_filters(shop, analyst):
    query = "period=12m&by=month"
    assert f'name="query" value="{query.replace("&", "&amp;")}"' in analyst.get(f"{PATH}?{query}").text
    analyst.post("/analyse/views", page="attribution", query=query, name="Months")
    [url] = links(analyst.get(PATH).text, "by=month")
    assert url.endswith(f"{PATH}?{query}")


def test_an_empty_page_leads_to_what_fills_it(shop, analyst):
    assert "No texts yet" in text_of(analyst.get(PATH).text)
    assert "Nothing fits these filters" in text_of(analyst.get(PATH, kind="journey").text)
    spring = shop.campaign("Spring")
    shop.attribute("campaign", spring, 20_000_000, days=400)
    page = analyst.get(PATH, period="12m").text
    assert "No texts in this period" in text_of(page)
    last = shop.today - timedelta(days=400)
    [url] = links(page, f"to={last}")
    assert "Spring" in text_of(analyst.get(f"{PATH}?{url.partition('?')[2]}").text)


def test_a_filter_that_cannot_be_read_is_refused(shop, analyst):
    refused = analyst.get(PATH, **{"from": "2030-01-01", "to": "2031-01-01"})
    assert refused.status_code == 400
    # A file or a saved view would have other filters, and no period was chosen.
    assert links(refused.text, ".csv") == []
    assert "Save this view" not in refused.text
    assert 'aria-current="true"' not in refused.text
    assert analyst.get(f"{PATH}.csv", **{"from": "garbage"}).status_code == 400
    assert analyst.get(PATH, kind="nonsense").status_code == 400


def test_a_campaign_shows_both_groups_and_how_the_result_was_made(shop, analyst):
    spring = shop.campaign("Spring")
    shop.attribute("campaign", spring, 20_000_000)
    shop.measure("campaign", spring, MORE, LESS)
    for kind, clicks in (("person", 12), ("machine", 3)):
        shop.write("INSERT INTO click_totals VALUES (%s, 'campaign', %s, '1', %s, %s)", spring, kind, clicks)
    path = f"/campaigns/{CAMPAIGN.encode(spring)}"
    assert f"{path}/results" in links(analyst.get(path).text, "/results")
    words = text_of(analyst.get(f"{path}/results").text)
    assert "Customers 90,000 10,000" in words
    assert "Bought 11% 9% +2 pts" in words
    assert "Net per customer €6.60 €5.40 +€1.20" in words
    assert "times 90,000 customers gives +€108,000 extra" in words
    assert "Difference without adjustment" in words
    assert "Returns of these purchases −€5.00" in words
    assert "Variant A 12 3 Each click counts, also a second one by the same person." in words
    assert analyst.get("/campaigns/cmp_00000000000000000000000000/results").status_code == 404


def test_sizes_of_groups_that_chance_cannot_explain_raise_an_alarm(shop, analyst):
    spring = shop.campaign("Spring")
    shop.attribute("campaign", spring, 100_000)
    shop.measure("campaign", spring, MORE, arm(20_000, 2_000, 60))
    small = shop.campaign("Small")
    shop.attribute("campaign", small, 100_000)
    shop.measure("campaign", small, arm(900, 90, 60), arm(300, 8, 60))
    for campaign in (spring, small):
        words = text_of(analyst.get(f"/campaigns/{CAMPAIGN.encode(campaign)}/results").text)
        assert "The sizes of both groups differ more than chance explains." in words
    words = text_of(analyst.get(PATH).text)
    assert "24 buyers in the smaller group, 100 needed; the sizes of the groups differ more" in words
    assert "In at least one result, the sizes of both groups differ more than chance explains." in words
    fine = shop.campaign("Fine")
    shop.attribute("campaign", fine, 100_000)
    shop.measure("campaign", fine, MORE, LESS)
    rows = {row["name"]: row for row in rows_of(analyst.get(f"{PATH}.csv").text)}
    assert {name: (row["held_out"], row["sample_ratio_alarm"]) for name, row in rows.items()} == {
        "Spring": ("20000", "true"),
        "Small": ("300", "true"),
        "Fine": ("10000", "false"),
    }


def test_a_journey_shows_its_steps_and_months(shop, analyst):
    journey = shop.journey()
    shop.attribute("journey", journey, 400_000, step="thanks")
    shop.attribute("journey", journey, 100_000, step="gone")
    shop.measure("journey", journey, MORE, LESS, step="half", period=first_month(shop), state="provisional")
    path = f"/journeys/{JOURNEY.encode(journey)}"
    assert f"{path}/results" in links(analyst.get(path).text, "/results")
    words = text_of(analyst.get(f"{path}/results").text)
    assert "“Thank you!” thanks 100" in words
    assert "A step of an earlier version gone" in words
    assert "Customers who reached the holdout step in this month" in words
    assert "half +€108,000" in words
    assert "Extra sales are measured for all texts of a path together, not for each step: see" in words
    assert analyst.get("/journeys/jrn_00000000000000000000000000/results").status_code == 404


def test_two_holdout_steps_of_a_journey_have_a_line_each_in_a_month(shop, analyst):
    journey = shop.journey()
    shop.attribute("journey", journey, 40_000_000, step="thanks")
    shop.measure("journey", journey, MORE, LESS, step="2", period=first_month(shop))
    shop.measure("journey", journey, MORE, SAME, step="4.else.1", period=first_month(shop))
    words = text_of(analyst.get(f"/journeys/{JOURNEY.encode(journey)}/results").text)
    assert "Step 2 +€108,000" in words
    assert "Step 4, second path, step 1 €0" in words
