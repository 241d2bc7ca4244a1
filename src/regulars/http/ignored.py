"""`X-Ignored-Fields`: what of a body we do not know is ignored and named, so that a misspelled field is noticed."""

from collections.abc import Sequence
from urllib.parse import quote

NAMES_MAX = 10
NAME_CHARACTERS_MAX = 64
AND_MORE = "..."
# Visible ASCII, without the comma that stands between names and the percent sign that begins an encoded character.
_PLAIN = "".join(character for character in map(chr, range(0x21, 0x7F)) if character not in ",%")


def ignored_header(paths: Sequence[str]) -> tuple[bytes, bytes]:
    """The header that names these paths: the first ten, in visible ASCII, never a value. It stays below 1 KB."""
    names = [_name(path) for path in paths[:NAMES_MAX]]
    if len(paths) > NAMES_MAX:
        names.append(AND_MORE)
    return b"x-ignored-fields", ", ".join(names).encode()


def _name(path: str) -> str:
    """A name may hold line breaks and commas, and must not split the answer; one that is cut is not cut in a code."""
    encoded = quote(path[:NAME_CHARACTERS_MAX], safe=_PLAIN)
    if len(encoded) <= NAME_CHARACTERS_MAX:
        return encoded or '""'
    end = encoded.rfind("%", NAME_CHARACTERS_MAX - 2, NAME_CHARACTERS_MAX)
    return encoded[: NAME_CHARACTERS_MAX if end < 0 else end]
