"""Definitions of the terms on the attribution pages, which a page shows when the user opens them."""

from typing import Final

from regulars.experiments.effect import BUYERS_MIN

DEFINITIONS: Final = (
    (
        "Attributed sales",
        "Purchases soon after a click or a text, less their returns. Each purchase counts for one text.",
    ),
    (
        "Extra sales",
        "Net sales per texted customer on top of those per held-out customer, summed over all texted customers.",
    ),
    ("Range, 95%", "The true extra sales are in it 19 times out of 20."),
    ("No effect shown", "Zero is in the range. This does not prove that the texts do nothing."),
    ("Window open", "The days in which sales count (the window) are not over. There is no result yet."),
    ("Being computed", "The days in which sales count (the window) are over. The result follows shortly."),
    ("Provisional", "Returns can still change the result."),
    ("Final", "30 days after the window closed. The result does not change any more."),
    (
        "Too few",
        f"We expect fewer than {BUYERS_MIN} buyers in the smaller group, so a few baskets would decide the result.",
    ),
    ("Outside period", "The result also covers texts outside the period. A longer period shows it."),
    ("No holdout", "No customer was held out, so we cannot know what customers would have bought anyway."),
    ("No text was sent", "The campaign ended before its first text, so there is nothing to measure."),
    ("Cost of texts", "SMS parts of the sent texts, at the prices in Settings, Texts."),
)
