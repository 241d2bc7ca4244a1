"""Read and change the settings of an organization: its name, time zone, locale, default country and second factor."""

from dataclasses import asdict, dataclass
from uuid import UUID

from psycopg import errors

from regulars.kit.connection import Connection
from regulars.kit.db import Tx
from regulars.kit.time_zones import UTC_NAME, has_zone
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


class ForeignZone(Exception):
    """The chosen country does not have the chosen time zone."""

    def __init__(self, country: str, time_zone: str) -> None:
        super().__init__(f"{country} does not have the time zone {time_zone}; choose one of its own, or UTC.")
        self.country = country


def refuse_foreign_zone(before: OrganizationSettings, after: OrganizationSettings) -> None:
    """Raise if the country does not have the time zone, unless both were stored before."""
    country, time_zone = after.default_country, after.time_zone
    if (country, time_zone) == (before.default_country, before.time_zone) or country is None or time_zone == UTC_NAME:
        return
    if not has_zone(country, time_zone):
        raise ForeignZone(country, time_zone)


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
