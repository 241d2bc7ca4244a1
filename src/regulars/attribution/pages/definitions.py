"""Definitions of the terms on the attribution pages, which a page shows when the user opens them."""

from typing import Final

from regulars.segments.effect import BUYERS_MIN

DEFINITIONS: Final = (
    (
        "Attributed net",
        "Purchases within the windows after a click or a text, less their returns. Each purchase counts for one text.",
    ),
    (
        "Extra net",
        "Net per customer to be texted minus net per customer held out, times the customers to be texted.",
    ),
    ("Range, 95%", "The true extra net is in it 19 times out of 20."),
    ("No effect shown", "Zero is inside the range. It does not prove that the texts do nothing."),
    ("Provisional", "Returns can still change it."),
    ("Final", "30 days after the window closed. It does not change any more."),
    ("Window open", "Sales are still counted. No result yet."),
    ("Being computed", "The window has closed. The result follows shortly."),
    (
        "Too few",
        f"Under {BUYERS_MIN} buyers are expected in the smaller group, so a few baskets would decide the result.",
    ),
    ("No holdout", "Nobody was held out, so it cannot be told what would have been bought anyway."),
    ("Cost", "Parts of the sent texts, at the prices in Settings, Texts."),
)
