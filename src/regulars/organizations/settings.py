"""Read and change the settings of an organization: its name, time zone, locale, default country and second factor."""

from dataclasses import asdict, dataclass
from uuid import UUID
from zoneinfo import available_timezones

from psycopg import errors

from regulars.kit.connection import Connection
from regulars.kit.db import Tx
from regulars.organizations.facts import TimeZoneChanged
from regulars.work import outbox


@dataclass(frozen=True, slots=True)
class OrganizationSettings:
    name: str
    time_zone: str
    locale: str
    default_country: str | None
    # Owners and admins need a second factor.
    requires_second_factor: bool = False


class NameTaken(Exception):
    """Another organization has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Another organization is named '{name}'.")


def time_zones() -> list[str]:
    """Return the current time zones; the zone database also has many old names."""
    return [*sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/")), "UTC"]


async def find_settings(connection: Connection, organization_id: UUID) -> OrganizationSettings:
    rows = await connection.fetch(
        "SELECT name, time_zone, locale, default_country, requires_second_factor FROM organizations WHERE id = %s",
        (organization_id,),
    )
    if not rows:
        raise LookupError(f"There is no organization {organization_id}.")
    return OrganizationSettings(*rows[0])


async def change_settings(tx: Tx, organization_id: UUID, settings: OrganizationSettings) -> None:
    before = await find_settings(tx.connection, organization_id)
    try:
        async with tx.connection.transaction():
            await tx.execute(
                "UPDATE organizations SET name = %(name)s, time_zone = %(time_zone)s, locale = %(locale)s,"
                " default_country = %(default_country)s, requires_second_factor = %(requires_second_factor)s"
                " WHERE id = %(id)s",
                {"id": organization_id, **asdict(settings)},
            )
    except errors.UniqueViolation:
        raise NameTaken(settings.name) from None
    if settings.time_zone != before.time_zone:
        await outbox.record(tx, organization_id, [TimeZoneChanged()])
