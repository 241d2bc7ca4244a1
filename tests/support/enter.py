"""Finds what Enter presses in the fields of a page: the first submit button of their form."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

# Enter in one of these opens or switches it.
UNTYPED = {"hidden", "checkbox", "radio", "file", "submit", "button"}
Button = dict[str, str | None]


@dataclass
class TypedForm:
    """A form with a field of one line; `buttons` are its submit buttons, in the order of the page."""

    buttons: list[Button] = field(default_factory=list)
    has_field: bool = False

    @property
    def has_several_actions(self) -> bool:
        return len({tuple(map(button.get, ("formaction", "name", "value"))) for button in self.buttons}) > 1

    @property
    def is_checked_by_enter(self) -> bool:
        """Whether Enter presses a hidden button that shows the form again and saves nothing."""
        first = self.buttons[0]
        return (first.get("aria-hidden"), "hx-post" in first) == ("true", True)

    @property
    def is_left_by_enter(self) -> bool:
        """Whether Enter presses a button that is disabled, and so does nothing."""
        return "disabled" in self.buttons[0]


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.inside = ""
        self.forms: dict[str, TypedForm] = {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if tag == "form":
            self.inside = found.get("id") or f"{found.get('action')}#{len(self.forms)}"
            return
        form = self.forms.setdefault(found.get("form") or self.inside, TypedForm())
        if tag == "input" and found.get("type") not in UNTYPED:
            form.has_field = True
        elif tag == "button" and found.get("type", "submit") == "submit":
            form.buttons.append(found)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = ""


def find_typed_forms(page: str) -> dict[str, TypedForm]:
    """The forms with a field of one line, by their id or else their address and number."""
    parser = _Forms()
    parser.feed(page)
    return {key: form for key, form in parser.forms.items() if key and form.has_field and form.buttons}
