"""The pages where users change their own account: name and locale, password, second factor, sessions."""

from functools import partial
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from regulars.accounts import queries, second_factor, sessions, users
from regulars.accounts import sign_in_attempts as attempts
from regulars.accounts.audit.log import actor_of
from regulars.accounts.errors import FactorIsOn, TooManyAttempts, WrongCode
from regulars.accounts.model import NAME_CHARACTERS_MAX
from regulars.accounts.pages.sign_in_responses import (
    ACCOUNT_PATH,
    read_new_password,
    redirect_signed_out,
)
from regulars.accounts.passwords import Passwords
from regulars.accounts.sessions import browser_of
from regulars.accounts.sign_in import check_password, confirm_password, record_failure, uncounted_on_error
from regulars.kit import ids
from regulars.kit.vault import AnyVault, VaultError
from regulars.web.form import FormState
from regulars.web.format import LOCALES
from regulars.web.render import redirect, render, render_form
from regulars.web.route import Audience, Form, Harm, Page
from regulars.web.visit import Visit

FACTOR_PATH: Final = "/account/second-factor"
SESSIONS_PATH: Final = "/account/sessions"
SESSION_ID: Final = ids.IdKind("session", "ses_")
WRONG_PASSWORD: Final = "Wrong password."  # noqa: S105  # a sentence


class AccountPages:
    def __init__(self, passwords: Passwords, vault: AnyVault) -> None:
        self._passwords = passwords
        self._vault = vault

    def pages(self) -> tuple[Page, ...]:
        signed_in = Audience.SIGNED_IN
        disable_factor = partial(self._disable_or_renew, turns_off=True)
        renew_codes = partial(self._disable_or_renew, turns_off=False)
        return (
            Page(path=ACCOUNT_PATH, needs=signed_in, handle=self.show),
            Form(path=ACCOUNT_PATH, needs=signed_in, handle=self.change, harm=Harm.CHANGES),
            Form(path="/account/password", needs=signed_in, handle=self.change_password, harm=Harm.CHANGES),
            Page(path=FACTOR_PATH, needs=signed_in, handle=self.show_factor),
            Form(path=FACTOR_PATH, needs=signed_in, handle=self.enable_factor, harm=Harm.CHANGES),
            Form(path="/account/second-factor/off", needs=signed_in, handle=disable_factor, harm=Harm.CHANGES),
            Form(path="/account/second-factor/codes", needs=signed_in, handle=renew_codes, harm=Harm.CHANGES),
            Page(path=SESSIONS_PATH, needs=signed_in, handle=show_sessions),
            Form(path="/account/sessions/all", needs=signed_in, handle=sign_out_everywhere, harm=Harm.STOPS),
            Form(path="/account/sessions/{session}", needs=signed_in, handle=end_session, harm=Harm.STOPS),
        )

    async def show(self, visit: Visit) -> Response:
        return await _render_account(visit)

    async def change(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=_render_account)
        name = form.text("name", characters_max=NAME_CHARACTERS_MAX)
        locale = form.choice("locale", {"", *LOCALES})
        form.check()
        async with visit.database.transaction() as tx:
            await queries.set_name_and_locale(tx, visit.user.id, name=name, locale=locale or None)
        return redirect(visit, ACCOUNT_PATH, done="Your account is saved.")

    async def change_password(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=_show_refused_password)
        await self._check_password(visit, form)
        password = read_new_password(form, email=visit.user.email)
        form.check()
        password_hash = await self._passwords.hash(password)
        async with visit.database.transaction() as tx:
            ended = await users.change_password(
                tx, actor_of(visit), visit.user.id, password_hash=password_hash, session_id=visit.user.session_id
            )
        return redirect(visit, ACCOUNT_PATH, done=f"Your password is changed; {ended} other sessions were signed out.")

    async def enable_factor(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=self.show_factor)
        await self._check_password(visit, form)
        form.check()
        secret = form.value("secret")
        try:
            async with visit.database.transaction() as tx:
                codes = await users.enable_second_factor(
                    tx, self._vault, actor_of(visit), visit.user.id, secret=secret, code=form.value("code")
                )
        except (WrongCode, FactorIsOn, VaultError) as refusal:
            raise form.refusal("code", refusal) from None
        except ValueError:
            raise form.refusal("code", "The setup key is missing; reload this page.") from None
        return redirect(visit, FACTOR_PATH, done="The second factor is on.", show_once=" ".join(codes))

    async def _disable_or_renew(self, visit: Visit, *, turns_off: bool) -> Response:
        """Check password and code together, as one attempt: the password alone is not enough to create new recovery
        codes or to turn the second factor off."""
        form, user, by = FormState(visit.form, again=self.show_factor), visit.user, actor_of(visit)
        try:
            check = await check_password(visit, self._passwords, email=user.email, password=form.value("current"))
            if check.matched is None:
                raise form.refusal("current", WRONG_PASSWORD)
            async with uncounted_on_error(visit.database, check.attempt), visit.database.transaction() as tx:
                await second_factor.check(tx, self._vault, user.id, form.value("code"))
                await attempts.record_success(tx, check.attempt)
                if turns_off:
                    await users.disable_second_factor(tx, by, user.id)
                    return redirect(visit, FACTOR_PATH, done="The second factor is off.")
                codes = await users.renew_recovery_codes(tx, by, user.id)
        except TooManyAttempts as refusal:
            raise form.refusal("current", refusal) from None
        except WrongCode as refusal:
            await record_failure(visit.database, user.email, visit.client_address)
            raise form.refusal("code", refusal) from None
        return redirect(visit, FACTOR_PATH, done="The old recovery codes no longer work.", show_once=" ".join(codes))

    async def show_factor(self, visit: Visit, form: FormState | None = None) -> Response:
        form = form or FormState()
        async with visit.database.reading() as tx:
            is_on = await second_factor.is_enabled(tx, visit.user.id)
            codes_left = await second_factor.count_recovery_codes(tx, visit.user.id)
        # A refused form shows its secret again, so that the user need not scan another QR code.
        secret = form.value("secret") if _is_secret(form.value("secret")) else None
        setup = None if is_on else second_factor.new_setup(visit.user.email, secret)
        return render_form(
            visit,
            "accounts/second_factor.html",
            form,
            is_on=is_on,
            codes_left=codes_left,
            setup=setup,
            picture=Markup(setup.qr_svg) if setup else "",  # noqa: S704  # one <svg> path, made from our own text
        )

    async def _check_password(self, visit: Visit, form: FormState) -> None:
        """Refuse the field `current`, the password, if it is wrong."""
        try:
            if not await confirm_password(visit, self._passwords, form.value("current")):
                form.refuse("current", WRONG_PASSWORD)
        except TooManyAttempts as refusal:
            form.refusal("current", refusal)


async def show_sessions(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        active = await sessions.list_sessions(tx, visit.user.id)
    rows = [(SESSION_ID.encode(session.id), browser_of(session.agent), session) for session in active]
    return render(visit, "accounts/sessions.html", sessions=rows)


async def end_session(visit: Visit) -> Response:
    identifier = SESSION_ID.decode(visit.references[0])
    async with visit.database.transaction() as tx:
        ended = identifier is not None and await sessions.end_session(tx, visit.user.id, identifier)
    if identifier == visit.user.session_id:
        return redirect_signed_out(visit)
    return redirect(visit, SESSIONS_PATH, done="The browser is signed out." if ended else "That session had ended.")


async def sign_out_everywhere(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        await sessions.end_sessions(tx, visit.user.id)
    return redirect_signed_out(visit)


async def _show_refused_password(visit: Visit, form: FormState) -> Response:
    return await _render_account(visit, password_form=form)


async def _render_account(
    visit: Visit, form: FormState | None = None, *, password_form: FormState | None = None
) -> Response:
    """Show the account, with one of its two forms if that was refused."""
    refused = form or password_form or FormState()
    async with visit.database.reading() as tx:
        account = await users.find_account(tx, visit.user.id)
    locales = [("", "Use the organization's setting"), *LOCALES.items()]
    return render_form(
        visit,
        "accounts/account.html",
        refused,
        details_form=form or FormState({"name": visit.user.name, "locale": visit.user.locale or ""}),
        password_form=password_form or FormState(),
        account=account,
        locales=locales,
    )


def _is_secret(text: str) -> bool:
    return len(text) == 32 and set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")  # noqa: PLR2004  # base 32
