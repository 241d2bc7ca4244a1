"""Finds the forms of a page, with the fields that a browser would send."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

Fields = list[tuple[str, str]]


@dataclass
class PageForm:
    action: str
    fields: Fields = field(default_factory=list)


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self.queries: list[PageForm] = []
        self._by_id: dict[str, PageForm] = {}
        self._open: PageForm | None = None
        # The form and the name of the list or text that is open.
        self._select: tuple[PageForm, str] | None = None
        self._text: tuple[PageForm, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = PageForm(given.get("action", ""))
            is_post = given.get("method", "").lower() == "post"
            (self.forms if is_post else self.queries).append(self._open)
            self._by_id[given.get("id", "")] = self._open
            return
        form = self._by_id.get(given["form"]) if "form" in given else self._open
        if form is None:
            return
        if "formaction" in given:
            self.forms.append(PageForm(given["formaction"], form.fields))
        name = given.get("name", "")
        if tag == "select":
            self._select = (form, name)
        elif tag == "textarea":
            self._text = (form, name)
        elif tag == "option" and self._select is not None:
            self._add_option(given)
        elif tag in {"input", "button"} and name:
            is_box = given.get("type") in {"radio", "checkbox"}
            if not is_box or "checked" in given:
                form.fields.append((name, given.get("value", "on" if is_box else "")))

    def _add_option(self, given: dict[str, str]) -> None:
        assert self._select is not None
        form, name = self._select
        if name and ("selected" in given or all(known != name for known, _ in form.fields)):
            form.fields[:] = [(known, value) for known, value in form.fields if known != name]
            form.fields.append((name, given.get("value", "")))

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            form, name = self._text
            form.fields.append((name, data.strip()))
            self._text = None

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "select":
            self._select = None
        elif tag == "textarea" and self._text is not None:
            self.handle_data("")


def find_forms(page: str) -> list[PageForm]:
    """The forms of a page that are sent by POST; a button with an address of its own is one more form."""
    parser = _Forms()
    parser.feed(page)
    return parser.forms


def find_queries(page: str) -> list[PageForm]:
    """The forms of a page that are sent by GET, such as filters and searches."""
    parser = _Forms()
    parser.feed(page)
    return parser.queries
