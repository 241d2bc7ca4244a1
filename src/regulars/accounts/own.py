"""What a person changes of their own account."""

from uuid import UUID

from regulars.accounts import queries, sessions
from regulars.accounts.audit.log import Actor, record
from regulars.accounts.errors import NoSuchUser
from regulars.accounts.factor import code as factor
from regulars.accounts.links.link import end_password_links
from regulars.accounts.model import Person
from regulars.kit.db import Tx
from regulars.kit.vault import AnyVault


async def find_person(tx: Tx, user_id: UUID) -> Person:
    person = await queries.find_person(tx, user_id)
    if person is None:
        raise NoSuchUser(str(user_id))
    return person


async def change_particulars(tx: Tx, user_id: UUID, *, name: str, locale: str | None) -> None:
    await queries.set_particulars(tx, user_id, name=name, locale=locale)


async def change_password(tx: Tx, by: Actor, user_id: UUID, *, password_hash: str, session_id: UUID) -> int:
    """The new one holds at once, and every other session ends; how many did."""
    await queries.set_password(tx, user_id, password_hash)
    await end_password_links(tx, (await find_person(tx, user_id)).email)
    ended = await sessions.end_sessions(tx, user_id, but=session_id)
    await _record_everywhere(tx, by, user_id, "password.change")
    return ended


async def enable_second_factor(
    tx: Tx, vault: AnyVault, by: Actor, user_id: UUID, *, secret: str, code: str
) -> list[str]:
    codes = await factor.enable(tx, vault, user_id, secret=secret, code=code)
    await _record_everywhere(tx, by, user_id, "second_factor.enable")
    return codes


async def renew_recovery_codes(tx: Tx, by: Actor, user_id: UUID) -> list[str]:
    codes = await factor.renew_recovery_codes(tx, user_id)
    await _record_everywhere(tx, by, user_id, "second_factor.new_recovery_codes")
    return codes


async def disable_second_factor(tx: Tx, by: Actor, user_id: UUID) -> None:
    await factor.disable(tx, user_id)
    await _record_everywhere(tx, by, user_id, "second_factor.disable")


async def _record_everywhere(tx: Tx, by: Actor, user_id: UUID, act: str) -> None:
    """An account belongs to each of its organizations, so each of their logs has it."""
    person = await find_person(tx, user_id)
    for place in await queries.find_memberships(tx, user_id):
        await record(tx, place.organization_id, by, act, person.email)
