"""The pages of the rules for texts: frequency caps, and sending hours, opt-out notice and sender of each country."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from babel.numbers import get_territory_currencies
from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.kit.time_zones import zones_by_country
from regulars.sales.listing import CURRENCIES
from regulars.texts.errors import SettingRefused
from regulars.texts.pages.message_view import check_field, load_texting_of
from regulars.texts.pages.settings import PATH
from regulars.texts.public_holidays import find_closed_days
from regulars.texts.settings.change import (
    CAP_HOURS_MAX,
    CAP_TEXTS_MAX,
    NOTICE_CHARACTERS_MAX,
    change_settings,
    describe_sender,
    looser_caps,
    looser_than_default,
    with_caps,
    with_default_hours,
    with_hours,
    with_notice,
    with_price,
    with_rate,
    with_sender,
    without_notice,
)
from regulars.texts.settings.model import (
    DAYS,
    DEFAULT_RULES,
    SIMULATED_NOTICE,
    Cap,
    OpenHours,
    Price,
    SendHoursRule,
    SmsSettings,
    default_rule,
    format_minute,
)
from regulars.texts.settings.senders import SENDER_CHARACTERS_MAX
from regulars.texts.settings.store import Texting
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.format import country_name
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

RULES: Final = f"{PATH}/rules"
COUNTRIES: Final = f"{PATH}/countries"
CAPS_MAX: Final = 4
LOOSER: Final = " They allow more texts than the default."
_MINUTES_PER_DAY: Final = 24 * 60


class DayBar(NamedTuple):
    """The sending hours of one day as a bar from midnight to midnight."""

    day: str
    hours: str
    # Start and width of the bar, in percent of the day.
    x: str
    width: str
    # The default hours of the country on this day.
    default: str


class CountryRow(NamedTuple):
    """A country in the list of countries."""

    code: str
    name: str
    rule: SendHoursRule
    # Whether the retailer changed the default hours.
    has_own_hours: bool
    # The opt-out notice at the end of texts, and the number or keyword by which people opt out.
    notice: str | None
    reply_path: str | None
    # Whether the notice is only that of the simulator.
    is_simulated: bool
    sender: str | None
    price: Price | None


def format_window(window: OpenHours | None) -> str:
    return "closed" if window is None else f"{format_minute(window.opens_minute)}-{format_minute(window.closes_minute)}"


def make_week_bars(rule: SendHoursRule, default: SendHoursRule) -> list[DayBar]:
    bars = []
    for day, hours, default_hours in zip(DAYS, rule.days, default.days, strict=True):
        x = 0.0 if hours is None else hours.opens_minute / _MINUTES_PER_DAY * 100
        width = 0.0 if hours is None else (hours.closes_minute - hours.opens_minute) / _MINUTES_PER_DAY * 100
        bars.append(DayBar(day, format_window(hours), f"{x:.2f}", f"{width:.2f}", format_window(default_hours)))
    return bars


def _list_countries(visit: Visit, texting: Texting) -> list[CountryRow]:
    settings = texting.settings
    codes = {*DEFAULT_RULES, *settings.rules, *settings.notices, *settings.senders, *settings.prices}
    if visit.organization.default_country in zones_by_country():
        codes.add(visit.organization.default_country or "")
    rows = []
    for code in sorted(codes - {""}, key=country_name):
        notice = texting.opt_out_notice_of(code)
        rows.append(
            CountryRow(
                code,
                country_name(code),
                settings.rule_of(code),
                code in settings.rules,
                None if notice is None else notice.words,
                None if notice is None else notice.reply_path,
                notice is not None and code not in settings.notices,
                settings.senders.get(code),
                settings.prices.get(code),
            )
        )
    return rows


async def show_rules(visit: Visit, form: FormState | None = None) -> Response:
    """Show the stored rules, or a form that was refused."""
    async with visit.database.reading() as tx:
        texting = await load_texting_of(tx, visit)
    values: dict[str, Any] = {
        "texting": texting,
        "countries": _list_countries(visit, texting),
        "make_week_bars": make_week_bars,
        "default_rule": default_rule,
        "looser": looser_caps(texting.settings.caps),
        "choices": [(code, country_name(code)) for code in sorted(zones_by_country(), key=country_name)],
        "caps_max": CAPS_MAX,
    }
    return render_form(visit, "texts/rules.html", form or FormState(_caps_as_form(texting.settings)), **values)


def _caps_as_form(settings: SmsSettings) -> dict[str, str]:
    values = {}
    for index, cap in enumerate(settings.caps[:CAPS_MAX]):
        values[f"texts_{index}"], values[f"hours_{index}"] = str(cap.texts), str(cap.hours)
    return values


async def change_caps(visit: Visit) -> Response:
    form = FormState(visit.form, again=show_rules)
    caps = []
    for index in range(CAPS_MAX):
        texts_field, hours_field = f"texts_{index}", f"hours_{index}"
        if form.value(texts_field).strip() or form.value(hours_field).strip():
            texts = form.integer(texts_field, minimum=0, maximum=CAP_TEXTS_MAX)
            caps.append(Cap(texts, form.integer(hours_field, minimum=1, maximum=CAP_HOURS_MAX)))
    form.check()
    settings = await _change(visit, "texts.caps", "texts", lambda old: with_caps(old, tuple(caps))[0], _describe_caps)
    done = f"Frequency caps saved.{LOOSER if looser_caps(settings.caps) else ''}"
    return redirect(visit, visit.url(RULES), done=done)


async def _change(
    visit: Visit,
    act: str,
    subject: str,
    change: Callable[[SmsSettings], SmsSettings],
    describe: Callable[[SmsSettings], dict[str, Any]],
) -> SmsSettings:
    """Change and return the settings; the audit log gets their description before and after."""
    async with visit.database.transaction() as tx:
        texting = await load_texting_of(tx, visit, is_to_change=True)
        settings = change(texting.settings)
        await change_settings(tx, visit.organization_id, texting, settings)
        await record_act(tx, visit, act, subject, before=describe(texting.settings), after=describe(settings))
    return settings


def _describe_caps(settings: SmsSettings) -> dict[str, Any]:
    return {"caps": [f"{cap.texts} in {cap.hours} h" for cap in settings.caps]}


async def open_country(visit: Visit) -> Response:
    """Redirect to the page of the country that was selected in the form; without a country, to the list."""
    code = visit.query.get("country", "")
    return redirect(visit, visit.url(COUNTRIES, code) if code in zones_by_country() else visit.url(RULES))


async def show_country(visit: Visit, form: FormState | None = None) -> Response:
    """Show the stored rules of a country, or a form that was refused."""
    code = _country_in_path(visit)
    async with visit.database.reading() as tx:
        texting = await load_texting_of(tx, visit)
        today = visit.now.astimezone(visit.format.zone).date()
        closed = await find_closed_days(tx, visit.organization_id, code, today=today)
    rule = texting.settings.rule_of(code)
    notice = texting.settings.notices.get(code)
    values: dict[str, Any] = {
        "code": code,
        "name": country_name(code),
        "texting": texting,
        "rule": rule,
        "bars": make_week_bars(rule, default_rule(code)),
        "has_own_hours": code in texting.settings.rules,
        "looser": looser_than_default(code, rule),
        "closed": closed,
        "notice": notice,
        "simulated": SIMULATED_NOTICE if notice is None and texting.provider == "simulator" else None,
        "days": DAYS,
        "notice_max": NOTICE_CHARACTERS_MAX,
        "sender": texting.settings.sender_of(code),
        "sender_fault": texting.settings.why_not_sent(code) if texting.provider != "simulator" else None,
        "price": texting.settings.prices.get(code),
        "currencies": [(currency, currency) for currency in _currencies(texting.settings, code)],
    }
    if form is None:
        hours = {day: format_window(window) for day, window in zip(DAYS, rule.days, strict=True)}
        form = FormState({**hours, **describe_sender(texting.settings, code)})
        form.values["on_holidays"] = "on" if rule.on_holidays else ""
        if notice is not None:
            form.values |= msgspec.structs.asdict(notice)
    return render_form(visit, "texts/country.html", form, **values)


def _currencies(settings: SmsSettings, country: str) -> list[str]:
    """The currencies offered for a price: the one of the country, those of stored prices, and all others."""
    known = [*(price.currency for price in reversed(settings.prices.values())), *CURRENCIES]
    own = [currency for currency in get_territory_currencies(country) if currency in known]
    return list(dict.fromkeys([*own, *known]))


def _country_in_path(visit: Visit) -> str:
    code = visit.references[0]
    if code not in zones_by_country():
        raise PageNotFound("There is no such country. Write its two letters, such as FR.")
    return code


async def change_hours(visit: Visit) -> Response:
    form = FormState(visit.form, again=show_country)
    code = _country_in_path(visit)
    hours = {day: form.text(day, characters_max=20) for day in DAYS}
    # Each day is set in empty settings only to check its hours.
    for day, text in hours.items():
        check_field(form, day, partial(with_hours, SmsSettings(), code, {day: text or "closed"}))
    form.check()

    def change(old: SmsSettings) -> SmsSettings:
        return with_hours(old, code, hours, on_holidays=form.is_checked("on_holidays"))[0]

    settings = await _change(visit, "texts.hours", code, change, partial(_describe_rule, code=code))
    done = f"Hours saved.{LOOSER if looser_than_default(code, settings.rule_of(code)) else ''}"
    return redirect(visit, visit.url(COUNTRIES, code), done=done)


async def reset_hours(visit: Visit) -> Response:
    code = _country_in_path(visit)
    change, describe = partial(with_default_hours, country=code), partial(_describe_rule, code=code)
    await _change(visit, "texts.hours", code, change, describe)
    return redirect(visit, visit.url(COUNTRIES, code), done="Default hours restored.")


def _describe_rule(settings: SmsSettings, code: str) -> dict[str, Any]:
    rule = settings.rule_of(code)
    hours = {day: format_window(window) for day, window in zip(DAYS, rule.days, strict=True)}
    return {**hours, "on_holidays": rule.on_holidays}


async def change_notice(visit: Visit) -> Response:
    """Change the opt-out notice. Empty fields remove it, and then nothing is sent to the country."""
    form = FormState(visit.form, again=show_country)
    code = _country_in_path(visit)
    words = form.text("words", required=False)
    reply_path = form.text("reply_path", required=False, characters_max=40)
    form.check()
    change = partial(without_notice, country=code)
    if words or reply_path:
        change = partial(with_notice, country=code, words=words, reply_path=reply_path)
    with form.refusing("words", SettingRefused):
        await _change(visit, "texts.notice", code, change, partial(_describe_notice, code=code))
    return redirect(visit, visit.url(COUNTRIES, code), done="Opt-out notice saved.")


def _describe_notice(settings: SmsSettings, code: str) -> dict[str, Any]:
    notice = settings.notices.get(code)
    return {"words": None, "reply_path": None} if notice is None else msgspec.structs.asdict(notice)


async def change_sender(visit: Visit) -> Response:
    """Change the sender of a country, its rate, and the price of an SMS part; an empty field means the default."""
    form = FormState(visit.form, again=show_country)
    code = _country_in_path(visit)
    sender = form.text("sender", required=False, characters_max=SENDER_CHARACTERS_MAX)
    async with visit.database.transaction() as tx:
        texting = await load_texting_of(tx, visit, is_to_change=True)
        settings = texting.settings
        changes: dict[str, Callable[[SmsSettings], SmsSettings]] = {
            "sender": lambda old: with_sender(old, code, sender or None),
            "parts_per_second": lambda old: with_rate(old, old.senders.get(code), form.value("parts_per_second")),
            "price": lambda old: with_price(old, code, form.value("price"), form.value("currency")),
        }
        for name, change in changes.items():
            settings = check_field(form, name, partial(change, settings)) or settings
        form.check()
        await change_settings(tx, visit.organization_id, texting, settings)
        before, after = describe_sender(texting.settings, code), describe_sender(settings, code)
        await record_act(tx, visit, "texts.sender", code, before=before, after=after)
    return redirect(visit, visit.url(COUNTRIES, code), done="Sender and price saved.")


PAGES: Final = (
    Page(path=RULES, needs=Action.READ, handle=show_rules),
    Form(path=f"{RULES}/caps", needs=Action.MANAGE_TEXTS, handle=change_caps, harm=Harm.CHANGES),
    Page(path=COUNTRIES, needs=Action.READ, handle=open_country),
    Page(path=f"{COUNTRIES}/{{country}}", needs=Action.READ, handle=show_country),
    Form(path=f"{COUNTRIES}/{{country}}/hours", needs=Action.MANAGE_TEXTS, handle=change_hours, harm=Harm.CHANGES),
    Form(
        path=f"{COUNTRIES}/{{country}}/default-hours", needs=Action.MANAGE_TEXTS, handle=reset_hours, harm=Harm.CHANGES
    ),
    Form(path=f"{COUNTRIES}/{{country}}/notice", needs=Action.MANAGE_TEXTS, handle=change_notice, harm=Harm.CHANGES),
    Form(path=f"{COUNTRIES}/{{country}}/sender", needs=Action.MANAGE_TEXTS, handle=change_sender, harm=Harm.CONNECTS),
)
