"""A Jinja extension that removes line breaks between two tags, and replaces a line break next to text by one space.

So breaking a long template line does not change the page: a button with an icon and a label renders the same from one
line and from three. A space between two tags on one line is kept.
"""

import re
from collections.abc import Iterator

from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

# Not \s, which would also match a no-break space.
_BREAK = re.compile(r"(?<![ \t\r])[ \t\r]*\n[ \t\r\n]*")


class LineBreaks(Extension):
    """Joins the lines of the text between Jinja blocks; `{% … %}` and `{{ … }}` count as tags."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        markup = _Markup()
        tokens = list(stream)
        for index, token in enumerate(tokens):
            if token.type != "data":
                yield token
                continue
            joined = markup.join_lines(token.value)
            if markup.is_in_tag and joined.endswith(" ") and _begins_with_space(tokens[index + 1 :]):
                joined = joined.removesuffix(" ")
            yield Token(token.lineno, token.type, joined)


def _begins_with_space(following: list[Token]) -> bool:
    """Whether a block such as `{% if is_on %} checked{% endif %}` follows."""
    if not following or following[0].type != "block_begin":
        return False
    return next((token.value[:1].isspace() for token in following if token.type == "data"), False)


class _Markup:
    """Reads markup piece by piece, and tracks whether it is inside a tag, where a line break separates attributes."""

    def __init__(self) -> None:
        self.is_in_tag = False
        self._quote = ""

    def join_lines(self, data: str) -> str:
        joined, *following_lines = _BREAK.split(data)
        self._read(joined)
        for text in following_lines:
            is_between_tags = (not joined or joined.endswith(">")) and (not text or text.startswith("<"))
            joined += text if is_between_tags and not self.is_in_tag else f" {text}"
            self._read(text)
        return joined

    def _read(self, text: str) -> None:
        for index, char in enumerate(text):
            if self._quote:
                self._quote = "" if char == self._quote else self._quote
            elif self.is_in_tag:
                self._quote = char if char in "\"'" else ""
                self.is_in_tag = char != ">"
            else:
                # A `<` before a digit, a space or `=` is a comparison, not a tag.
                self.is_in_tag = char == "<" and text[index + 1 : index + 2].strip("0123456789 =") != ""
