"""Render pages with Jinja, from the templates of each module. All values are escaped; an undefined name is an error."""

import importlib.metadata
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, RedirectResponse, Response

from regulars.kit import ids
from regulars.lists.columns import Column, Head
from regulars.web import cookies, csrf, flash, mask
from regulars.web.access import Action, Role, roles_that_may
from regulars.web.form import FormState
from regulars.web.format import short_external_id, short_id
from regulars.web.line_breaks import LineBreaks
from regulars.web.navigation import NamedPage, Navigation, entry_of
from regulars.web.static import NO_STORE, ONE_YEAR_HTTPS, SECURITY_HEADERS, asset_url
from regulars.web.visit import Visit

PACKAGE: Final = Path(__file__).parent.parent
# Names of attributes of `request.state`, which `WebApp` sets and this module reads.
SECRET_STATE: Final = "regulars_secret"  # noqa: S105  # the name of a field of the request's state
NAVIGATION_STATE: Final = "regulars_navigation"
WAITING_STATE: Final = "regulars_waiting"
TOO_MANY_REQUESTS: Final = 429
PUBLIC_HEADERS: Final = {**SECURITY_HEADERS, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}


def render(visit: Visit, template: str, *, status: int = 200, **values: Any) -> Response:
    """Render a page: `customers/list.html` is `list.html` in the `templates` folder of the module `customers`."""
    html = _TEMPLATES.get_template(template).render({**_context(visit), **values})
    response = HTMLResponse(html, status, headers(visit))
    for name in (cookies.FLASH, cookies.REVEAL):
        if name in visit.request.cookies:
            cookies.drop_cookie(response, name, is_https=visit.is_https)
    return response


def render_part(visit: Visit, template: str, **values: Any) -> Markup:
    """Render a part of a page, such as a card that one module adds to the page of another."""
    return Markup(_TEMPLATES.get_template(template).render({**_context(visit), **values}))  # noqa: S704  # a template's


def render_form(visit: Visit, template: str, form: FormState, **values: Any) -> Response:
    """Show a form, with status 400 if it has errors, and 429 if the user must wait."""
    status = (TOO_MANY_REQUESTS if form.wait_s else 400) if form.is_refused else 200
    response = render(visit, template, status=status, form=form, **values)
    if form.wait_s:
        response.headers["Retry-After"] = str(form.wait_s)
    return response


def redirect(visit: Visit, url: str, *, done: str | None = None, show_once: str | None = None) -> Response:
    """Redirect after a form. The next page shows the message `done` and the secret `show_once` (in templates:
    `revealed`) once; reloading it shows neither again."""
    response = RedirectResponse(url, 303, headers(visit))
    for name, text in ((cookies.FLASH, done), (cookies.REVEAL, show_once)):
        if text is not None:
            set_signed_cookie(visit, response, name, text, max_age_s=flash.FLASH_S)
    return response


def set_signed_cookie(visit: Visit, response: Response, name: str, text: str, *, max_age_s: int) -> None:
    """Set a cookie that only this session accepts."""
    secret = getattr(visit.request.state, SECRET_STATE, None)
    if secret is not None:
        cookies.set_cookie(response, name, flash.pack(text, secret), is_https=visit.is_https, max_age_s=max_age_s)


def read_signed_cookie(visit: Visit, name: str) -> str | None:
    value = visit.request.cookies.get(name)
    secret = getattr(visit.request.state, SECRET_STATE, None)
    return flash.unpack(value, secret) if value and secret else None


def render_public(
    template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
) -> Response:
    """Render a page without session and organization."""
    html = public_html(template, **values)
    return HTMLResponse(html, status, {**PUBLIC_HEADERS, **(headers or {})})


def public_html(template: str, **values: Any) -> str:
    """The text of a page without session and organization."""
    return _TEMPLATES.get_template(template).render(values)


def list_pages(visit: Visit) -> list[NamedPage]:
    """The pages and settings that the visitor may open, for a search."""
    navigation: Navigation | None = getattr(visit.request.state, NAVIGATION_STATE, None)
    return [] if navigation is None else navigation.list_pages(visit)


def headers(visit: Visit) -> dict[str, str]:
    secure = ONE_YEAR_HTTPS if visit.is_https else {}
    return {**SECURITY_HEADERS, **secure, "Cache-Control": NO_STORE, "Vary": "Cookie, HX-Request"}


def installed_version() -> str:
    try:
        return importlib.metadata.version("regulars")
    except importlib.metadata.PackageNotFoundError:
        return "from source"


def segment(text: str) -> str:
    """Escape a text to one segment of a path."""
    return quote(text, safe="")


def inline(text: str) -> Markup:
    """Convert `code` and **bold** in plain text to HTML elements; everything else stays text."""
    pieces = []
    for number, piece in enumerate(text.split("`")):
        if number % 2:
            pieces.append(Markup("<code>{}</code>").format(piece))
        else:
            pieces += [
                Markup("<strong>{}</strong>").format(part) if index % 2 else escape(part)
                for index, part in enumerate(piece.split("**"))
            ]
    return Markup("").join(pieces)


def paragraphs(text: str) -> Markup:
    blocks = [block.strip() for block in text.split("\n\n")]
    return Markup("\n").join(Markup("<p>{}</p>").format(inline(block)) for block in blocks if block)


def list_cells(
    visit: Visit, heads: Iterable[tuple[Head, Column[Any]]], row: object, drawn: Iterable[str | Markup]
) -> Markup:
    """The cells of a row of declared columns; `drawn` are those that the template draws, in the order of the page."""
    contents, cells = iter(drawn), []
    for head, column in heads:
        content: object = next(contents) if not head.is_plain else column.read(row, sees_personal=visit.sees_personal)
        if isinstance(content, int):
            content = visit.format.number(content)
        elif isinstance(content, datetime):
            content = visit.format.time_tag(content)
        classes = f' class="{head.classes}"' if head.classes else ""
        cells.append(f"<td{classes}>{'' if content is None else escape(content)}</td>")
    return Markup("".join(cells))  # noqa: S704  # contents are escaped, and classes are declared


def initials(name: str) -> str:
    """Two letters for the avatar beside a name."""
    words = [word for word in name.replace("@", " ").replace(".", " ").split() if word[0].isalnum()]
    return "".join(word[0] for word in words[:2]).upper() or "?"


def _context(visit: Visit) -> dict[str, Any]:
    theme = visit.request.cookies.get(cookies.THEME)
    navigation: Navigation | None = getattr(visit.request.state, NAVIGATION_STATE, None)
    path = visit.request.url.path
    context: dict[str, Any] = {
        "visit": visit,
        "format": visit.format,
        "theme": theme if theme in cookies.THEMES else None,
        "flash": read_signed_cookie(visit, cookies.FLASH),
        "revealed": read_signed_cookie(visit, cookies.REVEAL),
        "is_plain_http": not visit.is_https and not cookies.is_loopback(visit.request),
        "here_url": path + (f"?{visit.request.url.query}" if visit.request.url.query else ""),
        "areas": (),
        "has_search": False,
        "mask": _Masks(visit),
    }
    if visit.current_organization is not None and navigation is not None:
        page_path = path.removeprefix(f"/o/{visit.current_organization.slug}") or "/"
        context["areas"] = navigation.build(visit, entry_of(page_path), getattr(visit.request.state, WAITING_STATE, {}))
        context["has_search"] = navigation.has_search
    return context


class _Masks:
    """The functions of `mask`, bound to the visit."""

    def __init__(self, visit: Visit) -> None:
        self.name = partial(mask.name, visit)
        self.text = partial(mask.text, visit)
        self.phone = partial(mask.phone, visit)
        self.hidden = mask.HIDDEN
        self.seen_by = ", ".join(role.value for role in roles_that_may(Action.SEE_PERSONAL))


def _loader() -> PrefixLoader:
    folders = sorted(path for path in PACKAGE.glob("*/templates") if path.is_dir())
    return PrefixLoader({folder.parent.name: FileSystemLoader(folder) for folder in folders})


_TEMPLATES: Final = Environment(loader=_loader(), autoescape=True, undefined=StrictUndefined, extensions=[LineBreaks])
_TEMPLATES.filters.update(
    inline=inline,
    paragraphs=paragraphs,
    segment=segment,
    short_id=short_id,
    short_external_id=short_external_id,
    initials=initials,
)
_TEMPLATES.globals.update(
    asset_url=asset_url,
    version=installed_version(),
    Action=Action,
    Role=Role,
    token_field=csrf.FIELD,
    ids=ids,
    list_cells=list_cells,
)
