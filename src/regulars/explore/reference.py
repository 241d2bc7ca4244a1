"""Parse the OpenAPI document for the pages of the API reference: operations by subject, with parameters, responses and
errors."""

import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from regulars.explore.samples import VERIFY_WEBHOOK, CodeSample, load_samples, samples_of
from regulars.explore.schemas import Field, Piece, field_of, fields_of, type_of

# Values for the placeholders of paths in curl commands; the example bodies use the same values.
EXAMPLE_REFERENCES: Final = {
    "profile_id": "CUST-1042",
    "store_id": "PARIS-01",
    "sales_event_id": "PARIS-01:000123",
    "subscription_id": "sub_01jqz4e8g6f3v9k2m5n7p0r1st",
}
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_ERROR_STATUS_MIN = 400


@dataclass(frozen=True, slots=True)
class Example:
    name: str
    body: str


@dataclass(frozen=True, slots=True)
class OperationResponse:
    status: int
    description: str
    type: tuple[Piece, ...]
    # Headers of this response only: name and meaning.
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error status of an operation, and its error codes."""

    status: int
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    anchor: str
    method: str
    path: str
    summary: str
    description: str
    needs_key: bool
    parameters: tuple[tuple[str, Field], ...]
    body_note: str
    body_type: tuple[Piece, ...]
    body_fields: tuple[Field, ...]
    examples: tuple[Example, ...]
    curl: str
    # The same call in several programming languages, if there is an example.
    samples: tuple[CodeSample, ...]
    responses: tuple[OperationResponse, ...]
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class ReferenceSubject:
    anchor: str
    name: str
    description: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    anchor: str
    name: str
    description: str
    type: tuple[Piece, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    introduction: str
    headers: tuple[tuple[str, str], ...]
    subjects: tuple[ReferenceSubject, ...]
    schemas: tuple[Schema, ...]
    # Code that verifies the signature of a webhook.
    webhook_samples: tuple[CodeSample, ...]


def search_reference(reference: Reference, search_text: str) -> Reference:
    """The operations and schemas that contain every search term in a name, a path, a text or a field."""
    terms = search_text.casefold().split()

    def matches(*texts: str) -> bool:
        text = " ".join(texts).casefold()
        return all(term in text for term in terms)

    def operation_matches(each: Operation) -> bool:
        parameters = (field.name for _, field in each.parameters)
        fields = (field.name for field in each.body_fields)
        return matches(each.method, each.path, each.summary, each.description, *parameters, *fields)

    subjects = []
    for subject in reference.subjects:
        operations = tuple(each for each in subject.operations if operation_matches(each))
        if operations:
            subjects.append(replace(subject, operations=operations))
    schemas = (one for one in reference.schemas if matches(one.name, one.description, *(f.name for f in one.fields)))
    return replace(reference, subjects=tuple(subjects), schemas=tuple(schemas))


def read_reference(document: Mapping[str, Any]) -> Reference:
    by_subject: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parsed = _read_operation(document, path, method.upper(), operation)
            by_subject.setdefault(operation["tags"][0], []).append(parsed)
    descriptions = {tag["name"]: tag["description"] for tag in document["tags"]}
    return Reference(
        introduction=document["info"]["description"],
        headers=tuple((name, header["description"]) for name, header in document["components"]["headers"].items()),
        subjects=tuple(
            ReferenceSubject(name.lower().replace(" ", "-"), name, descriptions[name], tuple(operations))
            for name, operations in by_subject.items()
        ),
        schemas=tuple(
            Schema(f"schema-{name}", name, schema.get("description", ""), type_of(schema), fields_of(schema))
            for name, schema in sorted(document["components"]["schemas"].items())
        ),
        webhook_samples=load_samples(VERIFY_WEBHOOK, address=document["servers"][0]["url"]),
    )


def _read_operation(document: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> Operation:
    parameters = [_resolve_ref(document, parameter) for parameter in operation.get("parameters", ())]
    body = operation.get("requestBody", {})
    media = body.get("content", {}).get("application/json", {})
    schema = media.get("schema", {})
    examples = tuple(Example(name, _to_json(example["value"])) for name, example in media.get("examples", {}).items())
    needs_key = operation.get("security", document["security"]) != []
    return Operation(
        anchor=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description=operation.get("description", ""),
        needs_key=needs_key,
        parameters=tuple((parameter["in"], _read_parameter(parameter)) for parameter in parameters),
        body_note=" ".join(text for text in (schema.get("description", ""), body.get("description", "")) if text),
        body_type=type_of(schema) if schema else (),
        body_fields=fields_of(_resolve_ref(document, schema)),
        examples=examples,
        curl=curl(
            document["servers"][0]["url"] + fill_placeholders(path),
            method=method,
            body=textwrap.indent(examples[0].body, "  ").lstrip() if examples else None,
            needs_key=needs_key,
        ),
        samples=samples_of(operation["operationId"], address=document["servers"][0]["url"]),
        responses=_read_responses(operation["responses"]),
        refusals=_read_errors(operation["responses"]),
    )


def curl(url: str, *, method: str = "GET", body: str | None = None, needs_key: bool = True) -> str:
    """A command for a POSIX shell. The key comes from the variable KEY, so that it is not in the shell history."""
    lines = [f"curl -s {url}" if method == "GET" or body is not None else f"curl -s -X {method} {url}"]
    if needs_key:
        lines.append('-H "x-api-key: $KEY"')
    if body is not None:
        lines += ['-H "content-type: application/json"', f"-d {_quote_for_shell(body)}"]
    return " \\\n  ".join(lines)


def _quote_for_shell(text: str) -> str:
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"


def _to_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def fill_placeholders(path: str) -> str:
    """Replace the placeholders of a path by example values."""
    return _PLACEHOLDER.sub(lambda match: quote(EXAMPLE_REFERENCES.get(match[1], match[1]), safe=""), path)


def _read_parameter(parameter: Mapping[str, Any]) -> Field:
    schema = {**parameter["schema"], "description": parameter.get("description", "")}
    return field_of(parameter["name"], schema, is_required=parameter.get("required", False))


def _read_responses(documented: Mapping[str, Any]) -> tuple[OperationResponse, ...]:
    responses = []
    for status, response in documented.items():
        if int(status) >= _ERROR_STATUS_MIN:
            continue
        schema = response.get("content", {}).get("application/json", {}).get("schema")
        own_headers = {name: header for name, header in response.get("headers", {}).items() if "$ref" not in header}
        responses.append(
            OperationResponse(
                status=int(status),
                description=response["description"],
                type=type_of(schema) if schema is not None else (),
                headers=tuple((name, header["description"]) for name, header in own_headers.items()),
            )
        )
    return tuple(responses)


def _read_errors(responses: Mapping[str, Any]) -> tuple[Refusal, ...]:
    return tuple(
        Refusal(int(status), tuple(response["content"]["application/problem+json"]["examples"]))
        for status, response in responses.items()
        if int(status) >= _ERROR_STATUS_MIN
    )


def _resolve_ref(document: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve a `$ref` within the document."""
    target: Any = part
    while "$ref" in target:
        steps = target["$ref"].removeprefix("#/").split("/")
        target = document
        for step in steps:
            target = target[step]
    resolved: Mapping[str, Any] = target
    return resolved
