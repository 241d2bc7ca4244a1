"""The project's own documents as pages under `/docs`, rendered from the Markdown files of the repository."""

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = ROOT / "docs"
# Documents that are shown by another page, at this address.
_OTHER_PAGES: Final = {"api.md": "/docs/api", "errors.md": "/docs/errors"}
_COMMENT: Final = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_NOT_IN_ANCHORS: Final = re.compile(r"[^\w\- ]")
_CONTENTS_LEVELS: Final = ("h2", "h3")


@dataclass(frozen=True, slots=True)
class Heading:
    tag: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    name: str
    title: str
    headings: tuple[Heading, ...]
    body: Markup


@cache
def names() -> dict[str, Path]:
    """The documents by their path below `/docs`; empty if the files were not installed."""
    files = [path for path in [*FOLDER.glob("*.md"), *FOLDER.glob("decisions/*.md")] if path.name not in _OTHER_PAGES]
    found = {path.relative_to(FOLDER).with_suffix("").as_posix(): path for path in sorted(files)}
    changelog = ROOT / "CHANGELOG.md"
    return found | ({"changelog": changelog} if changelog.is_file() else {})


@cache
def read_document(name: str) -> Document:
    """Read one of `names`. It is cached forever, so requests may not name other files."""
    path = names()[name]
    tokens = _PARSER.parse(_COMMENT.sub("", path.read_text("utf-8")))
    headings = _name_headings(tokens)
    title = next((heading.text for heading in headings if heading.tag == "h1"), name)
    for token in tokens:
        _point_links(token.children or [], path)
        # The Content-Security-Policy forbids inline styles, which the parser adds to table cells.
        token.attrs.pop("style", None)
    body = Markup(_PARSER.renderer.render(tokens, _PARSER.options, {}))  # noqa: S704  # raw HTML in a file is escaped
    contents = tuple(heading for heading in headings if heading.tag in _CONTENTS_LEVELS)
    return Document(name, title, contents, body)


# Without raw HTML: what looks like a tag is shown as text.
_PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable("table")


def _name_headings(tokens: list[Token]) -> list[Heading]:
    """Give each heading an anchor, as code hosts do."""
    headings: list[Heading] = []
    taken: dict[str, int] = {}
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = "".join([child.content for child in inline.children or []])
        anchor = _NOT_IN_ANCHORS.sub("", text.strip().lower()).replace(" ", "-")
        repeated = taken.get(anchor, 0)
        taken[anchor] = repeated + 1
        opening.attrSet("id", f"{anchor}-{repeated}" if repeated else anchor)
        headings.append(Heading(opening.tag, str(opening.attrs["id"]), text))
    return headings


def _point_links(tokens: list[Token], path: Path) -> None:
    """Rewrite links between files to links between pages; a link to a file without a page becomes plain text."""
    open_links: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            address = _address_of(str(token.attrs["href"]), path)
            open_links.append(address is not None)
            if address is not None:
                token.attrSet("href", address)
            else:
                token.hidden, token.tag = True, ""
        elif token.type == "link_close" and not open_links.pop():
            token.hidden, token.tag = True, ""


def _address_of(link: str, path: Path) -> str | None:
    target, hash_sign, anchor = link.partition("#")
    if "://" in target or link.startswith(("#", "mailto:")):
        return link
    file = (path.parent / target).resolve()
    for name, document in names().items():
        if document == file:
            return f"/docs/{name}{hash_sign}{anchor}"
    if file.parent == FOLDER and file.name in _OTHER_PAGES:
        return f"{_OTHER_PAGES[file.name]}{hash_sign}{anchor}"
    return "/v1/openapi.json" if file == FOLDER / "openapi.json" else None
