"""The form of a text in one or several languages, for every editor of texts: fill it, and read it.

Its fields are `text` (the default), `by` (the attribute that chooses) and, for each other language, `value_N` and
`text_N`. `templates/text_form.html` renders them.
"""

from collections.abc import Callable, Mapping

from regulars.messaging.template import (
    TEMPLATE_CHARACTERS_MAX,
    VALUE_CHARACTERS_MAX,
    VARIANTS_MAX,
    TextVariants,
)

_TEXT_FIELDS = frozenset({"text", *(f"text_{row}" for row in range(VARIANTS_MAX))})
Refuse = Callable[[str, str], None]


def fill_text_form(content: str | TextVariants) -> dict[str, str]:
    if isinstance(content, str):
        return {"text": content}
    values = {"text": content.default, "by": content.attribute}
    for row, (value, text) in enumerate(content.texts.items()):
        values |= {f"value_{row}": value, f"text_{row}": text}
    return values


def list_rows(values: Mapping[str, str]) -> list[int]:
    """The rows of other languages that the form shows: those that were filled in, and an empty one after them."""
    filled = _filled_rows(values)
    spare = next(row for row in range(VARIANTS_MAX + 1) if row not in filled)
    return [*filled, spare][:VARIANTS_MAX]


def read_text_form(values: Mapping[str, str], refuse: Refuse) -> str | TextVariants:
    """The text of the form, as far as it can be read; `refuse` is given each field that is wrong, and why."""
    default = _read_text(values, "text", refuse)
    rows, attribute = _filled_rows(values), values.get("by", "").strip()
    texts: dict[str, str] = {}
    for row in rows:
        value = values.get(f"value_{row}", "").strip()
        if not value or len(value) > VALUE_CHARACTERS_MAX:
            refuse(
                f"value_{row}", f"Write the value that chooses this text, at most {VALUE_CHARACTERS_MAX} characters."
            )
        elif value in texts:
            refuse(f"value_{row}", f"Another text is for {value} already.")
        texts[value] = _read_text(values, f"text_{row}", refuse)
    if rows and not attribute:
        refuse("by", "Choose the attribute whose value chooses the text.")
    return TextVariants(attribute, default, texts) if rows and attribute else default


def is_text_field(name: str) -> bool:
    return name in _TEXT_FIELDS


def _filled_rows(values: Mapping[str, str]) -> list[int]:
    return [
        row
        for row in range(VARIANTS_MAX)
        if values.get(f"value_{row}", "").strip() or values.get(f"text_{row}", "").strip()
    ]


def _read_text(values: Mapping[str, str], name: str, refuse: Refuse) -> str:
    text = values.get(name, "").replace("\r\n", "\n").strip()
    if not text:
        refuse(name, "Write the text.")
    elif len(text) > TEMPLATE_CHARACTERS_MAX:
        refuse(name, f"At most {TEMPLATE_CHARACTERS_MAX} characters; this has {len(text)}.")
    return text
