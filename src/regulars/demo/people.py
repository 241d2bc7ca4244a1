"""Invents the customers of the demo: their shops, profiles and consents."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from regulars.consent.ledger import EventOrigin
from regulars.consent.model import Proof
from regulars.consent.opt_in import Consent
from regulars.consent.opt_out import Withdrawal
from regulars.demo.chain import COUNTRIES, DAYS, SHOPS, NumberBlock, Shop
from regulars.kit.ids import ByExternalId
from regulars.profiles.model import Phone, ProfileUpsert

# There is one customer for this many tickets, up to `CUSTOMERS_MAX`; with more tickets the same customers buy more
# often.
TICKETS_PER_CUSTOMER = 7
CUSTOMERS_MIN = 40
CUSTOMERS_MAX = 200_000
# The share of light profiles: customers of whom only an id is known.
LIGHT_SHARE = 0.06
# Shares of the customers with a phone; of those with a consent; of those who withdraw it; of those who renew it.
PHONE_SHARE = 0.85
CONSENT_SHARE = 0.6
WITHDRAWAL_SHARE = 0.12
RENEWAL_SHARE = 0.2
ORIGIN = EventOrigin(request_id="demo")
PROOF = Proof(
    terms_url="https://shop.example/terms",
    terms_version="2024-06",
    source_text="I would like to hear about offers by text message. I can stop at any time.",
)
SOURCES = ("LOYALTY_PROGRAM", "POINT_OF_SALE", "WEBSITE", "CHECKOUT", "MOBILE_APP", "QR_CODE", "PAPER_FORM")
# Consents from these sources are given in a store and refer to it.
STORE_SOURCES = frozenset({"LOYALTY_PROGRAM", "POINT_OF_SALE", "QR_CODE", "PAPER_FORM"})
SOURCE_WEIGHTS = (30, 30, 12, 12, 8, 5, 3)
TIERS = ("bronze", "silver", "gold", "platinum")
TIER_WEIGHTS = (60, 25, 12, 3)
# Multiples of this prime, modulo the size of a block of numbers, are all different and look random.
NUMBER_STEP = 7_368_787


@dataclass(frozen=True, slots=True)
class DemoCustomer:
    external_id: str
    shop: Shop
    phone_number: str | None
    is_light: bool


@dataclass(frozen=True, slots=True)
class ConsentHistory:
    """The consent events of all customers: for each number an opt-in, then perhaps an opt-out, then perhaps a new
    opt-in (renewal)."""

    opt_ins: list[Consent]
    opt_outs: list[Withdrawal]
    renewals: list[Consent]


def count_customers(sales: int) -> int:
    return max(CUSTOMERS_MIN, min(CUSTOMERS_MAX, sales // TICKETS_PER_CUSTOMER))


def make_customers(seed: int, count: int) -> list[DemoCustomer]:
    rng = random.Random(f"{seed}/customers")  # noqa: S311  # sample data, not a secret
    shops = rng.choices(SHOPS, weights=[shop.weight for shop in SHOPS], k=count)
    # How many customers of each country have a phone.
    phones: Counter[str] = Counter()
    return [_make_customer(rng, number, shop, phones) for number, shop in enumerate(shops, start=1)]


def make_profiles(seed: int, customers: Sequence[DemoCustomer]) -> Iterator[ProfileUpsert]:
    """The profiles of all customers but the light ones."""
    for customer in customers:
        if not customer.is_light:
            rng = random.Random(f"{seed}/{customer.external_id}")  # noqa: S311  # sample data, not a secret
            yield _make_profile(rng, customer)


def make_consents(seed: int, customers: Sequence[DemoCustomer], last_day: date) -> ConsentHistory:
    rng = random.Random(f"{seed}/opinions")  # noqa: S311  # sample data, not a secret
    history = ConsentHistory([], [], [])
    end = datetime(last_day.year, last_day.month, last_day.day, tzinfo=UTC)
    for customer in customers:
        if customer.phone_number is None or customer.is_light or rng.random() > CONSENT_SHARE:
            continue
        consented_at = _random_time(rng, end - timedelta(days=DAYS - customer.shop.opens_after_days), end)
        source = rng.choices(SOURCES, weights=SOURCE_WEIGHTS)[0]
        consent = Consent(
            phone_number=customer.phone_number,
            source=source,
            consented_at=consented_at,
            origin=ORIGIN,
            proof=PROOF,
            profile=ByExternalId(customer.external_id),
            store=ByExternalId(customer.shop.external_id) if source in STORE_SOURCES else None,
        )
        history.opt_ins.append(consent)
        if rng.random() > WITHDRAWAL_SHARE:
            continue
        unsubscribed_at = _random_time(rng, consented_at, end)
        history.opt_outs.append(
            Withdrawal(
                origin=ORIGIN,
                phone_number=customer.phone_number,
                unsubscribed_at=unsubscribed_at,
                reason="too many messages",
                source="customer service",
            )
        )
        if rng.random() < RENEWAL_SHARE:
            renewed_at = _random_time(rng, unsubscribed_at, end)
            store = ByExternalId(customer.shop.external_id)
            history.renewals.append(replace(consent, source="POINT_OF_SALE", consented_at=renewed_at, store=store))
    return history


def _make_customer(rng: random.Random, number: int, shop: Shop, phones: Counter[str]) -> DemoCustomer:
    is_light = rng.random() < LIGHT_SHARE
    has_phone = rng.random() < PHONE_SHARE
    phone_number = None
    if has_phone and not is_light:
        phone_number = _find_number(COUNTRIES[shop.country].numbers, phones[shop.country])
        phones[shop.country] += 1
    return DemoCustomer(f"C{number:07d}", shop, phone_number, is_light)


def _find_number(blocks: Sequence[NumberBlock], index: int) -> str:
    """The number at this index of a country's blocks; the last one has more numbers than a demo has customers."""
    block, *others = blocks
    if index >= block.size and others:
        return _find_number(others, index - block.size)
    return f"{block.prefix}{index * NUMBER_STEP % block.size:0{block.digits}d}"


def _make_profile(rng: random.Random, customer: DemoCustomer) -> ProfileUpsert:
    country = COUNTRIES[customer.shop.country]
    number = customer.phone_number
    return ProfileUpsert(
        external_id=customer.external_id,
        phone=None if number is None else Phone(number, reachable=True),
        first_name=rng.choice(country.first_names),
        last_name=rng.choice(country.last_names),
        attributes={
            "city": customer.shop.city,
            "country": customer.shop.country,
            "language": country.language,
            "preferred_store": customer.shop.external_id,
            "loyalty_tier": rng.choices(TIERS, weights=TIER_WEIGHTS)[0],
            "points": str(rng.randrange(0, 5000, 5)),
            "birthday": (date(1945, 1, 1) + timedelta(days=rng.randrange(22_000))).isoformat(),
            "newsletter": "true" if rng.random() < CONSENT_SHARE else "false",
        },
    )


def _random_time(rng: random.Random, earliest: datetime, latest: datetime) -> datetime:
    seconds = int((latest - earliest).total_seconds())
    return earliest + timedelta(seconds=rng.randrange(max(1, seconds)))
