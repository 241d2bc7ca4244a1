"""Optimistic locking for objects that users edit: a form carries the etag of the part that it edits.

A part is what one form shows: a step, the conditions of a branch, a whole segment. A change is accepted if the part is
unchanged since the form was rendered; changes of other parts do not matter. Otherwise the form is shown again with the
user's input. It says who changed the part and what it is now, and carries the new etag: sending it again overwrites
that change.
"""

import hashlib
from typing import Final

import msgspec

CHARACTERS: Final = 16


class EtagMismatch(Exception):
    """Another user changed the part after the form was rendered."""


def etag_of(part: object) -> str:
    return hashlib.sha256(msgspec.json.encode(part)).hexdigest()[:CHARACTERS]


def require_etag(part: object, etag: str | None) -> None:
    """None for a caller without a form, such as a command: it overwrites."""
    if etag is not None and etag != etag_of(part):
        raise EtagMismatch
