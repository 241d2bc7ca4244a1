"""The type of a saved view, and the personal data of analytics: none. A view is a page of analytics with its filters,
which a user saves under a name and may share in the organization."""

from typing import Final, NamedTuple

from regulars.work.personal import PersonalData

VIEWS_MAX: Final = 50
NAME_CHARACTERS_MAX: Final = 80
# A URL may have 8 KB; the rest is its path.
QUERY_CHARACTERS_MAX: Final = 7_500


class SavedView(NamedTuple):
    name: str
    query: str
    # Other members of the organization see it too, and whether it is theirs.
    is_shared: bool = False
    is_own: bool = True


class TooManyViews(Exception):
    """The user has to delete a view before saving another."""


PERSONAL_DATA: Final = PersonalData(
    not_personal={"saved_views": "what staff call a view, and its period, stores, segment and products"}
)
