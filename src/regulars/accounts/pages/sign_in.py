"""Sign in with a password, then with a code if the second factor is on; sign out."""

import base64
import binascii
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

import msgspec
from starlette.responses import Response

from regulars.accounts import second_factor, sessions, users
from regulars.accounts import sign_in_attempts as attempts
from regulars.accounts.errors import TooManyAttempts, WrongCode
from regulars.accounts.model import EMAIL_CHARACTERS_MAX, read_email
from regulars.accounts.pages.sign_in_responses import (
    ORGANIZATIONS_PATH,
    SIGN_IN_PATH,
    begin_session,
    redirect_signed_in,
    redirect_signed_out,
)
from regulars.accounts.passwords import Passwords
from regulars.accounts.sign_in import (
    begin_attempt,
    check_password,
    digest_of,
    lock_checked_password,
    record_failure,
    record_sign_in,
    uncounted_on_error,
)
from regulars.kit.vault import AnyVault, VaultError
from regulars.web.form import FormRefused, FormState
from regulars.web.render import redirect, render, render_form
from regulars.web.route import Audience, Form, Harm, Page
from regulars.web.visit import Visit, safe_next

# How long the user may take to enter the code.
CODE_WAIT: Final = timedelta(minutes=5)
FORM: Final = "accounts/sign_in.html"
CODE_FORM: Final = "accounts/sign_in_code.html"


class _PendingSignIn(msgspec.Struct, frozen=True):
    """A sign-in whose password was right and whose code is missing. The code form carries it in the
    field `half`, encrypted so that only the same browser can use it."""

    user_id: UUID
    email: str
    password_digest: str
    is_remembered: bool = msgspec.field(name="is_kept")
    next: str
    until: datetime


class SignInPages:
    def __init__(self, passwords: Passwords, vault: AnyVault) -> None:
        self._passwords = passwords
        self._vault = vault

    def pages(self) -> tuple[Page, ...]:
        return (
            Page(path=SIGN_IN_PATH, needs=Audience.OPEN, handle=self.show),
            Form(path=SIGN_IN_PATH, needs=Audience.OPEN, handle=self.sign_in, harm=Harm.CHANGES),
            Form(path="/sign-in/code", needs=Audience.OPEN, handle=self.submit_code, harm=Harm.CHANGES),
            Form(path="/sign-out", needs=Audience.SIGNED_IN, handle=sign_out, harm=Harm.STOPS),
            Page(path=ORGANIZATIONS_PATH, needs=Audience.SIGNED_IN, handle=show_organizations),
        )

    async def show(self, visit: Visit) -> Response:
        next_ = safe_next(visit.query.get("next"), otherwise="")
        if visit.visitor is not None:
            return redirect(visit, next_ or ORGANIZATIONS_PATH)
        return await _show_form(visit, FormState({"next": next_}))

    async def sign_in(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=_show_form)
        email = read_email(form.text("email", characters_max=EMAIL_CHARACTERS_MAX))
        if email is None:
            form.refuse("email", "Write the address as name@example.com.")
        if not form.value("password"):
            form.refuse("password", "Fill this in.")
        if form.is_refused or email is None:
            raise FormRefused(form)
        address = visit.client_address
        with form.refusing("password", TooManyAttempts):
            check = await check_password(visit, self._passwords, email=email, password=form.value("password"))
        if check.matched is None:
            return await _refuse_wrong_password(visit, form, check.attempt)
        user_id, digest = check.matched.user_id, digest_of(check.matched)
        is_remembered, next_ = form.is_checked("keep"), safe_next(form.value("next"), otherwise=ORGANIZATIONS_PATH)
        async with uncounted_on_error(visit.database, check.attempt), visit.database.transaction() as tx:
            if not await lock_checked_password(tx, email, digest):
                return await _refuse_wrong_password(visit, form, check.attempt)
            if await second_factor.is_enabled(tx, user_id):
                await attempts.uncount(tx, check.attempt)
                pending = _PendingSignIn(user_id, email, digest, is_remembered, next_, visit.now + CODE_WAIT)
                return render(visit, CODE_FORM, form=FormState({"half": self._seal(visit, pending)}))
            await attempts.record_success(tx, check.attempt)
            await record_sign_in(tx, user_id, email, address)
            token = await begin_session(tx, visit, user_id, is_remembered=is_remembered)
        return redirect_signed_in(visit, token, next_, is_remembered=is_remembered)

    async def submit_code(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=partial(_show_form, template=CODE_FORM))
        pending = self._open(visit, form.value("half"))
        if pending is None or visit.now > pending.until:
            return redirect(visit, SIGN_IN_PATH, done="Your sign-in has expired after five minutes: sign in again.")
        address = visit.client_address
        with form.refusing("code", TooManyAttempts):
            attempt = await begin_attempt(visit.database, pending.email, address)
        try:
            async with uncounted_on_error(visit.database, attempt), visit.database.transaction() as tx:
                if not await lock_checked_password(tx, pending.email, pending.password_digest):
                    await attempts.uncount(tx, attempt)
                    return redirect(visit, SIGN_IN_PATH, done="The password has changed: sign in again.")
                await second_factor.check(tx, self._vault, pending.user_id, form.value("code"))
                await attempts.record_success(tx, attempt)
                await record_sign_in(tx, pending.user_id, pending.email, address)
                token = await begin_session(tx, visit, pending.user_id, is_remembered=pending.is_remembered)
        except WrongCode as refusal:
            await record_failure(visit.database, pending.email, address)
            raise form.refusal("code", f"{refusal} {_describe_attempts_left(visit, attempt)}") from None
        return redirect_signed_in(
            visit, token, safe_next(pending.next, otherwise=ORGANIZATIONS_PATH), is_remembered=pending.is_remembered
        )

    def _seal(self, visit: Visit, pending: _PendingSignIn) -> str:
        sealed = self._vault.seal(msgspec.json.encode(pending), context=f"sign-in {visit.csrf}")
        return base64.urlsafe_b64encode(sealed).decode()

    def _open(self, visit: Visit, text: str) -> _PendingSignIn | None:
        try:
            opened = self._vault.open(base64.urlsafe_b64decode(text), context=f"sign-in {visit.csrf}")
            return msgspec.json.decode(opened, type=_PendingSignIn)
        except (VaultError, binascii.Error, ValueError, msgspec.MsgspecError):
            return None


async def sign_out(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        await sessions.end_session(tx, visit.user.id, visit.user.session_id)
    response = redirect_signed_out(visit)
    # The browser also deletes cached pages.
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


async def show_organizations(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        memberships = await users.find_memberships(tx, visit.user.id)
    if len(memberships) == 1 and "choose" not in visit.query:
        return redirect(visit, f"/o/{memberships[0].slug}/")
    return render(visit, "accounts/organizations.html", memberships=memberships)


async def _show_form(visit: Visit, form: FormState, *, template: str = FORM) -> Response:
    return render_form(visit, template, form)


async def _refuse_wrong_password(visit: Visit, form: FormState, attempt: attempts.Attempt) -> Response:
    form.refuse("password", f"The address or the password is wrong. {_describe_attempts_left(visit, attempt)}")
    return await _show_form(visit, form)


def _describe_attempts_left(visit: Visit, attempt: attempts.Attempt) -> str:
    if attempt.left <= 0:
        return "No attempts are left for the next 15 minutes."
    return f"{visit.format.count(attempt.left, 'attempt is', 'attempts are')} left in the next 15 minutes."
