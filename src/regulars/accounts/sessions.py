"""Sessions: started at sign-in, identified by a cookie, ended by inactivity, by age or by their user."""

from uuid import UUID

from regulars.accounts import model, queries
from regulars.accounts.errors import TooManyAttempts
from regulars.accounts.passwords import Passwords
from regulars.accounts.sign_in import confirm_password
from regulars.kit.db import Database, Tx
from regulars.kit.ids import new_uuid
from regulars.organizations.secret import open_secret
from regulars.web.access import Role
from regulars.web.errors import NotConfirmed
from regulars.web.visit import User, VisitedOrganization


async def start_session(tx: Tx, user_id: UUID, *, is_remembered: bool, address: str, agent: str) -> str:
    """Return the token for the cookie; the database stores only its hash."""
    token = model.new_token()
    session = model.Session(
        id=new_uuid(),
        user_id=user_id,
        created_at=tx.now,
        last_seen_at=tx.now,
        idle=model.IDLE_REMEMBERED if is_remembered else model.IDLE,
        ends_at=tx.now + model.ABSOLUTE,
        confirmed_at=tx.now,
        address=address or None,
        agent=agent[: model.AGENT_CHARACTERS_MAX] or None,
    )
    await queries.insert_session(tx, session, token_hash=model.hash_token(token))
    # Each new session deletes a batch of ended ones.
    await queries.delete_old_sessions(tx)
    return token


async def list_sessions(tx: Tx, user_id: UUID) -> list[model.Session]:
    """The active sessions, last used first."""
    return [session for session in await queries.list_sessions(tx, user_id) if session.is_alive(tx.now)]


async def end_session(tx: Tx, user_id: UUID, session_id: UUID) -> bool:
    return await tx.execute("DELETE FROM sessions WHERE user_id = %s AND id = %s", (user_id, session_id)) == 1


async def end_sessions(tx: Tx, user_id: UUID, *, except_id: UUID | None = None) -> int:
    """End all sessions of a user, except `except_id`."""
    return await tx.execute("DELETE FROM sessions WHERE user_id = %s AND id IS DISTINCT FROM %s", (user_id, except_id))


async def end_all_sessions(tx: Tx) -> None:
    """End the sessions of all users, after a restore, which brings back sessions that were ended since the backup."""
    await tx.execute("DELETE FROM sessions")


class SessionStore:
    """Identifies the user of a page by their session. Each request reads the database, so that sessions end at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._passwords = Passwords()

    async def identify(self, token: str) -> User | None:
        async with self._database.reading() as tx:
            found = await queries.find_session(tx, model.hash_token(token))
            if found is None:
                return None
            session, person = found
            if person.disabled_at is not None or not session.is_alive(tx.now):
                return None
            if tx.now - session.last_seen_at >= model.TOUCH_EVERY:
                await queries.touch_session(tx, session.id, tx.now)
        return User(person.id, person.email, person.name, person.locale, session.id, session.confirmed_at)

    async def find_organization(self, user: User, slug: str) -> VisitedOrganization | None:
        async with self._database.reading() as tx:
            found = await queries.find_access(tx, slug, user.id)
        if found is None:
            return None
        return VisitedOrganization(
            organization_id=found.organization_id,
            slug=found.current_slug,
            name=found.name,
            time_zone=found.time_zone,
            locale=found.locale,
            default_country=found.default_country,
            secret=open_secret(found.organization_id, found.secret, found.sealed_secret),
            role=Role(found.role),
            lacks_second_factor=found.lacks_second_factor and Role(found.role) in model.SECOND_FACTOR_ROLES,
            is_demo=found.is_demo,
            shows_first_steps=found.shows_first_steps and not found.is_demo,
        )

    async def confirm(self, user: User, password: str, *, address: str) -> None:
        try:
            is_right = await confirm_password(
                self._database, self._passwords, email=user.email, password=password, address=address
            )
        except TooManyAttempts as refusal:
            raise NotConfirmed(str(refusal), wait_s=refusal.wait_s) from None
        if not is_right:
            raise NotConfirmed("Wrong password.")
        async with self._database.transaction() as tx:
            await queries.confirm_session(tx, user.session_id)


_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_CHARACTERS_MAX = 40


def browser_of(agent: str | None) -> str:
    """Describe a user agent, such as `Firefox on Linux`; show the beginning of an unknown one."""
    if not agent:
        return "Unknown browser"
    browser = next((name for mark, name in _BROWSERS if mark in agent), None)
    system = next((name for mark, name in _SYSTEMS if mark in agent), None)
    if browser is None:
        return agent[:_CHARACTERS_MAX]
    return f"{browser} on {system}" if system else browser
