"""Convert the OpenAPI document to a Postman collection (format 2.1): one request for each operation, with its
example."""

import json
from collections.abc import Mapping
from typing import Any, Final

from regulars.explore.reference import fill_placeholders

_SCHEMA: Final = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"


def build_collection(document: Mapping[str, Any]) -> dict[str, Any]:
    folders: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            folders.setdefault(operation["tags"][0], []).append(_request(path, method.upper(), operation))
    return {
        "info": {"name": document["info"]["title"], "schema": _SCHEMA, "version": document["info"]["version"]},
        "auth": {
            "type": "apikey",
            "apikey": [
                {"key": "key", "value": "x-api-key"},
                {"key": "value", "value": "{{api_key}}"},
                {"key": "in", "value": "header"},
            ],
        },
        "variable": [
            {"key": "base_url", "value": document["servers"][0]["url"]},
            {"key": "api_key", "value": ""},
        ],
        "item": [{"name": name, "item": requests} for name, requests in folders.items()],
    }


def _request(path: str, method: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    examples = [example["value"] for example in media.get("examples", {}).values()]
    url = "{{base_url}}" + fill_placeholders(path)
    request: dict[str, Any] = {"method": method, "url": url, "header": []}
    if examples:
        request["header"] = [{"key": "content-type", "value": "application/json"}]
        request["body"] = {"mode": "raw", "raw": json.dumps(examples[0], indent=2, ensure_ascii=False)}
    if description := operation.get("description"):
        request["description"] = description
    return {"name": operation["summary"], "request": request}
