"""The page that checks a webhook signature: users paste a request and see which step of the check fails."""

import asyncio
from typing import Final

from starlette.responses import Response

from regulars.kit.ids import WEBHOOK
from regulars.kit.vault import AnyVault, VaultError
from regulars.web.access import Action
from regulars.web.form import FormState
from regulars.web.render import render_form
from regulars.web.route import LARGE_FORM_BYTES_MAX, Form, Harm, Page
from regulars.web.visit import Visit
from regulars.webhooks import manage
from regulars.webhooks.pages.webhook_view import PATH, WebhookView
from regulars.webhooks.signature import CheckStep, NamedSecret, check_signature, read_headers, read_secret

CHECK: Final = f"{PATH}/check"
TEMPLATE: Final = "webhooks/check.html"
# The value of the endpoint field if the user pastes a secret instead of choosing an endpoint.
OWN: Final = "own"


class CheckerPages:
    def __init__(self, vault: AnyVault) -> None:
        self._vault = vault

    def pages(self) -> tuple[Page, ...]:
        return (
            Page(path=CHECK, needs=Action.READ_WEBHOOKS, handle=self.show),
            Form(
                path=CHECK,
                needs=Action.READ_WEBHOOKS,
                handle=self.check,
                bytes_max=LARGE_FORM_BYTES_MAX,
                harm=Harm.CHANGES,
            ),
        )

    async def show(
        self, visit: Visit, form: FormState | None = None, *, steps: list[CheckStep] | None = None
    ) -> Response:
        choices = await self._load_choices(visit)
        form = form or FormState({"endpoint": choices[0][0]})
        return render_form(visit, TEMPLATE, form, choices=choices, steps=steps, own=OWN)

    async def check(self, visit: Visit) -> Response:
        """Check the pasted request and show the result on the same page; nothing is stored."""
        form = FormState(visit.form, again=self.show)
        chosen = form.choice("endpoint", dict(await self._load_choices(visit)))
        if not form.value("headers").strip():
            form.refuse("headers", "Paste the headers of the request, one per line.")
        secrets: list[NamedSecret] = []
        if chosen == OWN:
            pasted = read_secret(form.value("secret"))
            if pasted is None:
                form.refuse("secret", "It must be whsec_ followed by base64.")
            else:
                secrets = [NamedSecret(pasted, "the secret you pasted")]
        form.check()
        if chosen != OWN:
            secrets = await self._decrypt_secrets(visit, chosen)
        # In a thread, because a large body is parsed and signed several times and other requests must not wait.
        steps: list[CheckStep] = await asyncio.to_thread(
            check_signature,
            read_headers(form.value("headers")),
            # Browsers send line breaks in form fields as CR LF.
            form.value("body").replace("\r\n", "\n"),
            secrets,
            now=visit.now,
        )
        return await self.show(visit, form, steps=steps)

    async def _load_choices(self, visit: Visit) -> list[tuple[str, str]]:
        async with visit.database.reading() as tx:
            endpoints = await manage.list_endpoints(tx, visit.organization_id)
        choices = [(WEBHOOK.encode(endpoint.id), WebhookView.short_url(endpoint.url)) for endpoint in endpoints]
        return [*choices, (OWN, "A secret that I paste")]

    async def _decrypt_secrets(self, visit: Visit, chosen: str) -> list[NamedSecret]:
        names = ("the endpoint's secret", "the previous secret")
        try:
            async with visit.database.transaction() as tx:
                endpoint_id = WEBHOOK.decode(chosen)
                secrets = await manage.decrypt_secrets(tx, visit.organization_id, endpoint_id, vault=self._vault)
        except VaultError:
            return []
        return [NamedSecret(secret, name) for secret, name in zip(secrets, names, strict=False)]
