"""Raw paths: split on `/` first, then each reference is percent-decoded once and strictly.

Decoding first, as most frameworks do, would let `a%2Fb` reach another resource than the one it names.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")

# The segments of a path; None is a placeholder for a reference.
Shape = tuple[bytes | None, ...]


def shape_of(path: str) -> Shape:
    """The shape of a path whose placeholders are in braces."""
    return tuple(None if part.startswith("{") else part.encode() for part in path.split("/"))


def match(shape: Shape, parts: Sequence[bytes]) -> tuple[str, ...] | None:
    """The references of a path that has this shape."""
    if len(shape) != len(parts):
        return None
    references = []
    for expected, part in zip(shape, parts, strict=True):
        if expected is None:
            reference = _decode(part)
            if reference is None:
                return None
            references.append(reference)
        elif expected != part:
            return None
    return tuple(references)


def _decode(part: bytes) -> str | None:
    """A path segment as text; None where it cannot name anything: empty, a broken escape, no UTF-8, or a NUL."""
    if not part or _BAD_ESCAPE.search(part):
        return None
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text
