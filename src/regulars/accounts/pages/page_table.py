"""The list of all pages about accounts: sign-in, one-time links, account, organization, team and audit log."""

from collections.abc import Sequence

from regulars.accounts.pages import audit, organization
from regulars.accounts.pages.account import AccountPages
from regulars.accounts.pages.links import OneTimeLinkPages
from regulars.accounts.pages.sign_in import SignInPages
from regulars.accounts.pages.team import TeamPages
from regulars.accounts.passwords import Passwords
from regulars.kit.vault import AnyVault
from regulars.web.route import Page


def pages(vault: AnyVault, *, public_url: str | None, first_steps: str) -> Sequence[Page]:
    """Return all pages. `public_url` is the base of one-time links; without it they use the address in the maker's
    browser. `first_steps` is the page that the first owner of a new organization sees.
    """
    passwords = Passwords()
    return (
        *SignInPages(passwords, vault).pages(),
        *OneTimeLinkPages(passwords, first_steps).pages(),
        *AccountPages(passwords, vault).pages(),
        *organization.PAGES,
        *TeamPages(public_url or "").pages(),
        *audit.PAGES,
    )
