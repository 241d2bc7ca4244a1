"""What the operator does at the server: create, link, list, disable, give a role."""

from dataclasses import dataclass
from uuid import UUID

from regulars.accounts import queries, sessions, team
from regulars.accounts.audit.log import OPERATOR, record
from regulars.accounts.errors import AlreadyMember, NoSuchUser
from regulars.accounts.factor import code as factor
from regulars.accounts.links.link import Purpose, end_links_of_user, make_link
from regulars.accounts.model import Person
from regulars.accounts.welcome import password_link_by_operator
from regulars.kit.db import Tx
from regulars.web.access import Role


@dataclass(frozen=True, slots=True)
class Listed:
    """A user, and one of their organizations."""

    person: Person
    organization: str | None
    slug: str | None
    role: str | None


async def create_user(tx: Tx, email: str, *, organization_id: UUID, role: Role) -> str:
    """The secret of an invitation, also for an address that has an account: addresses are not verified, so the
    holder of the account must show its password as well as this link."""
    if any(member.email == email for member in await queries.list_members(tx, organization_id)):
        raise AlreadyMember(email)
    token = await make_link(tx, Purpose.INVITATION, email=email, organization_id=organization_id, role=role)
    await record(tx, organization_id, OPERATOR, "member.invite", email, after={"role": role.value})
    return token


async def link_for(tx: Tx, email: str, *, without_second_factor: bool) -> str:
    """A link for a new password. Who was signed in is out at once, and links that others made end.

    Without the second factor the password is deleted too: another person who controls the account could otherwise sign
    in and set up a second factor again before the link is used.
    """
    person = await _find(tx, email)
    if without_second_factor:
        await factor.disable(tx, person.id)
        await queries.set_password(tx, person.id, None)
        for place in await queries.find_memberships(tx, person.id):
            await record(tx, place.organization_id, OPERATOR, "second_factor.disable", email)
    # After the password: a sign-in that had checked the old one has committed its session by now, or will be refused.
    await sessions.end_sessions(tx, person.id)
    return await password_link_by_operator(tx, email)


async def list_users(tx: Tx) -> list[Listed]:
    return [Listed(*row) for row in await queries.list_people(tx)]


async def disable_user(tx: Tx, email: str) -> None:
    """Out at once, everywhere; who they were stays, for the audit log."""
    person = await _find(tx, email)
    await queries.set_disabled(tx, person.id, tx.now)
    await sessions.end_sessions(tx, person.id)
    await end_links_of_user(tx, user_id=person.id, email=person.email)
    await _record_everywhere(tx, person, "user.disable")


async def enable_user(tx: Tx, email: str) -> None:
    person = await _find(tx, email)
    await queries.set_disabled(tx, person.id, None)
    await _record_everywhere(tx, person, "user.enable")


async def give_role(tx: Tx, email: str, role: Role, *, organization_id: UUID) -> None:
    person = await _find(tx, email)
    await team.change_role(tx, organization_id, person.id, role, by=OPERATOR, by_role=None)


async def _find(tx: Tx, email: str) -> Person:
    person = await queries.find_person_by_email(tx, email)
    if person is None:
        raise NoSuchUser(email)
    return person


async def _record_everywhere(tx: Tx, person: Person, act: str) -> None:
    for place in await queries.find_memberships(tx, person.id):
        await record(tx, place.organization_id, OPERATOR, act, person.email)
