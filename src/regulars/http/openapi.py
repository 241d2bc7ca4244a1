"""Build the OpenAPI document from the same route declarations and types that the server runs.

The parameters, responses and errors of an operation come from its `Route`, so no business module such as `sales` is
imported. The errors that every operation may return (key, rate, size, time) are added by kind of operation.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from regulars.http.gzip import is_list
from regulars.http.openapi_text import API_DESCRIPTION, EVENT_HEADERS, HEADERS, PARAMETERS, TAGS
from regulars.http.problem import DOCUMENTATION_PATH
from regulars.http.refusals import refusals_of, refusals_of_all
from regulars.http.route import DocumentRoute, QueryRoute, ReadRoute, Route, WriteRoute
from regulars.kit.errors import ApiError, ValidationError
from regulars.kit.wire import FREE_JSON, HIDDEN, REFERENCE_SCHEMA

OPENAPI_VERSION = "3.1.0"
API_VERSION = "1"
# The operation that serves this document.
DOCUMENT_OPERATION = "getOpenapi"

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_SCHEMA_REFERENCE = "#/components/schemas/{name}"
_REPLAYED_STATUSES = frozenset({200, 201, 204, 400, 404})
_RETRIED_STATUSES = frozenset({409, 429, 503})
_UNAUTHORIZED = 401
# The schema names the types that are excluded: for a choice between an object and an array, openapi-generator generates
# Java that does not compile.
_FREE_JSON_SCHEMA = {
    "description": "Any JSON object or array of at most 16 KB, or null.",
    "not": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]},
}
_NUMBER_FORMATS = {"integer": "int64", "number": "double"}
_EVENTS_TAG = "Webhooks"
_EXAMPLE_ADDRESS = "https://regulars.shop.example"


class Event(Protocol):
    """A type of webhook event, which is posted to the endpoints that subscribe to it."""

    @property
    def type(self) -> str: ...
    @property
    def sentence(self) -> str: ...
    @property
    def payload(self) -> Any:
        """The type of its body."""

    @property
    def body(self) -> Mapping[str, Any]:
        """An example of its body."""


def build(routes: Sequence[Route], *, server_url: str, events: Sequence[Event] = ()) -> dict[str, Any]:
    """Build the document. `server_url` is the URL at which the caller reached this server."""
    types = _Types(routes, events)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _build_operation(route, types)
    used_tags = {route.tag for route in routes} | ({_EVENTS_TAG} if events else set())
    errors = refusals_of_all(routes)
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "Regulars API",
            "version": API_VERSION,
            "description": API_DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server_url}],
        "security": [{"ApiKey": []}],
        "tags": [{"name": tag, "description": TAGS.get(tag, "")} for tag in sorted(used_tags)],
        "paths": paths,
        "webhooks": {event.type: {"post": _build_event(event, types)} for event in events},
        "components": {
            "schemas": {
                **types.schemas,
                FREE_JSON: _FREE_JSON_SCHEMA,
                "Problem": _problem_schema(errors),
                "FieldError": _field_error_schema(),
            },
            "examples": {error.code: {"value": _problem_example(error)} for error in errors},
            "headers": HEADERS,
            "parameters": PARAMETERS,
            "securitySchemes": {
                "ApiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "x-api-key",
                    "description": "A key of one organization: everything seen and written is that organization's.",
                }
            },
        },
    }


class _Types:
    """The JSON Schemas of the types of all requests and responses; a named type becomes a shared component."""

    def __init__(self, routes: Iterable[Route], events: Iterable[Event]) -> None:
        types: list[Any] = [event.payload for event in events]
        for route in routes:
            types += [response for response in route.responses.values() if response is not None]
            types += route.receipts.values()
            if isinstance(route, (WriteRoute, QueryRoute)) and route.body is not None:
                types.append(route.body)
        schemas, components = msgspec.json.schema_components(types, ref_template=_SCHEMA_REFERENCE)
        # The keys are identities, because some types are not hashable; `types` keeps the types alive.
        self._schema_of = {id(type_): schema for type_, schema in zip(types, schemas, strict=True)}
        self._types = types
        self.schemas: dict[str, Any] = {_short_name(name): _trim(schema) for name, schema in sorted(components.items())}
        _move_choices(self.schemas, self.schemas)

    def schema(self, type_: Any) -> dict[str, Any]:
        schema: dict[str, Any] = _trim(self._schema_of[id(type_)])
        return schema


def _short_name(name: str) -> str:
    """Shorten the name of a type. If two modules have the same name, the module is a prefix: `ConsentAutomationOut`."""
    parts = name.split(".")
    return parts[0] if len(parts) == 1 else parts[1].capitalize() + parts[-1]


def _move_choices(node: Any, components: dict[str, Any]) -> None:
    """Move each `oneOf` beside a `$ref` into the component: generators do not read what stands beside a `$ref`."""
    if isinstance(node, dict):
        if "$ref" in node and "oneOf" in node:
            components[node["$ref"].rpartition("/")[2]]["oneOf"] = node.pop("oneOf")
        for member in tuple(node.values()):
            _move_choices(member, components)
    elif isinstance(node, list):
        for member in node:
            _move_choices(member, components)


def _trim(schema: Any) -> Any:
    """Simplify a schema for code generators: remove titles that repeat a component's name, hidden variants, and the
    defaults null and empty map. A list of types becomes one schema per type, which more generators support. Numbers get
    their size, because without it many generators choose 32 bits."""
    if isinstance(schema, Mapping):
        if any(HIDDEN in variant for variant in schema.get("anyOf", ())):
            documented = [variant for variant in schema["anyOf"] if HIDDEN not in variant]
            common = {key: value for key, value in schema.items() if key != "anyOf"}
            return _trim({**common, **documented[0]} if len(documented) == 1 else {**common, "anyOf": documented})
        if isinstance(types := schema.get("type"), (list, tuple)):
            common = {key: value for key, value in schema.items() if key != "type"}
            return _trim({**common, "anyOf": [{"type": type_} for type_ in types]})
        if schema.get("anyOf") == [{"type": "integer"}, {"type": "number"}]:
            common = {key: value for key, value in schema.items() if key != "anyOf"}
            return _trim({**common, "type": "number"})  # `number` includes integers
        number_format = _NUMBER_FORMATS.get(types) if isinstance(types, str) else None
        return {
            key: _SCHEMA_REFERENCE.format(name=_short_name(value.rpartition("/")[2])) if key == "$ref" else _trim(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str)) and not (key == "default" and value in (None, {}))
        } | ({"format": number_format} if number_format else {})
    if isinstance(schema, (list, tuple)):
        return [_trim(item) for item in schema]
    return schema


def _build_operation(route: Route, types: _Types) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation_id,
        "tags": [route.tag],
        "summary": route.summary,
    }
    if route.description:
        operation["description"] = route.description
    parameters = [*_path_parameters(route), *_query_parameters(route)]
    if isinstance(route, WriteRoute):
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
        if route.takes_dry_run:
            parameters.append({"$ref": "#/components/parameters/DryRun"})
    if parameters:
        operation["parameters"] = parameters
    if isinstance(route, (WriteRoute, QueryRoute)) and route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "description": _body_description(route),
            "content": {"application/json": _build_media(types.schema(route.body), route.examples)},
        }
    if isinstance(route, DocumentRoute):
        operation["security"] = []
    operation["responses"] = _build_responses(route, types)
    return operation


def _body_description(route: WriteRoute | QueryRoute) -> str:
    gzip = (
        " It may be sent with `Content-Encoding: gzip`; the limit applies to the decompressed body."
        if route.takes_gzip
        else ""
    )
    return f"At most {route.body_bytes_max:,} bytes.{gzip}"


def _build_event(event: Event, types: _Types) -> dict[str, Any]:
    words = event.type.split(".")
    return {
        "operationId": "on" + "".join(word.capitalize() for word in words),
        "tags": [_EVENTS_TAG],
        "summary": event.type,
        "description": f"{event.sentence} {EVENT_HEADERS}",
        "security": [],
        # Otherwise openapi-generator generates a client for the webhooks, whose Python version does not compile.
        "x-internal": True,
        "requestBody": {
            "required": True,
            "content": {"application/json": _build_media(types.schema(event.payload), {event.type: event.body})},
        },
        "responses": {"2XX": {"description": "Accepted. After any other status the event is sent again later."}},
    }


def _build_media(schema: dict[str, Any], examples: Mapping[str, Any]) -> dict[str, Any]:
    media: dict[str, Any] = {"schema": schema}
    if examples:
        media["examples"] = {name: {"value": value} for name, value in examples.items()}
    return media


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "The caller's own `external_id` or the canonical id, percent-encoded as one path segment."
            if name != "subscription_id"
            else "The canonical id of the subscription.",
            "schema": {"type": "string", **REFERENCE_SCHEMA, "format": "path-reference"},
        }
        for name in _PLACEHOLDER.findall(route.path)
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    if not isinstance(route, ReadRoute):
        return []
    return [
        {
            "name": parameter.name,
            "in": "query",
            "required": False,
            "description": parameter.description,
            "schema": dict(parameter.schema),
        }
        for parameter in route.parameters
    ]


def _build_responses(route: Route, types: _Types) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, type_ in sorted(route.responses.items()):
        response: dict[str, Any] = {
            "description": _SUCCESS_DESCRIPTIONS.get(status, "Done."),
            "headers": _build_headers(route, status),
        }
        if type_ is not None:
            schema = types.schema(type_)
            if (receipt := route.receipts.get(status)) is not None:
                schema = {"anyOf": [schema, {**types.schema(receipt), "description": _RECEIPT_DESCRIPTION}]}
            response["content"] = {"application/json": {"schema": schema}}
        responses[str(status)] = response
    by_status: dict[int, list[type[ApiError]]] = {}
    for error in refusals_of(route):
        by_status.setdefault(error.status, []).append(error)
    for status, errors in sorted(by_status.items()):
        responses[str(status)] = {
            "description": ", ".join(f"`{error.code}`" for error in errors),
            "headers": _build_headers(route, status),
            "content": {"application/problem+json": _build_problem_media(errors)},
        }
    return responses


_SUCCESS_DESCRIPTIONS = {
    200: "Done; a resource that existed before was updated or left as it is.",
    201: "Created.",
    204: "Done; there is no body.",
}
_RECEIPT_DESCRIPTION = "The response to a key that may only ingest: it contains no stored data."


def _build_headers(route: Route, status: int) -> dict[str, Any]:
    names = ["X-Request-Id", "X-Content-Type-Options", "Cache-Control"]
    if not isinstance(route, DocumentRoute):
        names += ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]
    if status in _RETRIED_STATUSES:
        names.append("Retry-After")
    if is_list(route) and status in route.responses:
        names += ["Content-Encoding", "Vary"]
    if status == _UNAUTHORIZED:
        names.append("WWW-Authenticate")
    if isinstance(route, WriteRoute) and route.takes_dry_run and status in route.responses:
        names.append("X-Dry-Run")
    if isinstance(route, WriteRoute) and status in _REPLAYED_STATUSES:
        names.append("Idempotent-Replayed")
    if isinstance(route, (WriteRoute, QueryRoute)) and route.body is not None and status in route.responses:
        names.append("X-Ignored-Fields")
    headers: dict[str, Any] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    for name, description in route.response_headers.get(status, {}).items():
        headers[name] = {"description": description, "schema": {"type": "string"}}
    return headers


def _build_problem_media(errors: Sequence[type[ApiError]]) -> dict[str, Any]:
    return {
        "schema": {"$ref": "#/components/schemas/Problem"},
        "examples": {error.code: {"$ref": f"#/components/examples/{error.code}"} for error in errors},
    }


def _problem_example(error: type[ApiError]) -> dict[str, Any]:
    example: dict[str, Any] = {
        "type": f"{_EXAMPLE_ADDRESS}{DOCUMENTATION_PATH}#{error.code.lower().replace('_', '-')}",
        "title": error.title,
        "status": error.status,
        "detail": f"{error.title}.",
        "code": error.code,
        "request_id": "req_5f0c2b7e9d",
    }
    if error is ValidationError:
        field_error = {"field": "external_id", "code": "REQUIRED", "message": "This field is required."}
        example |= {"detail": "external_id is required.", "errors": [field_error]}
    return example


def _problem_schema(errors: Sequence[type[ApiError]]) -> dict[str, Any]:
    text = {"type": "string", "minLength": 1}
    return {
        "description": "The format of every refusal (RFC 9457). Decide on `code`; new codes may appear in `/v1`.",
        "type": "object",
        "required": ["type", "title", "status", "detail", "code", "request_id"],
        "properties": {
            "type": {
                **text,
                "format": "uri-reference",
                "description": "The address of the page that explains the code.",
            },
            "title": {**text, "description": "The code in words; the same for every refusal with this code."},
            "status": {"type": "integer", "minimum": 400, "maximum": 599, "description": "The HTTP status."},
            "detail": {"type": "string", "description": "What is wrong with this request, as a sentence for a person."},
            "code": {
                **text,
                "examples": [error.code for error in errors],
                "description": "Stable. These are all there are now; treat an unknown one by its `status`.",
            },
            "errors": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/FieldError"},
                "description": "The fields that were refused; only for validation.",
            },
            "request_id": {**text, "description": "As in the X-Request-Id header; quote it when you ask for help."},
        },
    }


def _field_error_schema() -> dict[str, Any]:
    return {
        "description": "What is wrong with one field.",
        "type": "object",
        "required": ["field", "code", "message"],
        "properties": {
            "field": {"type": "string", "description": "Where: `line_items[0].quantity`; empty for the whole body."},
            "code": {"type": "string", "examples": ["REQUIRED", "WRONG_TYPE", "LENGTH", "NOT_ALLOWED"]},
            "message": {"type": "string", "description": "A sentence for a person."},
        },
    }
