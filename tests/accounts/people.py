"""Staff of an organization, hired by the use cases."""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.support.open_database import in_transaction
from tests.support.quick_passwords import QUICK

from regulars.accounts import queries, users
from regulars.accounts.audit.log import list_acts
from regulars.accounts.links import LINK_PATH
from regulars.accounts.model import Membership
from regulars.accounts.users import disable_user, invite_user
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest
from regulars.web.access import Role

PASSWORD = "four words in a row"
_HASHES: dict[str, str] = {}


@dataclass(frozen=True)
class Staff:
    database_url: str
    organization_id: UUID

    def run(self, act: Callable[[Tx], Awaitable[Any]]) -> Any:
        return in_transaction(self.database_url, act)

    def hire(self, role: Role, email: str | None = None) -> str:
        address = email or f"{role.value}-{uuid.uuid4().hex[:8]}@shop.example"

        async def act(tx: Tx) -> None:
            if PASSWORD not in _HASHES:
                _HASHES[PASSWORD] = QUICK.hash(PASSWORD)
            person = await users.create_account(tx, email=address, name=f"Some {role.value}")
            await queries.set_password(tx, person.id, _HASHES[PASSWORD])
            await users.join(tx, self.organization_id, "Shop", person.id, role)

        self.run(act)
        return address

    def password_link(self, email: str) -> str:
        return f"{LINK_PATH}/{self.run(lambda tx: users.password_link_by_operator(tx, email))}"

    def invitation(self, email: str, role: Role) -> str:
        token = self.run(lambda tx: invite_user(tx, self.organization_id, email, role=role))
        return f"{LINK_PATH}/{token}"

    def memberships(self, email: str) -> list[Membership]:
        async def act(tx: Tx) -> list[Membership]:
            person = await queries.find_account_by_email(tx, email)
            return [] if person is None else await users.find_memberships(tx, person.id)

        found: list[Membership] = self.run(act)
        return found

    def acts(self) -> list[tuple[str, str, str, str | None]]:
        """What the audit log says: the act, its subject, who and from where."""

        async def act(tx: Tx) -> list[tuple[str, str, str, str | None]]:
            found = await list_acts(tx, self.organization_id, PageRequest(100))
            return [(one.act, one.subject, one.actor, one.address) for one in reversed(found)]

        acts: list[tuple[str, str, str, str | None]] = self.run(act)
        return acts

    def disable(self, email: str) -> None:
        self.run(lambda tx: disable_user(tx, email))
