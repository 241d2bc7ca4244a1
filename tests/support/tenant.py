"""Creates organizations and API keys. Each test has its own organization, so that tests can share a database."""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from tests.support.open_database import open_database

from regulars.kit.connection import Connection
from regulars.kit.db import Database
from regulars.organizations import manage
from regulars.organizations.model import Permission

T = TypeVar("T")


@dataclass(frozen=True)
class Tenant:
    organization_id: UUID
    key_id: UUID
    key: str


async def create_tenant(database: Database) -> Tenant:
    async with database.connection() as connection:
        organization = await manage.create_organization(connection, f"Shop {uuid.uuid4()}")
        key, secret = await manage.create_key(connection, organization.id, "till")
    return Tenant(organization.id, key.id, secret)


def new_tenant(database_url: str) -> Tenant:
    with open_database(database_url) as database:
        return database.run(create_tenant)


def another_key(database_url: str, tenant: Tenant, *, permission: Permission = Permission.FULL) -> Tenant:
    async def create(connection: Connection) -> Tenant:
        key, secret = await manage.create_key(connection, tenant.organization_id, "second till", permission=permission)
        return Tenant(tenant.organization_id, key.id, secret)

    return _run(database_url, create)


def in_country(database_url: str, tenant: Tenant, country: str) -> Tenant:
    """Sets the default country of the organization; returns a new key, because servers cache the country with the key."""

    async def change(connection: Connection) -> None:
        await connection.execute(
            "UPDATE organizations SET default_country = %s WHERE id = %s", (country, tenant.organization_id)
        )

    _run(database_url, change)
    return another_key(database_url, tenant)


def revoke(database_url: str, tenant: Tenant) -> None:
    async def do(connection: Connection) -> bool:
        return await manage.revoke_key(connection, tenant.key_id)

    assert _run(database_url, do)


def _run(database_url: str, act: Callable[[Connection], Awaitable[T]]) -> T:
    async def connected(database: Database) -> T:
        async with database.connection() as connection:
            return await act(connection)

    with open_database(database_url) as database:
        return database.run(connected)
