"""`regulars sms`: choose the SMS provider, set the sending rules, hold and release all texts of an organization."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer

from regulars.cli.address import find_address
from regulars.cli.output import CommandError, ExitCode, err, print_json
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, change, run
from regulars.cli.sms_holdout import app as holdout_app
from regulars.cli.sms_settings import load_sms_settings, lock_sms_settings
from regulars.kit.clock import format_timestamp
from regulars.kit.time_zones import find_zone
from regulars.sales.totals.progress import find_time_zone
from regulars.texts import stops
from regulars.texts.providers.gateways import inbound_url
from regulars.texts.public_holidays import ClosedDays, NamedDays, find_closed_days
from regulars.texts.settings import model
from regulars.texts.settings.change import (
    change_settings,
    check_country,
    check_sender,
    describe_sender,
    with_caps,
    with_hours,
    with_notice,
    with_price,
    with_rate,
    with_sender,
)
from regulars.texts.settings.store import Texting, change_provider, seal_token

app = typer.Typer(no_args_is_help=True)
provider_app = typer.Typer(no_args_is_help=True, help="Show and choose the SMS provider.")
rules_app = typer.Typer(no_args_is_help=True, help="Show and set sending hours, limits and opt-out notices.")
app.add_typer(provider_app, name="provider")
app.add_typer(rules_app, name="rules")
app.add_typer(holdout_app, name="holdout")


@app.command()
def hold(
    organization: OfOrganization,
    reason: Annotated[str, typer.Option(help="Reason, for the pages and the audit log.")] = "Held by a person.",
) -> None:
    """Stop all texts of an organization; waiting texts stay queued."""

    async def hold_texts(context: CommandContext) -> None:
        await stops.hold(context.tx, context.organization_id, await lock_sms_settings(context), reason=reason)

    change(organization, hold_texts, "texts.hold", "texts", after={"reason": reason})
    err.print("On hold: nothing is sent until `regulars sms release`.", markup=False)


@app.command()
def release(organization: OfOrganization) -> None:
    """Send the texts of an organization again; texts that are too old by now are skipped."""

    async def work(context: CommandContext) -> None:
        texting = await lock_sms_settings(context)
        await stops.release(context.tx, context.organization_id, texting)
        await context.record("texts.release", "texts", before={"reason": texting.held_reason})

    run(organization, work)
    err.print("Released.", markup=False)


@provider_app.command("show")
def show_provider(organization: OfOrganization, as_json: AsJson = False) -> None:
    """Show the SMS provider, without its secrets."""
    data = _provider_as_data(run(organization, load_sms_settings))
    if as_json:
        print_json(data)
        return
    for name, value in data.items():
        err.print(f"{name}: {format_timestamp(value) if isinstance(value, datetime) else value}", markup=False)


@provider_app.command("set")
def set_provider(
    organization: OfOrganization,
    provider: Annotated[str, typer.Argument(help="`simulator` or `twilio`.")],
    *,
    brand: Annotated[str | None, typer.Option(help="Name at the start of every text.")] = None,
    help_contact: Annotated[
        str | None, typer.Option(help="Contact in the answer to HELP: an address or a number.")
    ] = None,
    postal_address: Annotated[
        str | None, typer.Option(help="Postal address of the brand, for the certificate of consent.")
    ] = None,
    account_sid: Annotated[str | None, typer.Option(help="Twilio: account SID.")] = None,
    auth_token: Annotated[
        str | None, typer.Option(envvar="TWILIO_AUTH_TOKEN", help="Twilio: auth token; better set in the environment.")
    ] = None,
    sender: Annotated[str | None, typer.Option(help="Twilio: number, short code, name or messaging service.")] = None,
    parts_per_second: Annotated[
        str | None, typer.Option(help="Twilio: parts per second of the sender; empty for the default.")
    ] = None,
    fails: Annotated[float, typer.Option(min=0, max=1, help="Simulator: share of texts that fail.")] = 0.0,
    loses: Annotated[float, typer.Option(min=0, max=1, help="Simulator: share with unknown delivery.")] = 0.0,
    delay_ms: Annotated[int, typer.Option(min=0, max=7_000, help="Simulator: delay of each text.")] = 0,
) -> None:
    """Choose the SMS provider. After a change texts are on hold until `regulars sms release`."""
    if provider not in {"simulator", "twilio"}:
        raise CommandError("The provider must be simulator or twilio.", code=ExitCode.USAGE)

    async def work(context: CommandContext) -> Texting:
        texting = await lock_sms_settings(context)
        settings = texting.settings
        changed = msgspec.structs.replace(
            settings,
            brand=brand or settings.brand,
            help_contact=help_contact or settings.help_contact,
            postal_address=postal_address or settings.postal_address,
            simulation=model.Simulation(fails, loses, delay_ms),
        )
        name: model.ProviderName = "simulator"
        sealed_token = texting.encrypted_token
        if provider == "twilio":
            name = "twilio"
            account = _merge_account(changed, account_sid, sender)
            changed = msgspec.structs.replace(changed, twilio=account)
            if parts_per_second is not None:
                changed = with_rate(changed, account.sender, parts_per_second)
            if auth_token is not None:
                sealed_token = seal_token(context.vault, context.organization_id, auth_token)
            if sealed_token is None:
                raise CommandError("Twilio needs an auth token; set TWILIO_AUTH_TOKEN.", code=ExitCode.USAGE)
        after = await change_provider(
            context.tx, context.organization_id, texting, provider=name, settings=changed, token=sealed_token
        )
        recorded = {"provider": after.provider, "brand": after.brand}
        await context.record("texts.provider", "texts", before={"provider": texting.provider}, after=recorded)
        return after

    async def work_and_find_address(context: CommandContext) -> tuple[Texting, str]:
        return await work(context), await find_address(context.tx)

    texting, base_url = run(organization, work_and_find_address, needs_vault=True)
    err.print(f"Texts are sent by {texting.provider}." + (" They are on hold." if texting.is_on_hold else ""))
    if texting.provider == "twilio":
        err.print(f"Enter this address at Twilio for incoming messages: {inbound_url(base_url, texting)}")


@rules_app.command("show")
def show_rules(organization: OfOrganization, as_json: AsJson = False) -> None:
    """Show sending hours, limits and opt-out notices."""
    data = _rules_as_data(run(organization, load_sms_settings).settings)
    if as_json:
        print_json(data)
        return
    for country, hours in data["hours"].items():
        err.print(f"{country}: " + ", ".join(f"{day} {text}" for day, text in hours.items()), markup=False)
    for cap in data["caps"]:
        err.print(f"At most {cap['texts']} texts in {cap['hours']} hours to one number.")
    for country, notice in data["notices"].items():
        err.print(f"{country}: texts end with {notice['words']} (opt-out by {notice['reply_path']})", markup=False)
    for country, sender in data["senders"].items():
        err.print(f"{country}: texts come from {sender}", markup=False)
    for country, price in data["prices"].items():
        err.print(f"{country}: a part costs {price['amount']} {price['currency']}", markup=False)
    for sender, rate in data["parts_per_second"].items():
        err.print(f"{sender}: at most {rate:g} parts per second", markup=False)


@rules_app.command("holidays")
def show_holidays(
    organization: OfOrganization,
    country: Annotated[str, typer.Argument(help="Country code, such as FR.")],
    as_json: AsJson = False,
) -> None:
    """Show the public holidays of the next twelve months, on which no text is sent unless the rules allow it."""
    closed_days = run(organization, lambda context: _load_closed_days(context, country))
    if as_json:
        print_json(_closed_days_as_data(closed_days))
        return
    _print_closed_days(closed_days)


@rules_app.command("set")
def set_rules(
    organization: OfOrganization,
    *,
    country: Annotated[str | None, typer.Option(help="Country of the hours or the notice.")] = None,
    hours: Annotated[
        list[str] | None, typer.Option(help="Sending hours, such as Monday=8-20 or Sunday=closed.")
    ] = None,
    on_holidays: Annotated[bool | None, typer.Option(help="Whether to send on public holidays.")] = None,
    notice: Annotated[str | None, typer.Option(help="Opt-out notice at the end of every text.")] = None,
    reply_path: Annotated[str | None, typer.Option(help="Number or keyword for opting out.")] = None,
    cap: Annotated[list[str] | None, typer.Option(help="Limits as TEXTS/HOURS, such as 1/24; replace all.")] = None,
) -> None:
    """Change sending hours, notices and limits; prints a warning if they are looser than the default."""
    hours_by_day = dict(_read_day_hours(text) for text in hours or [])

    async def work(context: CommandContext) -> tuple[list[str], ClosedDays | None]:
        texting = await lock_sms_settings(context)
        settings, warnings = texting.settings, list[str]()
        closed_days = None
        if country is not None and (hours_by_day or on_holidays is not None):
            settings, warnings = with_hours(settings, country, hours_by_day, on_holidays=on_holidays)
            if not settings.rule_of(check_country(country)).on_holidays:
                closed_days = await _load_closed_days(context, country)
        if country is not None and notice is not None:
            settings = with_notice(settings, country, words=notice, reply_path=reply_path or "")
        if cap:
            settings, cap_warnings = with_caps(settings, tuple(_read_cap(text) for text in cap))
            warnings = [*warnings, *cap_warnings]
        await change_settings(context.tx, context.organization_id, texting, settings)
        options = {"country": country, "hours": hours_by_day, "on_holidays": on_holidays, "notice": notice, "caps": cap}
        after = {name: value for name, value in options.items() if value not in (None, {})}
        await context.record("texts.rules", "texts", after=after)
        return warnings, closed_days

    if country is None and (hours_by_day or notice is not None or on_holidays is not None):
        raise CommandError("Hours and notices belong to a country: add --country.", code=ExitCode.USAGE)
    warnings, closed_days = run(organization, work)
    if closed_days is not None:
        err.print("No texts on these public holidays of the next twelve months:")
        _print_closed_days(closed_days)
    for warning in warnings:
        err.print(f"Looser than the default: {warning}", style="yellow", markup=False)
    err.print("Saved.", markup=False)


@rules_app.command("set-sender")
def set_sender(
    organization: OfOrganization,
    country: Annotated[str, typer.Argument(help="Country code, such as FR.")],
    *,
    sender: Annotated[str | None, typer.Option(help="Sender of texts; empty for the account's sender.")] = None,
    parts_per_second: Annotated[str | None, typer.Option(help="Rate of this sender; empty for the default.")] = None,
    price: Annotated[str | None, typer.Option(help="Price of a part, such as '0.0725 EUR'; empty for none.")] = None,
) -> None:
    """Set the sender of texts to a country, its rate, and the price of a part; only what is given changes."""

    async def work(context: CommandContext) -> None:
        texting = await lock_sms_settings(context)
        settings, code = texting.settings, check_country(country)
        if sender is not None:
            settings = with_sender(settings, code, sender or None)
        if parts_per_second is not None:
            settings = with_rate(settings, settings.senders.get(code), parts_per_second)
        if price is not None:
            amount, _, currency = price.strip().partition(" ")
            settings = with_price(settings, code, amount, currency.strip())
        await change_settings(context.tx, context.organization_id, texting, settings)
        before, after = describe_sender(texting.settings, code), describe_sender(settings, code)
        await context.record("texts.sender", code, before=before, after=after)

    run(organization, work)
    err.print("Saved.", markup=False)


async def _load_closed_days(context: CommandContext, country: str) -> ClosedDays:
    zone = find_zone(await find_time_zone(context.tx, context.organization_id))
    today = context.tx.now.astimezone(zone).date()
    return await find_closed_days(context.tx, context.organization_id, check_country(country), today=today)


def _print_closed_days(closed_days: ClosedDays) -> None:
    for day, name in closed_days.everywhere:
        err.print(f"{day:%Y-%m-%d %a}  {name}", markup=False)
    if not closed_days.everywhere:
        err.print("No public holidays of this country are known.")
    for region, days in closed_days.regions.items():
        for state, holidays in (("also closed", days.closed), ("open", days.opened)):
            for day, name in holidays:
                err.print(f"{day:%Y-%m-%d %a}  {name} ({state} for customers of stores in {region})", markup=False)


def _closed_days_as_data(closed_days: ClosedDays) -> dict[str, Any]:
    regions = {
        region: {"closed": _days_as_data(days.closed), "open": _days_as_data(days.opened)}
        for region, days in closed_days.regions.items()
    }
    return {"everywhere": _days_as_data(closed_days.everywhere), "regions": regions}


def _days_as_data(days: NamedDays) -> list[dict[str, str]]:
    return [{"day": day.isoformat(), "name": name} for day, name in days]


def _merge_account(settings: model.SmsSettings, account_sid: str | None, sender: str | None) -> model.TwilioAccount:
    stored = settings.twilio
    account_sid = account_sid or (stored.account_sid if stored else None)
    sender = check_sender(sender) if sender else (stored.sender if stored else None)
    if account_sid is None or sender is None:
        raise CommandError("Twilio needs --account-sid and --sender.", code=ExitCode.USAGE)
    return model.TwilioAccount(account_sid, sender)


def _read_day_hours(text: str) -> tuple[str, str]:
    day, equals, hours = text.partition("=")
    if not equals:
        raise CommandError(f"'{text}' is not DAY=HOURS, for example Monday=8-20.", code=ExitCode.USAGE)
    return day.strip(), hours


def _read_cap(text: str) -> model.Cap:
    texts, slash, hours = text.partition("/")
    if not slash or not texts.isdecimal() or not hours.isdecimal():
        raise CommandError(f"'{text}' is not TEXTS/HOURS, for example 1/24.", code=ExitCode.USAGE)
    return model.Cap(int(texts), int(hours))


def _provider_as_data(texting: Texting) -> dict[str, Any]:
    account = texting.settings.twilio
    simulation = texting.settings.simulation
    return {
        "provider": texting.provider,
        "brand": texting.brand,
        "help_contact": texting.settings.help_contact,
        "postal_address": texting.settings.postal_address,
        "account_sid": account.account_sid if account else None,
        "sender": account.sender if account else None,
        "simulation": {"fails": simulation.fails, "loses": simulation.loses, "delay_ms": simulation.delay_ms},
        "held_since": texting.held_since,
        "held_reason": texting.held_reason,
        "replies_read_until": texting.inbound_progress.read_until,
        "replies_error": texting.inbound_progress.error,
    }


def _rules_as_data(settings: model.SmsSettings) -> dict[str, Any]:
    countries = {**model.DEFAULT_RULES, **settings.rules}
    return {
        "hours": {country: _hours_by_day(rule) for country, rule in sorted(countries.items())},
        "hours_elsewhere": _hours_by_day(model.default_rule("")),
        "caps": [{"texts": cap.texts, "hours": cap.hours} for cap in settings.caps],
        "notices": {
            country: {"words": notice.words, "reply_path": notice.reply_path}
            for country, notice in sorted(settings.notices.items())
        },
        "senders": dict(sorted(settings.senders.items())),
        "prices": {
            country: {"amount": f"{price.amount:f}", "currency": price.currency}
            for country, price in sorted(settings.prices.items())
        },
        "parts_per_second": dict(sorted(settings.parts_per_second.items())),
    }


def _hours_by_day(rule: model.SendHoursRule) -> dict[str, str]:
    hours = {
        day: "closed" if window is None else f"{_clock_time(window.opens_minute)}-{_clock_time(window.closes_minute)}"
        for day, window in zip(model.DAYS, rule.days, strict=True)
    }
    return {**hours, "holidays": "open" if rule.on_holidays else "closed"}


def _clock_time(minute: int) -> str:
    return f"{minute // 60}:{minute % 60:02d}"
