"""The API reference, in the frame of the application."""

from collections.abc import Sequence
from functools import cached_property

from starlette.responses import Response

from regulars.explore import reference
from regulars.explore.samples import CodeSample
from regulars.http import openapi
from regulars.http.address import base_url
from regulars.http.route import Route
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.render import inline, paragraphs, render
from regulars.web.route import Page
from regulars.web.visit import Visit
from regulars.webhooks.event_reference import EVENTS

PATH = "/reference"
SCHEMAS = "schemas"
# Placeholder in the curl commands for the address that the user's browser uses.
ANY_ADDRESS = "http://server.invalid"


def pages(api_routes: Sequence[Route], *, public_url: str | None) -> tuple[Page, ...]:
    reference_pages = _ReferencePages(api_routes, public_url)
    return (
        Page(path=PATH, needs=Action.READ, handle=reference_pages.contents),
        Page(path=f"{PATH}/{{subject}}", needs=Action.READ, handle=reference_pages.subject),
    )


class _ReferencePages:
    """The pages of the reference. The OpenAPI document is parsed once; a page shows one subject of it."""

    def __init__(self, api_routes: Sequence[Route], public_url: str | None) -> None:
        self._api_routes = api_routes
        self._public_url = public_url

    @cached_property
    def _reference(self) -> reference.Reference:
        return reference.read_reference(openapi.build(self._api_routes, server_url=ANY_ADDRESS, events=EVENTS))

    async def contents(self, visit: Visit) -> Response:
        return self._page(visit, None)

    async def subject(self, visit: Visit) -> Response:
        anchor = visit.references[0]
        if anchor != SCHEMAS and _subject(self._reference, anchor) is None:
            raise PageNotFound("The API has no such subject.")
        return self._page(visit, anchor)

    def _page(self, visit: Visit, anchor: str | None) -> Response:
        address = self._public_url or base_url(
            visit.request.scope, visit.request.headers.get("host", "").encode("latin-1")
        )
        return render(
            visit,
            "integrate/reference.html",
            reference=self._reference,
            subject=_subject(self._reference, anchor),
            anchor=anchor,
            address=address,
            any_address=ANY_ADDRESS,
            in_languages=lambda operation: _in_languages(operation, address),
            inline=inline,
            paragraphs=paragraphs,
        )


def _subject(document: reference.Reference, anchor: str | None) -> reference.ReferenceSubject | None:
    return next((subject for subject in document.subjects if subject.anchor == anchor), None)


def _in_languages(operation: reference.Operation, address: str) -> list[CodeSample]:
    """The call with curl and as a program in each language, with the address that the user's browser uses."""
    samples = [CodeSample("curl", operation.curl), *operation.samples]
    return [CodeSample(language, text.replace(ANY_ADDRESS, address)) for language, text in samples]
