"""Every page about webhooks, for the composition root."""

from regulars.kit.guard import Guard
from regulars.kit.vault import AnyVault
from regulars.web.route import Page
from regulars.webhooks.pages.checker import CheckerPages
from regulars.webhooks.pages.deliveries import DeliveryPages
from regulars.webhooks.pages.endpoints import EndpointPages


def pages(vault: AnyVault, guard: Guard) -> tuple[Page, ...]:
    return (*EndpointPages(vault, guard).pages(), *DeliveryPages(vault).pages(), *CheckerPages(vault).pages())
