"""Fill and read the form of a text in one or several languages, for all pages on which texts are edited.

The fields are `text` (the default), `by` (the customer attribute whose value chooses the language) and, for each other
language, `value_N` and `text_N`. `templates/text_form.html` renders them. In a form with several texts, the fields of
each text have a prefix.
"""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from regulars.catalog.entries import list_entries
from regulars.catalog.model import Catalog
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest
from regulars.links.marks import short_url
from regulars.texts.sms_encoding import replace_unicode
from regulars.texts.template import (
    ATTRIBUTE_PREFIX,
    TEMPLATE_CHARACTERS_MAX,
    VALUE_CHARACTERS_MAX,
    VARIANTS_MAX,
    TextVariants,
)

_TEXT_FIELDS = frozenset({"text", *(f"text_{row}" for row in range(VARIANTS_MAX))})
# Called with the name of a wrong field and the reason.
Refuse = Callable[[str, str], None]
ATTRIBUTES_OFFERED_MAX: Final = 200
# The template of a link, whose address the user completes.
LINK_VARIABLE: Final = '{{ link("https://") }}'
OPT_OUT_VARIABLE: Final = "{{ opt_out_link() }}"
# The filter of an offered variable that may have no value: the space before it goes with it.
LEFT_OUT: Final = ' | before(" ")'


def fill_text_form(content: str | TextVariants) -> dict[str, str]:
    if isinstance(content, str):
        return {"text": content}
    values = {"text": content.default, "by": content.attribute}
    for row, (value, text) in enumerate(content.texts.items()):
        values |= {f"value_{row}": value, f"text_{row}": text}
    return values


def list_language_rows(values: Mapping[str, str]) -> list[int]:
    """The numbers N of the languages besides the default that the form shows: all that are filled in, and an empty
    one."""
    filled = _filled_rows(values)
    spare = next(row for row in range(VARIANTS_MAX + 1) if row not in filled)
    return [*filled, spare][:VARIANTS_MAX]


def read_text_form(values: Mapping[str, str], refuse: Refuse) -> str | TextVariants:
    """The text of the form; `refuse` is called for each wrong field, and then the text is not usable."""
    default = _read_text(values, "text", refuse)
    rows, attribute = _filled_rows(values), values.get("by", "").strip()
    texts: dict[str, str] = {}
    for row in rows:
        value = values.get(f"value_{row}", "").strip()
        if not value or len(value) > VALUE_CHARACTERS_MAX:
            refuse(
                f"value_{row}",
                f"Write the value that chooses this text, with at most {VALUE_CHARACTERS_MAX} characters.",
            )
        elif value in texts:
            refuse(f"value_{row}", f"Another text is already for {value}.")
        texts[value] = _read_text(values, f"text_{row}", refuse)
    if rows and not attribute:
        refuse("by", "Choose the attribute that chooses the language.")
    return TextVariants(attribute, default, texts) if rows and attribute else default


def apply_button(values: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """The texts of a form after a press of a button that changes texts and saves nothing. The button `replace` replaces
    a character that forces Unicode; the button `insert` inserts the chosen variable into the text that it names."""
    texts = {
        name: value.replace("\r\n", "\n")
        for name, value in values.items()
        if name.startswith(prefix) and name.removeprefix(prefix) in _TEXT_FIELDS
    }
    if values.get("replace"):
        texts = {name: replace_character(text, values["replace"]) for name, text in texts.items()}
    variable, target = values.get(f"{prefix}field"), values.get("insert")
    if variable and target is not None and (target in texts or not prefix):
        target = target if target in texts else "text"
        # The space before a variable that can be left out belongs to the variable.
        space = "" if LEFT_OUT in variable else " "
        texts[target] = f"{texts.get(target, '').rstrip()}{space}{variable}".strip()
    return texts


def replace_character(text: str, character: str) -> str:
    """Replace every occurrence of a character by a similar GSM-7 character, if there is one."""
    return text.replace(character, replace_unicode(character)) if len(character) == 1 else text


async def list_variables(
    tx: Tx, organization_id: UUID, labels: Mapping[str, str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """The template variables that an editor offers, each as it is written in a text with its label; and the keys of the
    customer attributes. `labels` has the labels of the fields that this kind of text may use."""
    entries = await list_entries(tx, organization_id, Catalog.ATTRIBUTES, PageRequest(ATTRIBUTES_OFFERED_MAX))
    plain = [(_write_variable(name), label) for name, label in labels.items()]
    keys = [entry.key for entry in entries]
    attributes = [(_write_variable(f"{ATTRIBUTE_PREFIX}{key}", key), f"attribute {key}") for key in keys]
    # Without a host for short links there is no opt-out page.
    opt_out = [] if short_url("", is_demo=False) is None else [(OPT_OUT_VARIABLE, "a link to opt out")]
    return [*plain, (LINK_VARIABLE, "a link"), *opt_out, *attributes], keys


def _write_variable(name: str, key: str | None = None) -> str:
    """A template variable as it is written. If a customer or a store may have no value, it can be left out: words for
    a default would be in one language."""
    if key is not None and not key.isidentifier():
        quoted = f"'{key}'" if '"' in key else f'"{key}"'
        name = f"profile.attributes[{quoted}]"
    left_out = LEFT_OUT if name.startswith("profile.") or name == "store.city" else ""
    return f"{{{{ {name}{left_out} }}}}"


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
