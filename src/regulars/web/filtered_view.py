"""The filters in the URL of an analysis: its links, and the hidden fields and errors of its form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlencode

from regulars.web.errors import BadFilter
from regulars.web.form import FormState


@dataclass(frozen=True, kw_only=True)
class FilteredView:
    """`values` has the URL fields that differ from the defaults of the page, `form` the errors of invalid fields."""

    path: str
    values: Mapping[str, str | Sequence[str]]
    form: FormState

    def value(self, name: str) -> str:
        value = self.values.get(name, "")
        return value if isinstance(value, str) else ""

    @property
    def query(self) -> str:
        return urlencode(self.values, doseq=True)

    def url(self, *, path: str | None = None, **changed: str | Sequence[str] | None) -> str:
        """The URL with changed values; an empty value removes the field. `from_` is the field `from`."""
        changes = {name.rstrip("_"): value for name, value in changed.items()}
        query = {name: value for name, value in {**self.values, **changes}.items() if value}
        return (path or self.path) + (f"?{urlencode(query, doseq=True)}" if query else "")

    def csv_url(self) -> str:
        return self.url(path=f"{self.path}.csv")

    def hidden(self, shown: Sequence[str]) -> list[tuple[str, str]]:
        """The fields of the URL that the form does not show, for hidden inputs: one for each value."""
        hidden = [(name, value) for name, value in self.values.items() if name not in shown]
        return [(name, text) for name, value in hidden for text in ([value] if isinstance(value, str) else value)]

    def require_readable(self) -> Self:
        """Raise an error if a filter is invalid; for CSV files, which cannot show errors beside fields."""
        if self.form.is_refused:
            raise BadFilter(" ".join(self.form.errors.values()), path=self.path)
        return self
