"""Draws the net sales of stores or groups of products as bars, the largest first."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from regulars.web.charts import Chart, bar_chart, short_label
from regulars.web.format import Format

# With more bars, names could not be read below them.
BARS_MAX: Final = 20


class NetBar(NamedTuple):
    """The net of a store, a day or a group of products, and its net in the compared period, if there is one."""

    name: str
    cents: int
    compared_cents: int | None
    # Instead of the name below the bar, such as the code of a product, since several products may have one name.
    label: str = ""


class RankedChart(NamedTuple):
    """Bars of the largest nets, `drawn` of them."""

    chart: Chart
    drawn: int


def draw_ranked(formats: Format, nets: Iterable[NetBar], currency: str) -> RankedChart:
    """Bars of net, the largest first; the table below has all rows."""
    drawn = sorted(nets, key=lambda row: (-row.cents, row.name.casefold()))[:BARS_MAX]
    chart = bar_chart(
        [row.cents / 100 for row in drawn],
        titles=[describe_net(formats, row, currency) for row in drawn],
        labels=[short_label(row.label or row.name) for row in drawn],
        is_last_partial=False,
        compared=[None if row.compared_cents is None else row.compared_cents / 100 for row in drawn],
    )
    # Bars that are side by side only by their size have no line between them.
    return RankedChart(replace(chart, steps=[step._replace(next_y=None) for step in chart.steps]), len(drawn))


def describe_net(formats: Format, row: NetBar, currency: str) -> str:
    net = formats.money_rounded(row.cents, currency)
    if row.compared_cents is None:
        return f"{row.name}: {net}"
    return f"{row.name}: {net}, {formats.money_rounded(row.compared_cents, currency)} in the compared period"
