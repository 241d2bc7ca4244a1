"""The columns of customers in files: those of the list of customers, and of the members of a segment."""

from typing import Final, NamedTuple

from regulars.kit.ids import PROFILE
from regulars.kit.keyset import Position
from regulars.lists.columns import HARMLESS, Column, Columns, PartlyMasked, Place
from regulars.lists.masking import hide_digits
from regulars.profiles.model import Profile


class ListedProfile(NamedTuple):
    """A customer in a file, with the number and the consent status that the list shows, and the position in it."""

    profile: Profile
    phone_number: str | None
    consent: str
    position: Position = ()


PROFILE_COLUMNS: Final = Columns[ListedProfile](
    Column("id", lambda it: PROFILE.encode(it.profile.id), HARMLESS, places=Place.DATA),
    Column("external_id", lambda it: it.profile.external_id),
    Column("first_name", lambda it: it.profile.first_name),
    Column("last_name", lambda it: it.profile.last_name),
    Column("phone_number", lambda it: PartlyMasked(it.phone_number, hide_digits)),
    Column("consent", lambda it: it.consent, HARMLESS, places=Place.PAGE | Place.FILE),
    Column("created_at", lambda it: it.profile.created_at, HARMLESS, places=Place.DATA),
)
