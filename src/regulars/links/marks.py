"""Mark, list and replace the links of a text that have no short code yet: two control characters, the marks, enclose
the destination of each link. No I/O.

A process has one host for short links (`REGULARS_LINK_URL`), which is set once when the process starts. Without a host,
links are not shortened, except those of demos: their simulated texts lead to the address of the server itself.
"""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

LINKS_PER_TEXT_MAX: Final = 3
URL_CHARACTERS_MAX: Final = 1_000
# The path of short links on their host.
PATH: Final = "/l/"
# A short link ends with a prefix that identifies the organization, and the code of the link.
PREFIX_CHARACTERS: Final = 4
CODE_CHARACTERS: Final = 8
# Used in a preview instead of prefix and code. It is as long as both, but contains letters that codes never use.
SAMPLE_CODE: Final = "examplelink0"
# Stands for the destination of a link to the opt-out page.
OPT_OUT: Final = "opt-out"

NO_LINK_URL: Final = (
    "A link to opt out needs short links; only the administrator of this server can set them up, with the setting"
    " REGULARS_LINK_URL."
)

# The marks. They cannot occur otherwise, since they are removed from texts and from inserted values.
_OPEN, _CLOSE = "\x02", "\x03"
_MARKED: Final = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
_MARKS: Final = re.compile(f"[{_OPEN}{_CLOSE}]")
_PRINTABLE: Final = re.compile(r"[!-~]+")

_link_url: str | None = None
_demo_url: str | None = None


def set_link_url(url: str | None, *, demo_url: str | None = None) -> None:
    """Set the base URL of short links for this process, and the one that demos have without it."""
    global _link_url, _demo_url  # a process has one host for links
    _link_url, _demo_url = url, url or demo_url


def short_url(code: str, *, is_demo: bool) -> str | None:
    """The URL of a code; None if there is no host for short links."""
    base = _demo_url if is_demo else _link_url
    return None if base is None else f"{base}{PATH}{code}"


def find_fault(url: str) -> str | None:
    """Why a URL cannot be the destination of a link, as a sentence; None if it can."""
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
    # Browsers read a backslash as the end of the host, and decode escapes in it.
    if "\\" in parts.netloc or "%" in parts.netloc:
        return "The host in the address of a link may not contain a backslash or a “%”; copy it from the browser."
    return None


def find_host_fault(destination: str) -> str | None:
    """Why this installation cannot have a link to the destination: it is on the host of short links, or it is the
    opt-out page and there is no host for short links."""
    if destination == OPT_OUT:
        return None if _link_url is not None else NO_LINK_URL
    if _link_url is not None and (host := _host(destination)) == _host(_link_url):
        return f"{host} is the host of the short links; write the address that the link leads to."
    return None


def _host(url: str) -> str:
    """The host of a URL in lower case, without a port and the dot with which a host may end."""
    return (urlsplit(url).hostname or "").rstrip(".")


def mark(destination: str) -> str:
    """Enclose a destination in the marks."""
    return f"{_OPEN}{destination}{_CLOSE}"


def has_links(text: str) -> bool:
    return _OPEN in text


def list_marked(text: str) -> list[str]:
    """The marked destinations in a text, in their order."""
    return _MARKED.findall(text)


def replace_marked(text: str, replace: Callable[[str], str]) -> str:
    """Replace each marked destination, with its marks, by the result of `replace`."""
    return _MARKED.sub(lambda match: replace(match[1]), text)


def remove_marks(text: str) -> str:
    """A text without the characters that are used as marks."""
    return _MARKS.sub("", text)


def preview_links(text: str, *, is_demo: bool) -> str:
    """The text with an example in place of each link, which is as long as the short link will be; without a host for
    short links, with the destinations."""
    sample = short_url(SAMPLE_CODE, is_demo=is_demo)
    return replace_marked(text, lambda destination: sample or _unshortened(destination)) if has_links(text) else text


def _unshortened(destination: str) -> str:
    """The destination as it appears in a text if there is no host for short links. The opt-out page then has no URL;
    a text that links to it is refused earlier."""
    return "" if destination == OPT_OUT else destination
