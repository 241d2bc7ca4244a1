"""Links in the words of a text before they have a code: each destination stands between two marks. No I/O.

A process has one host for short links (`REGULARS_LINK_URL`), which is set once when the process starts. Without it,
links stay as they were written.
"""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

LINKS_PER_TEXT_MAX: Final = 3
URL_CHARACTERS_MAX: Final = 1_000
PATH: Final = "/l/"
# Characters of a code: those that name the organization, and those that name the link.
PREFIX_CHARACTERS: Final = 4
CODE_CHARACTERS: Final = 8
# Stands in a preview for a code: as long as one, and never one, because of its letters.
SAMPLE_CODE: Final = "examplelink0"
# The destination of a link to the page with the button to opt out.
OPT_OUT: Final = "opt-out"

# No value and no written text contains them: they are removed from both.
_OPEN, _CLOSE = "\x02", "\x03"
_MARKED: Final = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
_MARKS: Final = re.compile(f"[{_OPEN}{_CLOSE}]")
_PRINTABLE: Final = re.compile(r"[!-~]+")

_link_url: str | None = None


def set_link_url(url: str | None) -> None:
    """Set the address of short links for this process."""
    global _link_url  # noqa: PLW0603  # a process has one host for links
    _link_url = url


def short_url(code: str) -> str | None:
    """The address of a code; None where the process has no host for links."""
    return None if _link_url is None else f"{_link_url}{PATH}{code}"


def find_fault(url: str) -> str | None:
    """Why an address cannot be the destination of a link, as a sentence."""
    if len(url) > URL_CHARACTERS_MAX:
        return f"The address of a link has at most {URL_CHARACTERS_MAX} characters; this has {len(url)}."
    if not _PRINTABLE.fullmatch(url):
        return "The address of a link is empty or has a space or a special letter; copy it from the browser."
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete, parts = False, urlsplit("")
    if not is_complete:
        return f"A link leads to an address that begins with https:// or http://, not to “{url[:60]}”."
    if "@" in parts.netloc:
        return "The address of a link may not contain a user name."
    return None


def find_host_fault(destination: str) -> str | None:
    """Why this installation, with its host for short links or without one, cannot have such a link."""
    if destination == OPT_OUT:
        return None if _link_url is not None else "A link to opt out needs the setting REGULARS_LINK_URL."
    host = urlsplit(destination).hostname
    if _link_url is not None and host == urlsplit(_link_url).hostname:
        return f"{host} is the host of the short links; write the address that the link leads to."
    return None


def mark(destination: str) -> str:
    return f"{_OPEN}{destination}{_CLOSE}"


def has_links(words: str) -> bool:
    return _OPEN in words


def list_marked(words: str) -> list[str]:
    """The destinations in the words, in their order."""
    return _MARKED.findall(words)


def replace_marked(words: str, replace: Callable[[str], str]) -> str:
    return _MARKED.sub(lambda found: replace(found[1]), words)


def remove_marks(text: str) -> str:
    """A written text without characters that look like marks."""
    return _MARKS.sub("", text)


def show_links(words: str) -> str:
    """The words with an example of each short link, which is as long as the real one; without a host for links, with
    the addresses as they were written."""
    sample = short_url(SAMPLE_CODE)
    return replace_marked(words, lambda destination: sample or _as_written(destination)) if has_links(words) else words


def _as_written(destination: str) -> str:
    """A page of ours has no address without the host; such a text is refused before it is saved."""
    return "" if destination == OPT_OUT else destination
