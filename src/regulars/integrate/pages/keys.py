"""Pages about API keys: list them, create a key (its secret is shown once), and revoke a key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.kit.db import Tx
from regulars.kit.ids import API_KEY
from regulars.kit.keyset import PageRequest
from regulars.organizations import manage
from regulars.organizations.model import ApiKey, Permission
from regulars.request_log.entries import count_responses, list_responses
from regulars.request_log.model import Counts
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.render import redirect, render, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/keys"
NAME_CHARACTERS_MAX: Final = 80
RESPONSES_SHOWN: Final = 10
ACCESS_LABELS: Final = {Permission.INGEST: "Write only", Permission.FULL: "Full access"}
ACCESS_DESCRIPTIONS: Final = {
    Permission.INGEST: "For tills, where a key may be stolen. It writes all data, but reads only stores. Its responses"
    " show whether a number may be texted and whether a customer or ticket is known, and nothing else.",
    Permission.FULL: "Reads and writes all data of this organization, and can erase customers.",
}
_NO_COUNTS: Final = Counts()


@dataclass(frozen=True, slots=True)
class KeyView:
    """An API key as the pages show it, with the number of its requests and errors in the last 24 hours."""

    key: ApiKey
    identifier: str
    counts: Counts
    may_revoke: bool

    @property
    def access(self) -> str:
        return ACCESS_LABELS[self.key.permission]

    @property
    def state(self) -> str:
        if self.key.revoked_at is not None:
            return "revoked"
        return "live" if self.key.last_used_at is not None or self.counts.responses else "unused"


async def _list_keys(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        views = await _load_keys(tx, visit)
    live = [view for view in views if view.key.revoked_at is None]
    revoked = [view for view in views if view.key.revoked_at is not None]
    return render(visit, "integrate/keys.html", keys=[*live, *revoked], live=len(live))


async def _show_new(visit: Visit, form: FormState | None = None) -> Response:
    form = form or FormState({"permission": "ingest"})
    return render_form(visit, "integrate/new_key.html", form, choices=_list_permissions(visit))


async def _create(visit: Visit) -> Response:
    form = FormState(visit.form, again=_show_new)
    name = form.text("name", characters_max=NAME_CHARACTERS_MAX)
    permission = form.choice("permission", [value for value, _, _ in _list_permissions(visit)])
    form.check()
    async with visit.database.transaction() as tx:
        key, secret = await manage.create_key(
            tx.connection, visit.organization_id, name, permission=Permission(permission)
        )
        identifier, after = API_KEY.encode(key.id), {"name": name, "permission": permission}
        await record_act(tx, visit, "key.create", identifier, after=after)
    # The next page shows the new secret once. The cookie (`reveal`) has the secret with the id of its key, so that
    # only the page of this key shows the secret.
    return redirect(visit, visit.url(PATH, identifier), show_once=f"{identifier} {secret}")


async def _show(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        key_view = await _find_key_in_path(tx, visit)
        page = PageRequest(RESPONSES_SHOWN)
        responses = await list_responses(tx, visit.organization_id, page, api_key_id=key_view.key.id)
    return render(visit, "integrate/key.html", key_view=key_view, server_url=visit.server_url, responses=responses)


async def _ask_to_revoke(visit: Visit, form: FormState | None = None) -> Response:
    async with visit.database.reading() as tx:
        key_view = await _find_revocable_key(tx, visit)
    return render_form(visit, "integrate/revoke_key.html", form or FormState(), key_view=key_view)


async def _revoke(visit: Visit) -> Response:
    form = FormState(visit.form, again=_ask_to_revoke)
    async with visit.database.reading() as tx:
        key_view = await _find_revocable_key(tx, visit)
    if key_view.state == "live" and not form.is_checked("sure"):
        raise form.refusal("sure", "Tick this if nothing uses the key any more.")
    async with visit.database.transaction() as tx:
        await manage.revoke_key(tx.connection, key_view.key.id)
        await record_act(tx, visit, "key.revoke", key_view.identifier, before={"name": key_view.key.name})
    done = f"{key_view.key.name} is revoked and stops working within a second."
    return redirect(visit, visit.url(PATH), done=done)


async def _load_keys(tx: Tx, visit: Visit) -> Sequence[KeyView]:
    counts = await count_responses(tx, visit.organization_id)
    keys = await manage.list_keys(tx.connection, visit.organization_id)
    return [_make_view(visit, key, counts.get(key.id, _NO_COUNTS)) for key in reversed(keys)]


async def _find_key_in_path(tx: Tx, visit: Visit) -> KeyView:
    """Return the key whose id is in the page's URL, if it belongs to this organization."""
    identifier: UUID | None = API_KEY.decode(visit.references[0])
    for key_view in await _load_keys(tx, visit):
        if key_view.key.id == identifier:
            return key_view
    raise PageNotFound("This organization has no such key.")


async def _find_revocable_key(tx: Tx, visit: Visit) -> KeyView:
    key_view = await _find_key_in_path(tx, visit)
    if key_view.key.permission is Permission.FULL:
        visit.require(Action.MANAGE_FULL_KEYS)
    if key_view.key.revoked_at is not None:
        raise PageNotFound("This key is revoked already.")
    return key_view


def _make_view(visit: Visit, key: ApiKey, counts: Counts) -> KeyView:
    may_revoke = key.revoked_at is None and (key.permission is Permission.INGEST or visit.may(Action.MANAGE_FULL_KEYS))
    return KeyView(key, API_KEY.encode(key.id), counts, may_revoke)


def _list_permissions(visit: Visit) -> list[tuple[str, str, str]]:
    """Return the value, the label and the description of each permission that the user may give a key."""
    permissions = [Permission.INGEST, *([Permission.FULL] if visit.may(Action.MANAGE_FULL_KEYS) else [])]
    return [(each.value, ACCESS_LABELS[each], ACCESS_DESCRIPTIONS[each]) for each in permissions]


_NEEDS: Final = Action.MANAGE_INGEST_KEYS
PAGES: Final = (
    Page(path=PATH, needs=_NEEDS, handle=_list_keys),
    Form(path=PATH, needs=_NEEDS, handle=_create, harm=Harm.CONNECTS),
    Page(path=f"{PATH}/new", needs=_NEEDS, handle=_show_new),
    Page(path=f"{PATH}/{{key}}", needs=_NEEDS, handle=_show),
    Page(path=f"{PATH}/{{key}}/revoke", needs=_NEEDS, handle=_ask_to_revoke),
    Form(path=f"{PATH}/{{key}}/revoke", needs=_NEEDS, handle=_revoke, harm=Harm.STOPS),
)
