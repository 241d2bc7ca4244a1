"""The page behind a one-time link: a form for a new member, a new password or the first owner. Only sending the form
uses the link."""

from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from regulars.accounts import link_use, second_factor
from regulars.accounts import sign_in_attempts as attempts
from regulars.accounts.errors import LinkUnusable, TooManyAttempts
from regulars.accounts.invitation_form import read_form_email
from regulars.accounts.links import LINK_PATH, Link, Purpose
from regulars.accounts.model import NAME_CHARACTERS_MAX, Account
from regulars.accounts.pages.location_guess import countries, guess_country, read_zone_of_country, refuse_zone, zones
from regulars.accounts.pages.sign_in_responses import (
    ORGANIZATIONS_PATH,
    SIGN_IN_PATH,
    begin_session,
    read_new_password,
    redirect_signed_in,
)
from regulars.accounts.passwords import Passwords
from regulars.accounts.sign_in import check_password, record_sign_in, uncounted_on_error
from regulars.accounts.users import find_memberships
from regulars.kit.db import Tx
from regulars.organizations.settings import ForeignZone, NameTaken
from regulars.web.access import Role
from regulars.web.form import FormState
from regulars.web.navigation import DEVELOPER_STEPS, FIRST_STEPS
from regulars.web.render import redirect, render, render_form
from regulars.web.route import Audience, Form, Harm, Page
from regulars.web.visit import Visit

ORGANIZATION_NAME_CHARACTERS_MAX: Final = 255
GONE: Final = 410
TEMPLATES: Final = {
    Purpose.INVITATION: "accounts/link_invitation.html",
    Purpose.PASSWORD: "accounts/link_password.html",
    Purpose.FIRST_OWNER: "accounts/link_first_owner.html",
}


class OneTimeLinkPages:
    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords

    def pages(self) -> tuple[Page, ...]:
        path = LINK_PATH + "/{token}"  # the handlers read the token from `visit.references`
        return (
            Page(path=path, needs=Audience.OPEN, handle=self.show),
            Form(path=path, needs=Audience.OPEN, handle=self.submit, harm=Harm.CHANGES),
        )

    async def show(self, visit: Visit) -> Response:
        try:
            async with visit.database.reading() as tx:
                link, account = await link_use.inspect_link(tx, visit.references[0])
        except LinkUnusable as refusal:
            return _render_gone(visit, refusal)
        country = guess_country(visit.request.headers.get("accept-language", ""))
        return await _render(visit, FormState({"country": country}), link=link, account=account)

    async def submit(self, visit: Visit) -> Response:
        try:
            async with visit.database.reading() as tx:
                link, account = await link_use.inspect_link(tx, visit.references[0])
            form = FormState(visit.form, again=partial(_render, link=link, account=account))
            if link.purpose is Purpose.FIRST_OWNER:
                return await self._create_first_owner(visit, form)
            if link.purpose is Purpose.PASSWORD:
                return await self._set_password(visit, form, link)
            if account is not None:
                return await self._accept_as_existing(visit, form, link, account)
            return await self._accept_as_new(visit, form, link)
        except LinkUnusable as refusal:
            return _render_gone(visit, refusal)

    async def _accept_as_new(self, visit: Visit, form: FormState, link: Link) -> Response:
        name = form.text("name", characters_max=NAME_CHARACTERS_MAX)
        password = read_new_password(form, email=link.email or "")
        form.check()
        password_hash = await self._passwords.hash(password)
        async with visit.database.transaction() as tx:
            member, _link = await link_use.accept_as_new(
                tx, visit.references[0], name=name, password_hash=password_hash, address=visit.client_address
            )
            token = await begin_session(tx, visit, member.id)
            first_page = await _find_first_page(tx, link, member) or ORGANIZATIONS_PATH
        return redirect_signed_in(visit, token, first_page)

    async def _accept_as_existing(self, visit: Visit, form: FormState, link: Link, account: Account) -> Response:
        """Accept an invitation with an existing account. It needs the password: neither link nor session is enough."""
        if visit.visitor is not None and visit.visitor.id != account.id:
            return await _render(visit, form, link=link, account=account)
        with form.refusing("current", TooManyAttempts):
            check = await check_password(visit, self._passwords, email=account.email, password=form.value("current"))
        if check.matched is None:
            raise form.refusal("current", "Wrong password.")
        address = visit.client_address
        async with uncounted_on_error(visit.database, check.attempt), visit.database.transaction() as tx:
            await link_use.accept_as_existing(
                tx, visit.references[0], account.id, password_hash=check.matched.password_hash, address=address
            )
            done = f"You are now a member of {link.organization_name}."
            first_page = await _find_first_page(tx, link, account) or f"{ORGANIZATIONS_PATH}?choose=1"
            if visit.visitor is not None:
                await attempts.uncount(tx, check.attempt)
                return redirect(visit, first_page, done=done)
            if await second_factor.is_enabled(tx, account.id):
                await attempts.uncount(tx, check.attempt)
                sign_in = f"{SIGN_IN_PATH}?{urlencode({'next': first_page})}"
                return redirect(visit, sign_in, done=f"{done} Sign in with your password and your code.")
            await attempts.record_success(tx, check.attempt)
            await record_sign_in(tx, account.id, account.email, address)
            token = await begin_session(tx, visit, account.id)
        return redirect_signed_in(visit, token, first_page)

    async def _set_password(self, visit: Visit, form: FormState, link: Link) -> Response:
        password = read_new_password(form, email=link.email or "")
        form.check()
        password_hash = await self._passwords.hash(password)
        async with visit.database.transaction() as tx:
            user = await link_use.set_password_by_link(
                tx, visit.references[0], password_hash=password_hash, address=visit.client_address
            )
            if await second_factor.is_enabled(tx, user.id):
                return redirect(visit, SIGN_IN_PATH, done="Your password is changed. Sign in with it and your code.")
            token = await begin_session(tx, visit, user.id)
        return redirect_signed_in(visit, token, ORGANIZATIONS_PATH)

    async def _create_first_owner(self, visit: Visit, form: FormState) -> Response:
        organization = form.text("organization", characters_max=ORGANIZATION_NAME_CHARACTERS_MAX)
        country = form.choice("country", {"", *dict(countries())})
        time_zone = read_zone_of_country(form, country, year=visit.now.year)
        name = form.text("name", characters_max=NAME_CHARACTERS_MAX)
        email = read_form_email(form)
        password = read_new_password(form, email=email)
        form.check()
        password_hash = await self._passwords.hash(password)
        try:
            async with visit.database.transaction() as tx:
                owner, slug = await link_use.create_first_owner(
                    tx,
                    visit.references[0],
                    organization_name=organization,
                    country=country or None,
                    time_zone=time_zone,
                    email=email,
                    name=name,
                    password_hash=password_hash,
                    address=visit.client_address,
                )
                token = await begin_session(tx, visit, owner.id)
            return redirect_signed_in(visit, token, f"/o/{slug}{FIRST_STEPS}")
        except NameTaken:
            sentence = "An organization on this server has this name already; choose another."
            raise form.refusal("organization", sentence) from None
        except ForeignZone as error:
            raise refuse_zone(form, error) from None


async def _find_first_page(tx: Tx, link: Link, account: Account) -> str | None:
    """The page that a developer came for; None for other roles."""
    memberships = await find_memberships(tx, account.id) if link.role is Role.DEVELOPER else []
    return next(
        (f"/o/{it.slug}{DEVELOPER_STEPS}" for it in memberships if it.organization_id == link.organization_id), None
    )


async def _render(visit: Visit, form: FormState, *, link: Link, account: Account | None) -> Response:
    values: dict[str, Any] = {}
    if link.purpose is Purpose.FIRST_OWNER:
        values = {"countries": [("", "Other, or several"), *countries()], "zones": zones()}
    return render_form(visit, TEMPLATES[link.purpose], form, link=link, account=account, **values)


def _render_gone(visit: Visit, refusal: LinkUnusable) -> Response:
    return render(visit, "accounts/link_gone.html", status=GONE, text=str(refusal))
