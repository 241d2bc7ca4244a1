"""Render the Markdown files of the repository's `docs` folder as HTML pages under `/docs`."""

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
# Files that are not rendered here, because a page of its own at this address replaces them.
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
def find_documents() -> dict[str, Path]:
    """The Markdown files by their path below `/docs`; empty if the files were not installed."""
    files = [path for path in [*FOLDER.glob("*.md"), *FOLDER.glob("decisions/*.md")] if path.name not in _OTHER_PAGES]
    documents = {path.relative_to(FOLDER).with_suffix("").as_posix(): path for path in sorted(files)}
    changelog = ROOT / "CHANGELOG.md"
    return documents | ({"changelog": changelog} if changelog.is_file() else {})


@cache
def read_document(name: str) -> Document:
    """Render a document of `find_documents`. The result is cached forever, so any other name raises an error."""
    path = find_documents()[name]
    tokens = _PARSER.parse(_COMMENT.sub("", path.read_text("utf-8")))
    headings = _name_headings(tokens)
    title = next((heading.text for heading in headings if heading.tag == "h1"), name)
    for token in tokens:
        _rewrite_links(token.children or [], path)
        # The Content-Security-Policy forbids inline styles, which the parser adds to table cells.
        token.attrs.pop("style", None)
    body = Markup(_PARSER.renderer.render(tokens, _PARSER.options, {}))  # noqa: S704  # raw HTML in a file is escaped
    contents = tuple(heading for heading in headings if heading.tag in _CONTENTS_LEVELS)
    return Document(name, title, contents, body)


# Raw HTML is disabled: a tag in a Markdown file is shown as text.
_PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable("table")


def _name_headings(tokens: list[Token]) -> list[Heading]:
    """Give each heading an anchor, by the same rule as GitHub."""
    headings: list[Heading] = []
    uses_of_anchor: dict[str, int] = {}
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = "".join([child.content for child in inline.children or []])
        anchor = _NOT_IN_ANCHORS.sub("", text.strip().lower()).replace(" ", "-")
        uses = uses_of_anchor.get(anchor, 0)
        uses_of_anchor[anchor] = uses + 1
        opening.attrSet("id", f"{anchor}-{uses}" if uses else anchor)
        headings.append(Heading(opening.tag, str(opening.attrs["id"]), text))
    return headings


def _rewrite_links(tokens: list[Token], path: Path) -> None:
    """Rewrite links between files to links between pages; a link to a file without a page becomes plain text."""
    open_links: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            address = _find_address(str(token.attrs["href"]), path)
            open_links.append(address is not None)
            if address is not None:
                token.attrSet("href", address)
            else:
                token.hidden, token.tag = True, ""
        elif token.type == "link_close" and not open_links.pop():
            token.hidden, token.tag = True, ""


def _find_address(link: str, path: Path) -> str | None:
    """The address for a link in the file `path`; None if the link's target has no page."""
    target, hash_sign, anchor = link.partition("#")
    if "://" in target or link.startswith(("#", "mailto:")):
        return link
    file = (path.parent / target).resolve()
    for name, document in find_documents().items():
        if document == file:
            return f"/docs/{name}{hash_sign}{anchor}"
    if file.parent == FOLDER and file.name in _OTHER_PAGES:
        return f"{_OTHER_PAGES[file.name]}{hash_sign}{anchor}"
    return "/v1/openapi.json" if file == FOLDER / "openapi.json" else None
