"""Signing in with an address and a password."""

from uuid import UUID

from regulars.accounts import queries
from regulars.accounts.passwords import Passwords
from regulars.kit.db import Database


async def check_password(database: Database, passwords: Passwords, *, email: str, password: str) -> UUID | None:
    """Whose password it is. The database is not held while the hash is computed."""
    async with database.reading() as tx:
        found = await queries.find_password(tx, email)
    matches = await passwords.matches(found.password_hash if found else None, password)
    return found.user_id if found is not None and matches else None
