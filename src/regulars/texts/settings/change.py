"""Check and change the sending hours, frequency caps, opt-out notices, senders and prices of an organization, and
report changes that allow more texts than the defaults, which are called looser."""

import re
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from uuid import UUID

import msgspec

from regulars.kit.db import Tx
from regulars.kit.time_zones import zones_by_country
from regulars.texts.errors import SettingRefused
from regulars.texts.settings.currencies import is_currency
from regulars.texts.settings.model import (
    DAYS,
    DEFAULT_CAPS,
    Cap,
    OpenHours,
    OptOutNotice,
    Price,
    SendHoursRule,
    SmsSettings,
    default_rule,
    format_minute,
)
from regulars.texts.settings.senders import NAME_CHARACTERS_MAX, read_sender
from regulars.texts.settings.store import Texting, save_texting

_MINUTES_PER_DAY = 24 * 60
_HOURS = re.compile(r"(\d{1,2})(?::(\d{2}))?-(\d{1,2})(?::(\d{2}))?")
NOTICE_CHARACTERS_MAX = 60
CAP_TEXTS_MAX = 1_000
CAP_HOURS_MAX = 8_760
PRICE_MAX = 10
PRICE_DECIMALS_MAX = 6
PARTS_PER_SECOND_MIN = 0.01
PARTS_PER_SECOND_MAX = 1_000.0


async def change_settings(tx: Tx, organization_id: UUID, texting: Texting, settings: SmsSettings) -> Texting:
    changed = replace(texting, settings=settings)
    await save_texting(tx, organization_id, changed)
    return changed


def check_country(country: str) -> str:
    code = country.upper()
    if code not in zones_by_country():
        raise SettingRefused(f"'{country}' is not a country; write two letters such as FR.")
    return code


def with_hours(
    settings: SmsSettings, country: str, hours: dict[str, str], *, on_holidays: bool | None = None
) -> tuple[SmsSettings, list[str]]:
    """Set the sending hours of a country; also return one sentence for each way in which they exceed its defaults.

    `hours` has the hours (`8-20`, `9:30-17:00`, `closed`) by the name of the day (`Monday`, `mon`).
    """
    code = check_country(country)
    before = settings.rule_of(code)
    days = list(before.days)
    for name, text in hours.items():
        days[_read_day(name)] = _read_hours(text)
    rule = SendHoursRule(days=tuple(days), on_holidays=before.on_holidays if on_holidays is None else on_holidays)
    rules = {**settings.rules, code: rule}
    return msgspec.structs.replace(settings, rules=rules), looser_than_default(code, rule)


def with_caps(settings: SmsSettings, caps: tuple[Cap, ...]) -> tuple[SmsSettings, list[str]]:
    """Set the frequency caps; also return one sentence for each default cap that they exceed."""
    for cap in caps:
        if not (0 <= cap.texts <= CAP_TEXTS_MAX and 1 <= cap.hours <= CAP_HOURS_MAX):
            raise SettingRefused(f"A cap is 0 to {CAP_TEXTS_MAX} texts in 1 to {CAP_HOURS_MAX} hours.")
    return msgspec.structs.replace(settings, caps=caps), looser_caps(caps)


def with_notice(settings: SmsSettings, country: str, *, words: str, reply_path: str) -> SmsSettings:
    """Set the opt-out notice at the end of every text to a country, which must exist before a text is sent there.
    `reply_path` is the number or keyword by which people opt out."""
    code = check_country(country)
    words, reply_path = words.strip(), reply_path.strip()
    if not words or not reply_path or len(words) > NOTICE_CHARACTERS_MAX:
        raise SettingRefused(
            f"A notice has 1 to {NOTICE_CHARACTERS_MAX} characters, and needs the number or keyword that stops."
        )
    changed = msgspec.structs.replace(settings, notices={**settings.notices, code: OptOutNotice(words, reply_path)})
    return _check_sender_of(changed, code)


def without_notice(settings: SmsSettings, country: str) -> SmsSettings:
    """Remove the notice of a country; nothing is sent there until the country has a notice again."""
    code = check_country(country)
    return msgspec.structs.replace(
        settings, notices={other: notice for other, notice in settings.notices.items() if other != code}
    )


def with_sender(settings: SmsSettings, country: str, sender: str | None) -> SmsSettings:
    """Set the sender of texts to a country; None means the sender of the account."""
    code = check_country(country)
    senders = {other: other_sender for other, other_sender in settings.senders.items() if other != code}
    if sender is not None:
        senders[code] = check_sender(sender)
    return _check_sender_of(msgspec.structs.replace(settings, senders=senders), code)


def describe_sender(settings: SmsSettings, country: str) -> dict[str, str]:
    """The sender of a country with its rate, and the price of an SMS part, for forms and the audit log."""
    sender, price = settings.senders.get(country), settings.prices.get(country)
    rate = None if sender is None else settings.parts_per_second.get(sender)
    return {
        "sender": sender or "",
        "parts_per_second": "" if rate is None else f"{rate:g}",
        "price": "" if price is None else f"{price.amount:f}",
        "currency": "" if price is None else price.currency,
    }


def _check_sender_of(settings: SmsSettings, country: str) -> SmsSettings:
    """Return the settings, or raise `SettingRefused` if no text can be sent to the country with its sender."""
    fault = settings.why_not_sent(country)
    if fault is not None:
        raise SettingRefused(fault)
    return settings


def check_sender(text: str) -> str:
    sender = read_sender(text)
    if sender is None:
        raise SettingRefused(
            "A sender is a number such as +15005550006, a short code, a messaging service (MG…), or a name of at most"
            f" {NAME_CHARACTERS_MAX} letters and digits without accents."
        )
    return sender


def with_rate(settings: SmsSettings, sender: str | None, parts_per_second: str) -> SmsSettings:
    """Set how many SMS parts a sender may send in a second; empty means the default of the provider."""
    rates = {other: rate for other, rate in settings.parts_per_second.items() if other != sender}
    if parts_per_second.strip():
        if sender is None:
            raise SettingRefused("A rate belongs to a sender; set the sender first.")
        rates[sender] = float(
            _read_decimal(parts_per_second, minimum=PARTS_PER_SECOND_MIN, maximum=PARTS_PER_SECOND_MAX)
        )
    return msgspec.structs.replace(settings, parts_per_second=rates)


def with_price(settings: SmsSettings, country: str, amount: str, currency: str) -> SmsSettings:
    """Set the price of an SMS part to a country; an empty amount removes the price."""
    code = check_country(country)
    prices = {other: price for other, price in settings.prices.items() if other != code}
    if amount.strip():
        price_amount = _read_decimal(amount, minimum=0, maximum=PRICE_MAX)
        if not is_currency(currency.upper()):
            raise SettingRefused(f"'{currency}' is not a currency; write three letters such as EUR.")
        prices[code] = Price(price_amount, currency.upper())
    return msgspec.structs.replace(settings, prices=prices)


def _read_decimal(text: str, *, minimum: float, maximum: float) -> Decimal:
    try:
        value = Decimal(text.strip().replace(",", "."))
        is_readable = value.is_finite() and -int(value.as_tuple().exponent) <= PRICE_DECIMALS_MAX
    except (InvalidOperation, ValueError):
        is_readable = False
    if not is_readable or not minimum <= value <= maximum:
        raise SettingRefused(
            f"'{text}' is not a number from {minimum:g} to {maximum:g} with at most {PRICE_DECIMALS_MAX} decimals."
        )
    return value


def with_default_hours(settings: SmsSettings, country: str) -> SmsSettings:
    code = check_country(country)
    return msgspec.structs.replace(
        settings, rules={other: rule for other, rule in settings.rules.items() if other != code}
    )


def _read_day(name: str) -> int:
    matches = [index for index, day in enumerate(DAYS) if day.casefold().startswith(name.casefold()) and len(name) > 1]
    if len(matches) != 1:
        raise SettingRefused(f"'{name}' is not a weekday; write one of {', '.join(DAYS)}.")
    return matches[0]


def _read_hours(text: str) -> OpenHours | None:
    if text.strip().casefold() == "closed":
        return None
    match = _HOURS.fullmatch(text.replace(" ", ""))
    if match is None:
        raise SettingRefused(f"'{text}' are not hours; write them as 8-20, 9:30-17:00 or closed.")
    opens = int(match[1]) * 60 + int(match[2] or 0)
    closes = int(match[3]) * 60 + int(match[4] or 0)
    if not 0 <= opens < closes <= _MINUTES_PER_DAY:
        raise SettingRefused(f"'{text}' must begin before it ends, within one day.")
    return OpenHours(opens, closes)


def looser_than_default(country: str, rule: SendHoursRule) -> list[str]:
    """One sentence for each way in which a rule allows texts that the default of its country does not."""
    default = default_rule(country)
    sentences: list[str] = []
    for day, hours, defaults in zip(DAYS, rule.days, default.days, strict=True):
        if hours is None:
            continue
        if defaults is None:
            sentences.append(f"{day} is closed by default in {country}.")
        elif hours.opens_minute < defaults.opens_minute or hours.closes_minute > defaults.closes_minute:
            default_hours = f"{format_minute(defaults.opens_minute)} to {format_minute(defaults.closes_minute)}"
            sentences.append(f"{day} is open from {default_hours} by default in {country}.")
    if rule.on_holidays and not default.on_holidays:
        sentences.append(f"No text is sent on public holidays by default in {country}.")
    return sentences


def looser_caps(caps: tuple[Cap, ...]) -> list[str]:
    """One sentence for each default cap that the caps exceed."""
    return [
        f"The default is at most {default.texts} in {default.hours} hours to one number."
        for default in DEFAULT_CAPS
        if not any(cap.texts <= default.texts and cap.hours >= default.hours for cap in caps)
    ]
