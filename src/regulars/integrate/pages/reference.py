"""The API reference for signed-in users, with the application's navigation; one page per subject, such as stores."""

from collections.abc import Sequence
from functools import cached_property

from starlette.responses import Response

from regulars.explore import reference
from regulars.explore.samples import CodeSample
from regulars.http import openapi
from regulars.http.route import Route
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.render import inline, paragraphs, render
from regulars.web.route import Page
from regulars.web.visit import Visit
from regulars.webhooks.event_reference import EVENTS

PATH = "/reference"
SCHEMAS = "schemas"
# Stands for the server's URL in the parsed reference; each page replaces it by the URL that the browser uses.
DUMMY_URL = "http://server.invalid"


def pages(api_routes: Sequence[Route]) -> tuple[Page, ...]:
    reference_pages = _ReferencePages(api_routes)
    return (
        Page(path=PATH, needs=Action.READ, handle=reference_pages.contents),
        Page(path=f"{PATH}/{{subject}}", needs=Action.READ, handle=reference_pages.subject),
    )


class _ReferencePages:
    """The table of contents, and a page for each subject. The OpenAPI document is parsed once."""

    def __init__(self, api_routes: Sequence[Route]) -> None:
        self._api_routes = api_routes

    @cached_property
    def _reference(self) -> reference.Reference:
        return reference.read_reference(openapi.build(self._api_routes, server_url=DUMMY_URL, events=EVENTS))

    async def contents(self, visit: Visit) -> Response:
        return self._page(visit, None)

    async def subject(self, visit: Visit) -> Response:
        anchor = visit.references[0]
        if anchor != SCHEMAS and _find_subject(self._reference, anchor) is None:
            raise PageNotFound("The API has no such subject.")
        return self._page(visit, anchor)

    def _page(self, visit: Visit, anchor: str | None) -> Response:
        server_url = visit.server_url
        return render(
            visit,
            "integrate/reference.html",
            reference=self._reference,
            subject=_find_subject(self._reference, anchor),
            anchor=anchor,
            server_url=server_url,
            dummy_url=DUMMY_URL,
            list_samples=lambda operation: _list_samples(operation, server_url),
            inline=inline,
            paragraphs=paragraphs,
        )


def _find_subject(document: reference.Reference, anchor: str | None) -> reference.ReferenceSubject | None:
    return next((subject for subject in document.subjects if subject.anchor == anchor), None)


def _list_samples(operation: reference.Operation, server_url: str) -> list[CodeSample]:
    """Return the call as a curl command and as a program in each language, with the URL that the browser uses."""
    samples = [CodeSample("curl", operation.curl), *operation.samples]
    return [CodeSample(language, text.replace(DUMMY_URL, server_url)) for language, text in samples]
