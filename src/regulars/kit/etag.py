"""Optimistic locking for objects that users edit: a form carries the etag (a hash) of the part that it edits.

A part is the content of one form, such as a whole segment, or one step of a journey. A change is accepted if the part
is unchanged since the form was rendered; changes of other parts do not matter. Otherwise the form is shown again with
the user's input. It says who changed the part and what it is now, and carries the new etag: sending the form again
overwrites that change.
"""

import hashlib
from typing import Final

import msgspec

from regulars.kit.refusals import NotPossible

ETAG_CHARACTERS: Final = 16


class EtagMismatch(NotPossible):
    """Another user changed the part after the form was rendered."""

    def __init__(self) -> None:
        super().__init__(
            "This, or something that it uses, was changed after you had opened the page. Nothing was done. Open the"
            " page again and check it."
        )


def etag_of(part: object) -> str:
    return hashlib.sha256(msgspec.json.encode(part)).hexdigest()[:ETAG_CHARACTERS]


def require_etag(part: object, etag: str | None) -> None:
    """Raise unless the part still has this etag; None, of a caller without a form, is always accepted."""
    if etag is not None and etag != etag_of(part):
        raise EtagMismatch
