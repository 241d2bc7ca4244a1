"""Serve static files, each under a name with its hash, so that browsers cache it forever.

Also defines the security headers of every page: no resources of other sites, no inline code, no frames.
"""

import hashlib
import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.responses import Response

FOLDER: Final = Path(__file__).parent / "static"
VENDOR: Final = Path(__file__).parent.parent / "vendor"
ASSETS_PATH: Final = "/assets/"
HASH_CHARACTERS: Final = 12
VENDORED: Final = {
    "htmx.js": "htmx/htmx.min.js",
    "inter.woff2": "inter/inter-latin-wght-normal.woff2",
    "inter-more.woff2": "inter/inter-latin-ext-wght-normal.woff2",
}
# The files, one per component, are served as one style sheet in this order: later rules take precedence.
_APP_STYLES: Final = (
    "font",
    "tokens",
    "base",
    "shell",
    "button",
    "badge",
    "card",
    "table",
    "filter",
    "form",
    "timeline",
    "ledger",
    "empty",
    "notice",
    "dialog",
    "find",
    "tabs",
    "pager",
    "code",
    "phone",
    "builder",
    "outcome",
    "flow",
    "chart",
    "compare",
    "cohort",
    "whisker",
    "loading",
    "receipt",
)
# Pages of members load `app.css`, public pages `site.css`.
_STYLE_SHEETS: Final = {"app.css": _APP_STYLES, "site.css": ("font", "site", "documents")}
_REFERENCE = re.compile(r'url\("([\w.-]+)"\)')

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
# Neither a proxy nor the Back button after signing out may show a page again.
NO_STORE: Final = "no-store"
CACHE_FOREVER: Final = "public, max-age=31536000, immutable"
ONE_YEAR_HTTPS: Final = {"Strict-Transport-Security": "max-age=31536000"}


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    media_type: str
    path: str


def asset_url(name: str) -> str:
    """The address of a file by its name without hash: `app.css`, `app.js`, `icons.svg`, `htmx.js`."""
    return _BY_NAME[name].path


def asset_response(path: str) -> Response | None:
    """The file at this address; None for an unknown file or the hash of another release."""
    asset = _BY_PATH.get(path)
    if asset is None:
        return None
    headers = {**SECURITY_HEADERS, "Cache-Control": CACHE_FOREVER}
    return Response(asset.content, media_type=asset.media_type, headers=headers)


def _asset(name: str, content: bytes) -> Asset:
    stem, _, suffix = name.rpartition(".")
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    digest = hashlib.sha256(content).hexdigest()[:HASH_CHARACTERS]
    return Asset(content, media_type, f"{ASSETS_PATH}{stem}-{digest}.{suffix}")


def _read_all() -> dict[str, Asset]:
    assets = {path.name: _asset(path.name, path.read_bytes()) for path in FOLDER.iterdir() if path.suffix != ".css"}
    for name, path in VENDORED.items():
        assets[name] = _asset(name, (VENDOR / path).read_bytes())
    for sheet, names in _STYLE_SHEETS.items():
        styles = "".join((FOLDER / f"{name}.css").read_text(encoding="utf-8") for name in names)
        styles = _REFERENCE.sub(lambda match: f'url("{assets[match[1]].path}")', styles)
        assets[sheet] = _asset(sheet, styles.encode())
    return assets


_BY_NAME: Final = _read_all()
_BY_PATH: Final = {asset.path: asset for asset in _BY_NAME.values()}
