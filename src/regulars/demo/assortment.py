"""The articles that the demo's shops sell, encoded as JSON lines of a ticket.

A line is encoded once for each price and each position on a ticket: encoding it for every ticket would take longer than
everything else about the ticket.
"""

from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from regulars.demo.chain import DemoCountry
from regulars.kit.json import encode
from regulars.sales.model import LineItem, Product

LINES_MAX = 4
DISCOUNTS_PERCENT = (0, 20, 30, 50)
COLORS = ("navy", "ecru", "black", "olive", "rust", "sky")
SIZES = ("XS", "S", "M", "L", "XL")
PROPERTY_KEYS = frozenset({"category", "color", "size", "collection", "organic"})
WARM_MONTHS, COLD_MONTHS = frozenset({4, 5, 6, 7, 8}), frozenset({10, 11, 12, 1, 2})
# How often a seasonal article is sold in its months and outside them, relative to other articles.
IN_SEASON, OUT_OF_SEASON = 3.0, 0.35
SEASONS = {
    "Linen shirt": WARM_MONTHS,
    "Summer dress": WARM_MONTHS,
    "Striped T-shirt": WARM_MONTHS,
    "Wool jumper": COLD_MONTHS,
    "Cashmere cardigan": COLD_MONTHS,
    "Wool coat": COLD_MONTHS,
    "Rain coat": COLD_MONTHS,
}
# An article that is recalled: it is not sold for some time, and many are returned.
RECALLED = "Leather sneakers"
# Name, category, price in euro cents with VAT, whether it has sizes.
ARTICLES = (
    ("Linen shirt", "shirts", 5900, True),
    ("Oxford shirt", "shirts", 6500, True),
    ("Striped T-shirt", "t-shirts", 2900, True),
    ("Plain T-shirt", "t-shirts", 1900, True),
    ("Wool jumper", "knitwear", 8900, True),
    ("Cashmere cardigan", "knitwear", 14900, True),
    ("Denim jacket", "jackets", 9900, True),
    ("Rain coat", "coats", 12900, True),
    ("Wool coat", "coats", 21900, True),
    ("Straight jeans", "trousers", 7900, True),
    ("Chino trousers", "trousers", 6900, True),
    ("Pleated skirt", "skirts", 5500, True),
    ("Summer dress", "dresses", 7500, True),
    ("Cotton socks", "underwear", 900, False),
    ("Leather belt", "accessories", 3900, False),
    ("Silk scarf", "accessories", 4900, False),
    ("Canvas tote", "accessories", 1500, False),
    ("Leather sneakers", "shoes", 11900, True),
)


@dataclass(frozen=True, slots=True)
class ArticleLine:
    """An article as a line of a ticket: its JSON for each position on the ticket, and its amounts."""

    name: str
    encoded: tuple[bytes, ...]
    price_cents: int
    discount_cents: int
    tax_cents: int


def lines_of(country: DemoCountry, discount_percent: int) -> list[ArticleLine]:
    """Every article in every colour and size, at the country's prices less the discount."""
    return [
        _line(country, discount_percent, article, color=color, size=size)
        for article, (_, _, _, has_sizes) in enumerate(ARTICLES)
        for color in COLORS
        for size in (SIZES if has_sizes else ("one size",))
    ]


@cache
def line_weights(month: int, *, is_recalled: bool) -> list[float]:
    """Cumulative weights for `lines_of`: how often each line is sold in this month."""
    names = (name for name, _, _, has_sizes in ARTICLES for _ in COLORS for _ in (SIZES if has_sizes else (None,)))
    return [*accumulate(0.0 if is_recalled and name == RECALLED else _season_weight(name, month) for name in names)]


def _season_weight(name: str, month: int) -> float:
    season = SEASONS.get(name)
    if season is None:
        return 1.0
    return IN_SEASON if month in season else OUT_OF_SEASON


def _line(country: DemoCountry, discount_percent: int, article: int, *, color: str, size: str) -> ArticleLine:
    name, category, euro_cents, _ = ARTICLES[article]
    unit_price = euro_cents * country.price_percent // 100
    discount = unit_price * discount_percent // 100
    price = unit_price - discount
    # The VAT that the price contains.
    tax = price * country.vat_percent // (100 + country.vat_percent)
    product = Product(
        external_id=f"{article + 1:03d}-{color[:3].upper()}-{size.replace(' ', '').upper()}",
        name=name,
        properties={
            "category": category,
            "color": color,
            "size": size,
            "collection": "permanent" if article % 3 else "season",
            "organic": article % 4 == 0,
        },
    )
    items = [
        LineItem(
            external_id=str(position),
            product=product,
            quantity=1,
            unit="piece",
            unit_price_cents=unit_price,
            total_price_cents=price,
            discount_cents=discount or None,
            tax_cents=tax,
        )
        for position in range(1, LINES_MAX + 1)
    ]
    return ArticleLine(name, tuple(encode(item) for item in items), price, discount, tax)
