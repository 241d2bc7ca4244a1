"""Texts with variables as users read them: labels stand for the variables, and addresses for the links."""

from collections.abc import Callable
from functools import partial

from regulars.links import marks
from regulars.texts.template import TemplateError, Variable, label_field, parse_template


def describe_template(text: str, *, with_fallbacks: bool = False) -> str:
    """The text for users, with the label of each variable in brackets, and its fallback with `with_fallbacks`. A text
    with a mistake is returned unchanged."""
    return _describe(text, partial(_describe_variable, with_fallback=with_fallbacks))


def describe_without_values(text: str) -> str | None:
    """The text for users as a customer without any values gets it; a label in brackets stands for a value without which
    there is no text. None if every customer gets the same text."""
    described = _describe(text, _describe_missing)
    return None if described == describe_template(text) else described


def list_destinations(text: str) -> list[str]:
    """The addresses of the links of a text, without links to opt out; none if the text has a mistake."""
    try:
        links = parse_template(text).links
    except TemplateError:
        return []
    return [link.destination for link in links if link.destination != marks.OPT_OUT]


def _describe(text: str, describe_variable: Callable[[Variable], str]) -> str:
    try:
        pieces = parse_template(text).pieces
    except TemplateError:
        return text
    described = "".join(piece if isinstance(piece, str) else describe_variable(piece) for piece in pieces)
    return marks.replace_marked(described, lambda url: f"[link to {url.partition('://')[2] or url}]")


def _describe_missing(variable: Variable) -> str:
    filled = variable.fill(None)
    return f"[{label_field(variable.field)}]" if filled is None else filled


def _describe_variable(variable: Variable, *, with_fallback: bool) -> str:
    label = label_field(variable.field)
    if not with_fallback:
        return f"{variable.before or ''}[{label}]"
    if variable.before is not None:
        return f"[“{variable.before}” and {label}, or nothing]"
    return f"[{label}, or “{variable.default}”]" if variable.default else f"[{label}]"
