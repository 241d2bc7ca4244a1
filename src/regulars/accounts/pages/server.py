"""The page "Server": what concerns all organizations of an installation, its public address and its short links. Most
of it only the administrator can change; the page has the line to send to them."""

import re
from functools import partial
from typing import Final

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of
from regulars.accounts.server_address import AddressRefusal, ServerShared, change_address, read_address
from regulars.kit.public_address import PublicAddress
from regulars.kit.settings import Settings
from regulars.organizations.public_address import has_server_alone
from regulars.web.access import Action
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/settings/server"
TEMPLATE: Final = "accounts/server.html"
URL_CHARACTERS_MAX: Final = 255
_PLAIN: Final = re.compile(r"https://[a-z0-9.-]+(:[0-9]+)?")


class ServerPages:
    def __init__(self, settings: Settings, address: PublicAddress) -> None:
        self._settings = settings
        self._address = address

    def pages(self) -> tuple[Page, ...]:
        return (
            Page(path=PATH, needs=Action.MANAGE_ORGANIZATION, handle=self.show),
            Form(path=PATH, needs=Action.MANAGE_SERVER, handle=self.change, harm=Harm.CONNECTS),
        )

    async def show(self, visit: Visit) -> Response:
        # The address in the browser is a good guess only if others can open it too.
        guess = visit.server_url if visit.is_https else ""
        return await self._render(visit, FormState({"address": self._address.url or guess}))

    async def change(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=self._render)
        text = form.text("address", required=False, characters_max=URL_CHARACTERS_MAX)
        if not self._may_change(visit, is_alone=await _is_alone(visit)):
            form.refuse("address", "Only the administrator of the server can change it.")
        form.check()
        url = None
        try:
            url = read_address(text, own_port=_own_port(visit)) if text else None
            await change_address(
                visit.database, visit.organization_id, url, allow=self._settings.webhook_allow, by=actor_of(visit)
            )
        except AddressRefusal as refusal:
            # An administrator pastes the line into a shell, so it has no other characters than those of a plain host.
            form.again = partial(self._render, unreached=url if url is not None and _PLAIN.fullmatch(url) else None)
            raise form.refusal("address", refusal) from None
        except ServerShared:
            sentence = "Another organization has joined this server, so only its administrator can."
            raise form.refusal("address", sentence) from None
        self._address.update(url)
        done = f"The server is {url}." if url else "The server has no public address now."
        return redirect(visit, visit.url(PATH), done=f"{done} All its processes know within 5 seconds.")

    async def _render(self, visit: Visit, form: FormState, *, unreached: str | None = None) -> Response:
        is_alone = await _is_alone(visit)
        values = {"address": self._address, "link_url": self._settings.link_url, "unreached": unreached}
        may_change = self._may_change(visit, is_alone=is_alone)
        return render_form(visit, TEMPLATE, form, is_alone=is_alone, may_change=may_change, **values)

    def _may_change(self, visit: Visit, *, is_alone: bool) -> bool:
        return is_alone and not self._address.is_fixed and visit.may(Action.MANAGE_SERVER)


async def _is_alone(visit: Visit) -> bool:
    async with visit.database.reading() as tx:
        return await has_server_alone(tx, visit.organization_id)


def _own_port(visit: Visit) -> int:
    server = visit.request.scope.get("server") or ("", 0)
    return int(server[1] or 0)
