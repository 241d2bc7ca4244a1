"""Where to go after signing in: an address of this server, whatever the link says."""

from urllib.parse import urlsplit


def safe_next(wanted: str | None, *, otherwise: str) -> str:
    """Only a path of our own: browsers read `//evil`, `/\\evil` and `/<tab>/evil` as another site."""
    if not wanted or not wanted.startswith("/") or wanted[1:2] in {"/", "\\"}:
        return otherwise
    if any(character <= " " or character == "\\" for character in wanted):
        return otherwise
    parts = urlsplit(wanted)
    return wanted if not parts.scheme and not parts.netloc else otherwise
