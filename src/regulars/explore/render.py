"""How a page is made: templates that escape everything, styles with their version in the address, and headers that let
a page load nothing from anywhere else."""

import hashlib
import importlib.metadata
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from regulars.web.line_breaks import LineBreaks

FOLDER: Final = Path(__file__).parent
STATIC_PATH: Final = "/static"
VERSION_CHARACTERS: Final = 12
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
    " object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
NO_STORE: Final = "no-cache"
CACHE_FOREVER: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _Static:
    content: bytes
    media_type: str
    version: str


def _read_static() -> dict[str, _Static]:
    files = {}
    for path in sorted((FOLDER / "static").iterdir()):
        content = path.read_bytes()
        media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        files[path.name] = _Static(content, media_type, hashlib.sha256(content).hexdigest()[:VERSION_CHARACTERS])
    return files


_STATIC: Final = _read_static()


def static_url(name: str) -> str:
    return f"{STATIC_PATH}/{_STATIC[name].version}/{name}"


def static_response(version: str, name: str) -> Response | None:
    """The file, or None when there is none of this name."""
    file = _STATIC.get(name)
    if file is None:
        return None
    # While servers of two releases run side by side, a page of the one may ask the other for its style. It gets the
    # style that is there, but must not keep it under an address that promises another.
    kept = CACHE_FOREVER if version == file.version else NO_STORE
    return Response(file.content, media_type=file.media_type, headers={**SECURITY_HEADERS, "Cache-Control": kept})


def installed_version() -> str:
    try:
        return importlib.metadata.version("regulars")
    except importlib.metadata.PackageNotFoundError:
        return "from source"


def inline(text: str) -> Markup:
    """Plain text whose `code` and **bold** marks become elements; everything else in it stays text."""
    pieces = []
    for place, piece in enumerate(text.split("`")):
        if place % 2:
            pieces.append(Markup("<code>{}</code>").format(piece))
        else:
            pieces += [
                Markup("<strong>{}</strong>").format(part) if number % 2 else escape(part)
                for number, part in enumerate(piece.split("**"))
            ]
    return Markup("").join(pieces)


def paragraphs(text: str) -> Markup:
    parts = [part.strip() for part in text.split("\n\n")]
    return Markup("\n").join(Markup("<p>{}</p>").format(inline(part)) for part in parts if part)


_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    extensions=[LineBreaks],
)
_TEMPLATES.filters.update(inline=inline, paragraphs=paragraphs)
_TEMPLATES.globals.update(static_url=static_url, version=installed_version())


def render(template: str, **values: Any) -> str:
    return _TEMPLATES.get_template(template).render(values)


def page(html: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(html, status, {**SECURITY_HEADERS, "Cache-Control": NO_STORE, **(headers or {})})
