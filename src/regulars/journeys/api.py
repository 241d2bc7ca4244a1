"""The API route that returns the JSON Schema of a journey's definition."""

from functools import cache
from typing import Any

from regulars.http.route import DocumentRoute, Route
from regulars.journeys.definition import schema

_schema = cache(schema)

ROUTES: tuple[Route, ...] = (
    DocumentRoute(
        path="/v1/journeys/schema.json",
        operation_id="getJourneySchema",
        tag="Description",
        summary="Read the JSON Schema of a journey",
        description="What a journey's file may say, for editors and programs that write one. It is the same for "
        "everybody and needs no key.",
        responses={200: dict[str, Any]},
        render=lambda _address: _schema(),
    ),
)
