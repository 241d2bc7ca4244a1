"""Texts with variables that are filled for each customer: `Hello {{ profile.first_name | default("you") }}`.

The language is small: a variable has one field and optionally a filter, and a link has one destination:
`{{ link("https://…") }}`. If the value is missing, `default("you")` stands in its place, and `before(" ")` leaves out
the variable with the text before it: `Merci{{ profile.first_name | before(" ") }} !`. There are no loops or calls, so
mistakes are found when the text is saved, not when it is sent. Values are data: braces and control characters are
removed from them, so no text is sent with a variable in it.
Until a link gets its short code, two control characters, the marks, enclose its destination (`links/marks.py`).
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from regulars.links import marks
from regulars.profiles.model import AttributeKey

TEMPLATE_CHARACTERS_MAX: Final = 2_000
VALUE_CHARACTERS_MAX: Final = 100
VARIANTS_MAX: Final = 20
# Parsed templates are cached, since a text is rendered for many customers in a row.
TEMPLATES_CACHED_MAX: Final = 256

# The fields of variables, with their labels. Each customer attribute is a field too: profile.attributes.size,
# profile.attributes["shoe size"].
PLAIN_FIELDS: Final = {
    "profile.first_name": "the customer's first name",
    "profile.last_name": "the customer's last name",
    # The store of the ticket that triggered the text; if no ticket did, the customer's home store.
    "store.name": "the store's name",
    "store.city": "the store's city",
    "ticket.total": "what was paid, with its currency",
    "brand": "the brand's name",
}
ATTRIBUTE_PREFIX: Final = "profile.attributes."

_OPEN, _CLOSE = "{{", "}}"
_QUOTES: Final = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
_ATTRIBUTE_BY_KEY: Final = re.compile(r"profile\.attributes\[(?P<key>.+)\]", re.DOTALL)
_FILTER: Final = re.compile(r"(?P<name>default|before)\s*\((?P<text>.*)\)", re.DOTALL)
_SECOND_FILTER: Final = re.compile(r"\)\s*\|\s*(default|before)\s*\(")
_LINK: Final = re.compile(r"link\s*\((?P<url>.*)\)", re.DOTALL)
_OPT_OUT_LINK: Final = re.compile(r"opt_out_link\s*\(\s*\)")
_UNSAFE: Final = re.compile(r"[{}\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_VARIABLE: Final = re.compile(r"(\{\{[^}]*\}\})")
_SPACES: Final = re.compile(r"\s+")


class TemplateError(Exception):
    """One sentence about a mistake in a template; `position` counts characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class Variable:
    """A field of a text. A customer without its value gets the default; with `before`, which is written before a value,
    the text goes on without both."""

    field: str
    default: str | None
    position: int
    before: str | None = None

    def fill(self, value: str | None) -> str | None:
        """The text of this variable; None if it has neither a value nor a filter for customers without one."""
        cleaned = clean_value(value or "")
        if self.before is not None:
            return f"{self.before}{cleaned}" if cleaned else ""
        return cleaned or self.default


@dataclass(frozen=True, slots=True)
class MissingValue:
    """A field that has neither a value nor a filter for customers without one, so the text is not sent."""

    field: str


class Link(NamedTuple):
    destination: str
    position: int


@dataclass(frozen=True, slots=True)
class Template:
    pieces: tuple[str | Variable, ...]
    # The links among the pieces, in their order.
    links: tuple[Link, ...] = ()

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(piece.field for piece in self.pieces if isinstance(piece, Variable))


TemplateText = Annotated[str, Meta(min_length=1, max_length=TEMPLATE_CHARACTERS_MAX)]


class TextVariants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text in several languages. The value of a profile attribute chooses the text; all other customers get the
    default. Values are compared without regard to case."""

    attribute: AttributeKey
    default: TemplateText
    texts: Annotated[
        dict[Annotated[str, Meta(min_length=1, max_length=VALUE_CHARACTERS_MAX)], TemplateText],
        Meta(min_length=1, max_length=VARIANTS_MAX),
    ]

    def __hash__(self) -> int:
        return hash((self.attribute, self.default, *self.texts.items()))


TextContent = TemplateText | TextVariants


def texts_by_value(content: str | TextVariants) -> dict[str, str]:
    """All texts by the attribute value that chooses them; the default is first and has an empty value."""
    return {"": content} if isinstance(content, str) else {"": content.default, **content.texts}


def choose_text(content: str | TextVariants, values: Mapping[str, str | None]) -> str:
    """The text for a customer with these values."""
    if isinstance(content, str):
        return content
    value = _normalize(values.get(ATTRIBUTE_PREFIX + content.attribute) or "")
    return next((text for choice, text in content.texts.items() if _normalize(choice) == value), content.default)


def render_text(content: str | TextVariants, values: Mapping[str, str | None]) -> "str | MissingValue":
    """The text for a customer with all variables filled, or the first field that has no value."""
    return render(parse_template(choose_text(content, values)), values)


def fields_of(content: str | TextVariants) -> frozenset[str]:
    """All fields that the texts use, and the field that chooses between the texts; a text with a mistake has none."""
    fields = set() if isinstance(content, str) else {ATTRIBUTE_PREFIX + content.attribute}
    for text in texts_by_value(content).values():
        try:
            fields |= parse_template(text).fields
        except TemplateError:
            continue
    return frozenset(fields)


def find_text_faults(content: str | TextVariants, *, attribute_keys: Collection[str]) -> Iterator[str]:
    """One sentence for each text with a mistake, for an unknown attribute, and for a value that chooses two texts."""
    if isinstance(content, TextVariants):
        if content.attribute not in attribute_keys:
            yield f"No customer has an attribute called {content.attribute}, which chooses the language."
        values = [_normalize(value) for value in content.texts]
        duplicates = [value for index, value in enumerate(content.texts) if values[index] in values[:index]]
        yield from (f"Two texts are for {value}." for value in duplicates)
    for value, text in texts_by_value(content).items():
        try:
            check_fields(parse_template(text), attribute_keys=attribute_keys)
        except TemplateError as error:
            yield f"{f'Text for {value}: ' if value else ''}{error} (character {error.position + 1})"


def _normalize(value: str) -> str:
    return value.strip().casefold()


@lru_cache(maxsize=TEMPLATES_CACHED_MAX)
def parse_template(text: str) -> Template:
    """Parse a text with its variables; raises `TemplateError`."""
    if len(text) > TEMPLATE_CHARACTERS_MAX:
        raise TemplateError(
            f"At most {TEMPLATE_CHARACTERS_MAX} characters; this has {len(text)}.", TEMPLATE_CHARACTERS_MAX
        )
    if not text.strip():
        raise TemplateError("The text is empty.", 0)
    pieces: list[str | Variable] = []
    links: list[Link] = []
    position = 0
    while (opened := text.find(_OPEN, position)) != -1:
        pieces.append(_read_literal(text, position, opened))
        closed = text.find(_CLOSE, opened + 2)
        if closed == -1:
            raise TemplateError("A variable that begins with {{ does not end with }}.", opened)
        content = text[opened + 2 : closed].strip()
        destination = _read_link(content, opened)
        if destination is None:
            pieces.append(_read_variable(content, position=opened))
        else:
            pieces.append(marks.mark(destination))
            links.append(Link(destination, opened))
        position = closed + 2
    pieces.append(_read_literal(text, position, len(text)))
    _check_link_count(links)
    if not any(piece.before is None if isinstance(piece, Variable) else piece.strip() for piece in pieces):
        raise TemplateError("The text is empty for customers without these values.", 0)
    return Template(tuple(piece for piece in pieces if piece != ""), tuple(links))


def check_fields(template: Template, *, attribute_keys: Collection[str]) -> None:
    """Refuse fields that do not exist, and links that this installation cannot have."""
    check_links(template)
    for piece in template.pieces:
        if not isinstance(piece, Variable) or piece.field in PLAIN_FIELDS:
            continue
        if piece.field.startswith(ATTRIBUTE_PREFIX):
            key = piece.field.removeprefix(ATTRIBUTE_PREFIX)
            if key in attribute_keys:
                continue
            raise TemplateError(f"No customer has an attribute called {key}.", piece.position)
        fields = ", ".join((*PLAIN_FIELDS, ATTRIBUTE_PREFIX + "KEY"))
        raise TemplateError(f"There is no field {piece.field}; the fields are {fields}.", piece.position)


def check_links(template: Template) -> None:
    """Refuse links to the host of short links, and opt-out links if there is no such host."""
    for link in template.links:
        if (fault := marks.find_host_fault(link.destination)) is not None:
            raise TemplateError(fault, link.position)


def render_plain(text: str) -> str | MissingValue:
    """Render a text without the values of a customer; it may have links, but no variables. Raises `TemplateError`."""
    template = parse_template(text)
    check_links(template)
    return render(template, {})


def render(template: Template, values: Mapping[str, str | None]) -> str | MissingValue:
    """The text with all variables filled, or the first field that has no value and cannot be left out."""
    rendered: list[str] = []
    for piece in template.pieces:
        if isinstance(piece, str):
            rendered.append(piece)
            continue
        filled = piece.fill(values.get(piece.field))
        if filled is None:
            return MissingValue(piece.field)
        rendered.append(filled)
    return "".join(rendered)


def fill_defaults(template: Template, values: Mapping[str, str | None] = MappingProxyType({})) -> str:
    """The text with the value of each variable, its default or its label; for test texts and to count SMS parts."""
    return "".join(
        piece if isinstance(piece, str) else _fill_or_label(piece, values.get(piece.field)) for piece in template.pieces
    )


def fill_shortest(template: Template) -> str | None:
    """Like `fill_defaults` without values, and without the variables that can be left out; None if there are none."""
    if all(isinstance(piece, str) or piece.before is None for piece in template.pieces):
        return None
    return "".join(
        piece if isinstance(piece, str) else "" if piece.before is not None else _fill_or_label(piece, None)
        for piece in template.pieces
    )


def _fill_or_label(variable: Variable, value: str | None) -> str:
    return variable.fill(value) or variable.fill(label_field(variable.field)) or ""


class NamedCustomer(Protocol):
    """The values of a customer that a text may contain."""

    @property
    def first_name(self) -> str | None: ...
    @property
    def last_name(self) -> str | None: ...
    @property
    def attributes(self) -> Mapping[str, str]: ...


def customer_variables(customer: NamedCustomer, *, brand: str) -> dict[str, str | None]:
    """The values of the variables that depend only on the customer, not on the ticket that triggered the text."""
    return {
        "brand": brand,
        "profile.first_name": customer.first_name,
        "profile.last_name": customer.last_name,
        **{ATTRIBUTE_PREFIX + key: value for key, value in customer.attributes.items()},
    }


def replace_outside_variables(text: str, replace: Callable[[str], str]) -> str:
    """Apply `replace` to the text between the variables, and leave the variables as they are."""
    return "".join(piece if index % 2 else replace(piece) for index, piece in enumerate(_VARIABLE.split(text)))


def label_field(field: str) -> str:
    """The name of a field for users, such as `first name`."""
    name = PLAIN_FIELDS.get(field) or field.removeprefix(ATTRIBUTE_PREFIX)
    return name.removeprefix("the ").removeprefix("customer's ")


def clean_value(value: str) -> str:
    """The value in one line, of limited length, without braces and invisible characters."""
    return _SPACES.sub(" ", _UNSAFE.sub(" ", value)).strip()[:VALUE_CHARACTERS_MAX].strip()


def _read_literal(text: str, start: int, end: int) -> str:
    stray = text.find(_CLOSE, start, end)
    if stray != -1:
        raise TemplateError("There is a }} without a {{ before it.", stray)
    return marks.remove_marks(text[start:end])


def _read_link(content: str, position: int) -> str | None:
    """The destination of a link; None if the braces contain a variable."""
    if _OPT_OUT_LINK.fullmatch(content):
        return marks.OPT_OUT
    match = _LINK.fullmatch(content)
    if match is None:
        return None
    url = _unquote(match["url"].strip(), position)
    fault = marks.find_fault(url)
    if fault is not None:
        raise TemplateError(fault, position)
    return url


def _check_link_count(links: Sequence[Link]) -> None:
    """Refuse too many links at the place of the first one to remove."""
    links_max = marks.LINKS_PER_TEXT_MAX
    if len(links) > links_max:
        message = f"A text has at most {links_max} links; this has {len(links)}."
        raise TemplateError(message, links[links_max].position)


def _read_variable(content: str, *, position: int) -> Variable:
    field, bar, rest = content.partition("|")
    key = _ATTRIBUTE_BY_KEY.fullmatch(field.strip())
    # A quoted key may contain the bar.
    if bar and key is None and field.count("[") and (split := _split_after_key(content)) is not None:
        field, bar, rest = split
        key = _ATTRIBUTE_BY_KEY.fullmatch(field.strip())
    name = field.strip()
    if key is not None:
        name = ATTRIBUTE_PREFIX + _unquote(key["key"].strip(), position)
    if not name:
        raise TemplateError("A variable has no field.", position)
    if "{" in name or "}" in name:
        raise TemplateError("The name of a field contains a brace.", position)
    return _read_filter(name, rest, position) if bar else Variable(name, None, position)


def _split_after_key(content: str) -> tuple[str, str, str] | None:
    """The field, the bar and the text after the bar, if the key in brackets contains a bar."""
    end = content.find("]")
    if end == -1:
        return None
    field, rest = content[: end + 1], content[end + 1 :]
    before, bar, after = rest.partition("|")
    return None if before.strip() else (field, bar, after)


def _read_filter(field: str, text: str, position: int) -> Variable:
    match = _FILTER.fullmatch(text.strip())
    if match is None or (_SECOND_FILTER.search(text) and "before" in text):
        raise TemplateError('After the bar only default("…") or before("…") is allowed, not both.', position)
    quoted = _unquote(match["text"].strip(), position)
    if match["name"] == "before":
        before = _SPACES.sub(" ", _UNSAFE.sub(" ", quoted))[:VALUE_CHARACTERS_MAX]
        return Variable(field, None, position, before)
    default = clean_value(quoted)
    if not default:
        raise TemplateError("The default is empty.", position)
    return Variable(field, default, position)


def _unquote(text: str, position: int) -> str:
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) < 2 or not text.endswith((closing, text[0])):  # noqa: PLR2004  # a pair of quotes
        raise TemplateError("A filter's text, a key in brackets and the address of a link must be in quotes.", position)
    return text[1:-1]
