"""Match raw URL paths against route patterns: split on `/` first, then percent-decode each reference, strictly.

If the path were decoded first, as in most frameworks, `a%2Fb` would reach another resource than the one it names.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")

# The segments of a path; None stands for any reference, the id of a resource.
PathPattern = tuple[bytes | None, ...]


def parse_pattern(path: str) -> PathPattern:
    """Parse a pattern such as `/v1/stores/{id}`."""
    return tuple(None if part.startswith("{") else part.encode() for part in path.split("/"))


def match(pattern: PathPattern, parts: Sequence[bytes]) -> tuple[str, ...] | None:
    """Return the references of a path that matches the pattern, else None."""
    if len(pattern) != len(parts):
        return None
    references = []
    for expected, part in zip(pattern, parts, strict=True):
        if expected is None:
            reference = _decode(part)
            if reference is None:
                return None
            references.append(reference)
        elif expected != part:
            return None
    return tuple(references)


def _decode(part: bytes) -> str | None:
    """Decode a path segment; None if it is empty or has a broken escape, invalid UTF-8 or a NUL."""
    if not part or _BAD_ESCAPE.search(part):
        return None
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text
