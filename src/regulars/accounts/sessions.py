"""Start, list and end sessions of signed-in users, and identify the user of a page by the session cookie."""

from uuid import UUID

from regulars.accounts import model
from regulars.accounts.errors import TooManyAttempts
from regulars.accounts.passwords import Passwords
from regulars.accounts.sign_in import confirm_password
from regulars.kit.db import Database, Tx
from regulars.kit.ids import new_uuid
from regulars.organizations.secret import open_secret
from regulars.web.access import Role
from regulars.web.errors import NotConfirmed
from regulars.web.visit import User, Visit, VisitedOrganization

# `confirmed_at` is when the user last entered the password again.
_SELECT_SESSION = (
    "SELECT s.id, s.user_id, s.created_at, s.last_seen_at, s.idle_s * interval '1 second', s.ends_at,"
    " coalesce(s.confirmed_at, s.created_at), s.address, s.agent"
)


async def start_session(tx: Tx, user_id: UUID, *, is_remembered: bool, address: str, agent: str) -> str:
    """Start a session; return the token for its cookie, of which the database stores only the hash."""
    token = model.new_token()
    idle = model.IDLE_MAX_REMEMBERED if is_remembered else model.IDLE_MAX
    await tx.execute(
        "INSERT INTO sessions (token_hash, id, user_id, created_at, last_seen_at, idle_s, ends_at, address, agent)"
        " VALUES (%(token_hash)s, %(id)s, %(user_id)s, %(now)s, %(now)s, %(idle_s)s, %(ends_at)s, %(address)s,"
        " %(agent)s)",
        {
            "token_hash": model.hash_token(token),
            "id": new_uuid(),
            "user_id": user_id,
            "now": tx.now,
            "idle_s": int(idle.total_seconds()),
            "ends_at": tx.now + model.SESSION_AGE_MAX,
            "address": address or None,
            "agent": agent[: model.AGENT_CHARACTERS_MAX] or None,
        },
    )
    # Each new session deletes a batch of ended ones.
    await tx.execute(
        "DELETE FROM sessions WHERE token_hash IN (SELECT token_hash FROM sessions"
        " WHERE ends_at <= %s OR last_seen_at + idle_s * interval '1 second' <= %s LIMIT 1000 FOR UPDATE SKIP LOCKED)",
        (tx.now, tx.now),
    )
    return token


async def list_sessions(tx: Tx, user_id: UUID) -> list[model.Session]:
    """Return the active sessions, last used first."""
    rows = await tx.fetch(
        _SELECT_SESSION + " FROM sessions s WHERE s.user_id = %s ORDER BY s.last_seen_at DESC LIMIT 200", (user_id,)
    )
    return [session for row in rows if (session := model.Session(*row)).is_alive(tx.now)]


async def end_session(tx: Tx, user_id: UUID, session_id: UUID) -> bool:
    return await tx.execute("DELETE FROM sessions WHERE user_id = %s AND id = %s", (user_id, session_id)) == 1


async def end_sessions(tx: Tx, user_id: UUID, *, except_id: UUID | None = None) -> int:
    """End all sessions of a user, except `except_id`."""
    return await tx.execute("DELETE FROM sessions WHERE user_id = %s AND id IS DISTINCT FROM %s", (user_id, except_id))


async def end_all_sessions(tx: Tx) -> None:
    """End the sessions of all users, after a restore, which brings back sessions that were ended since the backup."""
    await tx.execute("DELETE FROM sessions")


class SessionStore:
    """Finds the user of a page request by their session. Each request reads the database, so that sessions end at
    once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._passwords = Passwords()

    async def identify(self, token: str) -> User | None:
        async with self._database.reading() as tx:
            rows = await tx.fetch(
                _SELECT_SESSION + ", u.email, u.name, u.locale, u.disabled_at"
                " FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.token_hash = %s",
                (model.hash_token(token),),
            )
            if not rows:
                return None
            *columns, email, name, locale, disabled_at = rows[0]
            session = model.Session(*columns)
            if disabled_at is not None or not session.is_alive(tx.now):
                return None
            if tx.now - session.last_seen_at >= model.LAST_SEEN_WRITTEN_EVERY:
                await tx.execute(
                    "UPDATE sessions SET last_seen_at = greatest(last_seen_at, %s) WHERE id = %s", (tx.now, session.id)
                )
        return User(session.user_id, email, name, locale, session.id, session.password_confirmed_at)

    async def find_organization(self, user: User, slug: str) -> VisitedOrganization | None:
        async with self._database.reading() as tx:
            return await _find_organization(tx, slug, user.id)

    async def confirm(self, visit: Visit, password: str) -> None:
        """Check the password of a signed-in user again; raises NotConfirmed."""
        try:
            is_right = await confirm_password(visit, self._passwords, password)
        except TooManyAttempts as refusal:
            raise NotConfirmed(str(refusal), wait_s=refusal.wait_s) from None
        if not is_right:
            raise NotConfirmed("Wrong password.")
        async with self._database.transaction() as tx:
            await tx.execute("UPDATE sessions SET confirmed_at = %s WHERE id = %s", (tx.now, visit.user.session_id))


async def _find_organization(tx: Tx, slug: str, user_id: UUID) -> VisitedOrganization | None:
    """Find an organization of the user by its slug, the name in page addresses, also by an earlier one."""
    rows = await tx.fetch(
        "SELECT o.id, latest.slug, o.name, o.time_zone, o.locale, o.default_country, o.secret, o.sealed_secret, m.role,"
        " o.requires_second_factor AND u.totp_enabled_at IS NULL, o.is_demo, o.shows_first_steps"
        " FROM organization_slugs requested"
        " JOIN organizations o ON o.id = requested.organization_id"
        " JOIN organization_slugs latest ON latest.organization_id = o.id AND latest.is_current"
        " JOIN memberships m ON m.organization_id = o.id AND m.user_id = %s"
        " JOIN users u ON u.id = m.user_id"
        " WHERE requested.slug = %s",
        (user_id, slug),
    )
    if not rows:
        return None
    identifier, current_slug, name, time_zone, locale, country, plain, sealed, role, lacks_factor, *flags = rows[0]
    is_demo, shows_first_steps = flags
    return VisitedOrganization(
        organization_id=identifier,
        slug=current_slug,
        name=name,
        time_zone=time_zone,
        locale=locale,
        default_country=country,
        secret=open_secret(identifier, plain, sealed),
        role=Role(role),
        lacks_second_factor=lacks_factor and Role(role) in model.SECOND_FACTOR_ROLES,
        is_demo=is_demo,
        shows_first_steps=shows_first_steps and not is_demo,
    )


_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_AGENT_SHOWN_CHARACTERS_MAX = 40


def browser_of(agent: str | None) -> str:
    """Describe a user agent, such as `Firefox on Linux`; show the beginning of an unknown one."""
    if not agent:
        return "Unknown browser"
    browser = next((name for part, name in _BROWSERS if part in agent), None)
    system = next((name for part, name in _SYSTEMS if part in agent), None)
    if browser is None:
        return agent[:_AGENT_SHOWN_CHARACTERS_MAX]
    return f"{browser} on {system}" if system else browser
