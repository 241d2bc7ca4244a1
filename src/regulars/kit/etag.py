"""Optimistic locking for everything that people edit: the form of a piece carries the etag of that piece.

A piece is what one form shows: a step, the conditions of a branch, a whole segment. A change is made if its piece is
still what the form was drawn from, whatever was changed elsewhere. If not, the form comes back as it was filled in. It
says who changed the piece and what it is now, and carries the new etag: sending it again overwrites that.
"""

import hashlib
from typing import Final

import msgspec

CHARACTERS: Final = 16


class EtagMismatch(Exception):
    """Another user changed the piece after the form was drawn."""


def etag_of(piece: object) -> str:
    return hashlib.sha256(msgspec.json.encode(piece)).hexdigest()[:CHARACTERS]


def require_etag(piece: object, etag: str | None) -> None:
    """None: the caller has no form, such as a command, and overwrites."""
    if etag is not None and etag != etag_of(piece):
        raise EtagMismatch
