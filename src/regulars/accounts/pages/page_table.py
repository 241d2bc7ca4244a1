"""The list of all pages about accounts: sign-in, one-time links, account, organization, team and audit log."""

from collections.abc import Sequence

from regulars.accounts.pages import audit, organization, team
from regulars.accounts.pages.account import AccountPages
from regulars.accounts.pages.links import OneTimeLinkPages
from regulars.accounts.pages.server import ServerPages
from regulars.accounts.pages.sign_in import SignInPages
from regulars.accounts.passwords import Passwords
from regulars.kit.public_address import PublicAddress
from regulars.kit.settings import Settings
from regulars.kit.vault import AnyVault
from regulars.web.route import Page


def pages(vault: AnyVault, settings: Settings, address: PublicAddress) -> Sequence[Page]:
    passwords = Passwords()
    return (
        *SignInPages(passwords, vault).pages(),
        *OneTimeLinkPages(passwords).pages(),
        *AccountPages(passwords, vault).pages(),
        *organization.PAGES,
        *ServerPages(settings, address).pages(),
        *team.PAGES,
        *audit.PAGES,
    )
