"""The page "Server": what concerns all organizations of an installation, its public address and its short links. Most
of it only the administrator can change; the page has the line to send to them."""

import re
from typing import Any, Final

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of
from regulars.accounts.server_address import AddressRefusal, ServerShared, change_address, read_address
from regulars.kit.public_address import PublicAddress
from regulars.kit.settings import Settings
from regulars.organizations.public_address import has_server_alone
from regulars.web.access import Action
from regulars.web.form import FormState
from regulars.web.render import redirect, refused, render
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
        values = await self._values(visit)
        # The address in the browser is a good guess only if others can open it too.
        guess = visit.server_url if visit.is_https else ""
        return render(visit, TEMPLATE, form=FormState({"address": self._address.url or guess}), **values)

    async def change(self, visit: Visit) -> Response:
        form = FormState(visit.form)
        text = form.text("address", required=False, characters_max=URL_CHARACTERS_MAX)
        values = await self._values(visit)
        if not values["may_change"]:
            form.refuse("address", "Only the administrator of the server can change it.")
        if form.is_refused:
            return refused(visit, TEMPLATE, form, **values)
        url = None
        try:
            url = read_address(text, own_port=_own_port(visit)) if text else None
            await change_address(
                visit.database, visit.organization_id, url, allow=self._settings.webhook_allow, by=actor_of(visit)
            )
        except AddressRefusal as refusal:
            form.refuse("address", str(refusal))
            # An administrator pastes the line into a shell, so it has no other characters than those of a plain host.
            values["unreached"] = url if url is not None and _PLAIN.fullmatch(url) else None
            return refused(visit, TEMPLATE, form, **values)
        except ServerShared:
            form.refuse("address", "Another organization has joined this server, so only its administrator can.")
            return refused(visit, TEMPLATE, form, **values)
        self._address.update(url)
        done = f"The server is {url}." if url else "The server has no public address now."
        return redirect(visit, visit.url(PATH), done=f"{done} All its processes know within 5 seconds.")

    async def _values(self, visit: Visit) -> dict[str, Any]:
        async with visit.database.reading() as tx:
            is_alone = await has_server_alone(tx, visit.organization_id)
        return {
            "address": self._address,
            "link_url": self._settings.link_url,
            "is_alone": is_alone,
            "unreached": None,
            "may_change": is_alone and not self._address.is_fixed and visit.may(Action.MANAGE_SERVER),
        }


def _own_port(visit: Visit) -> int:
    server = visit.request.scope.get("server") or ("", 0)
    return int(server[1] or 0)
