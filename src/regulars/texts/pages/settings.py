"""The pages of the text settings: choose the SMS provider, send a test text, hold and release all texts."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.consent.phone import read_consent_number
from regulars.kit.address import base_url
from regulars.kit.db import Tx
from regulars.kit.ids import TEXT, new_uuid
from regulars.kit.public_address import PublicAddress
from regulars.kit.vault import AnyVault, VaultError
from regulars.links.origin_kind import OriginKind
from regulars.texts import stops
from regulars.texts.errors import SettingRefused
from regulars.texts.pages.message_view import MESSAGES, check_field, load_texting_of
from regulars.texts.pages.plain_text import QUEUED, read_plain_text
from regulars.texts.providers.gateways import inbound_url
from regulars.texts.request import TextOrder, request_texts
from regulars.texts.settings.change import check_sender, with_rate
from regulars.texts.settings.model import ProviderName, Simulation, SmsSettings, TwilioAccount
from regulars.texts.settings.senders import SENDER_CHARACTERS_MAX
from regulars.texts.settings.store import Texting, change_provider, seal_token
from regulars.web.access import Action
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/settings/texts"
HOLDOUT: Final = f"{PATH}/holdout"
REASON_CHARACTERS_MAX: Final = 200
BRAND_CHARACTERS_MAX: Final = 30
ADDRESS_CHARACTERS_MAX: Final = 160
DELAY_MS_MAX: Final = 7_000
PERCENT_MAX: Final = 100
TOKEN_CHARACTERS_MAX: Final = 100
TEST_TEXT: Final = "This is a test."
PROVIDERS: Final = (
    ("simulator", "Simulator", "sends no real texts; they appear on simulated phones"),
    ("twilio", "Twilio", "sends real texts; they are paused until you release them"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProviderForm:
    """The fields of the form that chooses the provider."""

    provider: ProviderName
    # The changed fields of the settings.
    changes: dict[str, Any]
    token: str
    parts_per_second: str


class SettingsPages:
    def __init__(self, vault: AnyVault, *, address: PublicAddress) -> None:
        self._vault = vault
        self._address = address

    def pages(self) -> tuple[Page, ...]:
        return (
            Page(path=PATH, needs=Action.READ, handle=self.show),
            Page(path=f"{PATH}/provider", needs=Action.MANAGE_TEXTS, handle=self.edit),
            Form(path=f"{PATH}/provider", needs=Action.MANAGE_TEXTS, handle=self.change, harm=Harm.CONNECTS),
            Form(path=f"{PATH}/test", needs=Action.MANAGE_TEXTS, handle=self.test, harm=Harm.CHANGES),
            Page(path=f"{PATH}/hold", needs=Action.HOLD_TEXTS, handle=self.ask_to_hold),
            Form(path=f"{PATH}/hold", needs=Action.HOLD_TEXTS, handle=self.hold, harm=Harm.STOPS),
            Page(path=f"{PATH}/release", needs=Action.MANAGE_TEXTS, handle=self.ask_to_release),
            Form(path=f"{PATH}/release", needs=Action.MANAGE_TEXTS, handle=self.release, harm=Harm.CHANGES),
        )

    async def show(self, visit: Visit, form: FormState | None = None) -> Response:
        """Show the settings, with the form of a test text, which may be refused."""
        async with visit.database.reading() as tx:
            texting = await load_texting_of(tx, visit)
        values: dict[str, Any] = {"texting": texting, "inbound": self._inbound_url(visit, texting)}
        return render_form(visit, "texts/settings.html", form or FormState({"words": TEST_TEXT}), **values)

    def _inbound_url(self, visit: Visit, texting: Texting) -> str | None:
        """The URL to which Twilio delivers replies. It contains a secret token, so few users see it."""
        if texting.provider != "twilio" or not visit.may(Action.MANAGE_TEXTS):
            return None
        host = visit.request.headers.get("host", "").encode("latin-1")
        return inbound_url(self._address.url or base_url(visit.request.scope, host), texting)

    async def edit(self, visit: Visit, form: FormState | None = None) -> Response:
        async with visit.database.reading() as tx:
            texting = await load_texting_of(tx, visit)
        values: dict[str, Any] = {
            "texting": texting,
            "providers": PROVIDERS,
            "has_public_url": bool(self._address.callback_url),
        }
        return render_form(visit, "texts/provider.html", form or FormState(_as_form(texting)), **values)

    async def change(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=self.edit)
        async with visit.database.reading() as tx:
            texting = await load_texting_of(tx, visit)
        entered = _read_form(form, texting)
        with form.refusing("provider", SettingRefused, VaultError):
            token = texting.encrypted_token
            if entered.token:
                # A new token was entered; it is stored encrypted.
                token = seal_token(self._vault, visit.organization_id, entered.token)
            async with visit.database.transaction() as tx:
                texting = await load_texting_of(tx, visit, is_to_change=True)
                settings = msgspec.structs.replace(texting.settings, **entered.changes)
                if entered.provider == "twilio":
                    settings = with_rate(settings, settings.sender_of(None), entered.parts_per_second)
                changed = await change_provider(
                    tx, visit.organization_id, texting, provider=entered.provider, settings=settings, token=token
                )
                await _record(tx, visit, "texts.provider", before=_as_audit(texting), after=_as_audit(changed))
        done = "Provider saved." + (" All texts are paused until you release them." if changed.is_on_hold else "")
        return redirect(visit, visit.url(PATH), done=done)

    async def test(self, visit: Visit) -> Response:
        """Send a test text. It is checked like every text, and the page of the text shows the result."""
        form = FormState(visit.form, again=self.show)
        number = check_field(form, "number", lambda: read_consent_number(form.value("number").strip())) or ""
        text = read_plain_text(form, "words")
        form.check()
        async with visit.database.transaction() as tx:
            texting = await load_texting_of(tx, visit)
            order = TextOrder(
                origin_kind=OriginKind.PERSON, origin_id=new_uuid(), step="test", rendered=text, phone_number=number
            )
            [placed] = await request_texts(tx, visit.organization_id, [order], texting=texting)
            await record_act(tx, visit, "text.test", TEXT.encode(placed.id))
        return redirect(visit, visit.url(MESSAGES, TEXT.encode(placed.id)), done=QUEUED)

    async def ask_to_hold(self, visit: Visit, form: FormState | None = None) -> Response:
        return render_form(visit, "texts/hold.html", form or FormState())

    async def hold(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=self.ask_to_hold)
        reason = form.text("reason", characters_max=REASON_CHARACTERS_MAX)
        form.check()
        async with visit.database.transaction() as tx:
            texting = await load_texting_of(tx, visit, is_to_change=True)
            await stops.hold(tx, visit.organization_id, texting, reason=reason)
            await _record(tx, visit, "texts.hold", after={"reason": reason})
        return redirect(visit, visit.url(PATH), done="All texts paused. Nothing is sent until you release them.")

    async def ask_to_release(self, visit: Visit, form: FormState | None = None) -> Response:
        async with visit.database.reading() as tx:
            texting = await load_texting_of(tx, visit)
        return render_form(visit, "texts/release.html", form or FormState(), texting=texting)

    async def release(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=self.ask_to_release)
        reason = form.text("reason", characters_max=REASON_CHARACTERS_MAX)
        form.check()
        async with visit.database.transaction() as tx:
            texting = await load_texting_of(tx, visit, is_to_change=True)
            await stops.release(tx, visit.organization_id, texting)
            before = {"reason": texting.held_reason}
            await _record(tx, visit, "texts.release", before=before, after={"reason": reason})
        return redirect(visit, visit.url(PATH), done="All texts released. Those that have not expired are sent now.")


def _as_form(texting: Texting) -> dict[str, str]:
    settings = texting.settings
    rate = settings.parts_per_second.get(settings.sender_of(None) or "")
    return {
        "provider": texting.provider,
        "brand": settings.brand or "",
        "help_contact": settings.help_contact or "",
        "postal_address": settings.postal_address or "",
        "account_sid": settings.twilio.account_sid if settings.twilio else "",
        "sender": settings.twilio.sender if settings.twilio else "",
        "parts_per_second": "" if rate is None else f"{rate:g}",
        "fails": f"{settings.simulation.fails * PERCENT_MAX:.0f}",
        "loses": f"{settings.simulation.loses * PERCENT_MAX:.0f}",
        "delay_ms": str(settings.simulation.delay_ms),
    }


def _read_form(form: FormState, texting: Texting) -> _ProviderForm:
    """The fields of the form. Only the fields of the chosen provider are required."""
    chosen = form.choice("provider", [value for value, _, _ in PROVIDERS])
    brand = form.text("brand", required=False, characters_max=BRAND_CHARACTERS_MAX)
    contact = form.text("help_contact", required=False, characters_max=80)
    address = form.text("postal_address", required=False, characters_max=ADDRESS_CHARACTERS_MAX)
    simulation, twilio = texting.settings.simulation, texting.settings.twilio
    token, rate = form.value("auth_token").strip(), ""
    if chosen == "simulator":
        fails = form.integer("fails", minimum=0, maximum=PERCENT_MAX)
        loses = form.integer("loses", minimum=0, maximum=PERCENT_MAX)
        if not form.is_refused and fails + loses > PERCENT_MAX:
            form.refuse("loses", "Refusals and unknown outcomes must add up to at most 100 percent.")
        delay_ms = form.integer("delay_ms", minimum=0, maximum=DELAY_MS_MAX)
        simulation = Simulation(fails / PERCENT_MAX, loses / PERCENT_MAX, delay_ms)
    elif chosen == "twilio":
        account_sid = form.text("account_sid", characters_max=64)
        if account_sid and not account_sid.startswith("AC"):
            form.refuse("account_sid", "It begins with AC. You find it on the first page of Twilio's console.")
        sender = form.text("sender", characters_max=SENDER_CHARACTERS_MAX)
        if sender:
            sender = check_field(form, "sender", lambda: check_sender(sender)) or sender
        rate = form.value("parts_per_second")
        # The rate is set in empty settings only to check it.
        check_field(form, "parts_per_second", lambda: with_rate(SmsSettings(), sender, rate))
        if not token and texting.encrypted_token is None:
            form.refuse("auth_token", "Twilio needs the token of its account.")
        if len(token) > TOKEN_CHARACTERS_MAX or not token.isascii():
            form.refuse("auth_token", "This is not a token of Twilio.")
        twilio = TwilioAccount(account_sid, sender)
    form.check()
    changes = {
        "brand": brand or None,
        "help_contact": contact or None,
        "postal_address": address or None,
        "simulation": simulation,
        "twilio": twilio,
    }
    provider: ProviderName = "twilio" if chosen == "twilio" else "simulator"
    token = token if provider == "twilio" else ""
    return _ProviderForm(provider=provider, changes=changes, token=token, parts_per_second=rate)


def _as_audit(texting: Texting) -> dict[str, Any]:
    """The settings for the audit log, without the token."""
    settings = texting.settings
    return {
        "provider": texting.provider,
        "brand": settings.brand,
        "help_contact": settings.help_contact,
        "postal_address": settings.postal_address,
        "account_sid": settings.twilio.account_sid if settings.twilio else None,
        "sender": settings.twilio.sender if settings.twilio else None,
        "parts_per_second": settings.parts_per_second.get(settings.sender_of(None) or ""),
        "simulation": msgspec.structs.asdict(settings.simulation),
    }


async def _record(tx: Tx, visit: Visit, audit_name: str, **change: Any) -> None:
    await record_act(tx, visit, audit_name, "texts", **change)
