"""Checks every request and response of the black-box tests against the OpenAPI document."""

import json
import re
from collections.abc import Mapping
from functools import cache
from operator import itemgetter
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import jsonschema_rs

PROBLEM = "application/problem+json"
JSON = "application/json"
BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


class Contract:
    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._components = document["components"]
        self._templates = {tuple(path.split("/")): item for path, item in document["paths"].items()}
        self._validator = cache(self._compile)

    def operation(self, method: str, target: str) -> dict[str, Any] | None:
        for item in self._path_items(target.partition("?")[0]):
            if method.lower() in item:
                operation: dict[str, Any] = item[method.lower()]
                return operation
        return None

    def check(
        self, method: str, target: str, *, body: bytes | None, answer: "AnswerLike", is_described: bool = True
    ) -> None:
        """Asserts that the response is declared and that the schema allows an accepted request. `is_described` is false
        if only a description allows it."""
        request_id = answer.header("x-request-id")
        assert request_id, f"{method} {target}: no X-Request-Id"
        problem = _read_problem(answer) if answer.status >= 400 else None
        if problem is not None:
            assert self.takes({"$ref": "#/components/schemas/Problem"}, problem), problem
            assert problem["status"] == answer.status, problem
            assert problem["request_id"] == request_id or answer.header("idempotent-replayed"), problem
        operation = self.operation(method, target)
        if operation is None:
            expected = "METHOD_NOT_ALLOWED" if self._path_items(target.partition("?")[0]) else "ROUTE_NOT_FOUND"
            assert problem is not None, f"{method} {target}: answered {answer.status} but is not in the document"
            assert problem["code"] == expected, problem
            return
        declared = operation["responses"].get(str(answer.status))
        assert declared is not None, f"{method} {target}: {answer.status} is not declared\n{answer.body[:500]!r}"
        self._check_body(f"{method} {target}", declared, answer)
        if problem is not None:
            assert problem["code"] in declared["content"][PROBLEM]["examples"], f"{method} {target}: {problem}"
        if is_described and answer.status < 300 and not answer.header("idempotent-replayed"):
            self._check_request(operation, target, body, answer)

    def _check_body(self, call: str, declared: dict[str, Any], answer: "AnswerLike") -> None:
        if "content" not in declared:
            assert answer.body == b"", f"{call}: {answer.status} has a body"
            return
        content_type = (answer.header("content-type") or "").partition(";")[0]
        assert content_type in declared["content"], f"{call}: {answer.status} came as {content_type!r}"
        value = json.loads(answer.body)
        self._assert_fits(declared["content"][content_type]["schema"], value, call)

    def _check_request(self, operation: dict[str, Any], target: str, body: bytes | None, answer: "AnswerLike") -> None:
        call = f"request to {operation['operationId']}"
        if "requestBody" in operation:
            schema = operation["requestBody"]["content"][JSON]["schema"]
            try:
                accepted = _accepted(json.loads(body or b""), answer)
            except RecursionError:
                # Python's decoder has a depth limit; the test checks such a body itself.
                accepted = None
            if accepted is not None:
                self._assert_fits(schema, accepted, call)
        query = parse_qsl(target.partition("?")[2], keep_blank_values=True)
        declared = {
            p["name"]: p["schema"] for p in map(self._resolve, operation.get("parameters", ())) if p["in"] == "query"
        }
        for name, text in query:
            assert name in declared, f"{call}: {name} is not declared"
            kind = declared[name].get("type")
            # A number in a query may have leading zeros, which JSON forbids.
            value: object = int(text) if kind == "integer" else json.loads(text) if kind == "boolean" else text
            self._assert_fits(declared[name], value, call)

    def _path_items(self, path: str) -> list[dict[str, Any]]:
        """Matches like the server: by undecoded segments, literal paths before placeholders."""
        segments = tuple(path.split("/"))
        matching = [
            (any(part.startswith("{") for part in template), item)
            for template, item in self._templates.items()
            if len(template) == len(segments) and all(map(_segment_matches, template, segments))
        ]
        return [item for _, item in sorted(matching, key=itemgetter(0))]

    def _resolve(self, value: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in value:
            return value
        found: Any = self.document
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return found

    def _assert_fits(self, schema: Mapping[str, Any], value: object, call: str) -> None:
        errors = [str(error) for error in self._validator(json.dumps(schema)).iter_errors(value)]
        assert not errors, f"{call}: {errors[:3]}"

    def takes(self, schema: Mapping[str, Any], value: object) -> bool:
        """Whether the schema allows the value."""
        return self._validator(json.dumps(schema)).is_valid(value)

    def _compile(self, schema: str) -> Any:
        return jsonschema_rs.Draft202012Validator({**json.loads(schema), "components": self._components})


def _accepted(sent: Any, answer: "AnswerLike") -> Any:
    """The accepted items of a batch, or None if there is none; another body as it is."""
    results = json.loads(answer.body).get("results", ()) if answer.body else ()
    if not results or not isinstance(sent.get("items"), list) or len(results) != len(sent["items"]):
        return sent
    accepted = [
        item
        for item, result in zip(sent["items"], results, strict=True)
        if result.get("body") is None or result["status"] < 400
    ]
    return {**sent, "items": accepted} if accepted else None


class AnswerLike:
    """The attributes of a response that the checks read."""

    status: int
    body: bytes

    def header(self, name: str) -> str | None:
        raise NotImplementedError


def _segment_matches(template: str, segment: str) -> bool:
    if not template.startswith("{"):
        return template == segment
    if not segment or BAD_ESCAPE.search(segment):
        return False
    try:
        return "\x00" not in unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        return False


def _read_problem(answer: AnswerLike) -> dict[str, Any]:
    content_type = answer.header("content-type")
    assert content_type == PROBLEM, f"{answer.status} came as {content_type!r}: {answer.body[:300]!r}"
    problem: dict[str, Any] = json.loads(answer.body)
    return problem
