"""Templates are laid out by one program, in short lines, and their layout never changes a page."""

import re
from html.parser import HTMLParser

import pytest
from jinja2 import Environment
from markupsafe import Markup
from tests.architecture.format_templates import SOURCE, WIDTH, format_template
from tests.support.project import ROOT

from regulars.web.line_breaks import LineBreaks

LINE_CHARACTERS_MAX = 160
FILE_LINES_MAX = 400
MACRO_LINES_MAX = 60
MACRO = re.compile(r"{% macro (\w+).*?{% endmacro %}", re.DOTALL)
TEMPLATES = sorted(SOURCE.glob("*/templates/*.html"))
LONG = "word " * 30
VALUES = {
    "is_on": True,
    "is_off": False,
    "number": 7,
    "items": ["a", "b"],
    "long": "x" * WIDTH,
    "icon": lambda _: Markup("<i></i>"),
}


class Events(HTMLParser):
    """The tags and texts of a page, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[object] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, attrs))

    def handle_endtag(self, tag):
        self.found.append(tag)

    def handle_data(self, data):
        self.found.append([data])


def rendered(source: str) -> str:
    return Environment(extensions=[LineBreaks], autoescape=True).from_string(source).render(VALUES)


def test_no_line_of_a_template_is_longer_than_160_characters():
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in TEMPLATES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LINE_CHARACTERS_MAX
    ]
    assert long == []


def test_templates_and_macros_are_short():
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in TEMPLATES}
    assert {path: source.count("\n") for path, source in sources.items() if source.count("\n") > FILE_LINES_MAX} == {}
    macros = [(path, macro[1], macro[0].count("\n") + 1) for path in sources for macro in MACRO.finditer(sources[path])]
    assert [macro for macro in macros if macro[2] > MACRO_LINES_MAX] == []


def test_no_template_makes_a_plural_itself():
    """`format.count` and `format.change` do."""
    plural = re.compile(r'"s?" if [^}]{1,60}== 1 else "s?"|−\{\{')
    found = {str(path.relative_to(ROOT)): plural.findall(path.read_text(encoding="utf-8")) for path in TEMPLATES}
    assert {path: matches for path, matches in found.items() if matches} == {}


def test_every_template_is_formatted():
    """`python tests/architecture/format_templates.py` formats them."""
    sources = {path: path.read_text(encoding="utf-8") for path in TEMPLATES}
    assert [str(path.relative_to(ROOT)) for path, source in sources.items() if format_template(source) != source] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<b>a</b>\n  <b>c</b>", "<b>a</b><b>c</b>"),
        ("<b>a</b> <b>c</b>", "<b>a</b> <b>c</b>"),
        ("<b>a</b>\n  and\n<b>c</b>", "<b>a</b> and <b>c</b>"),
        ("{{ number }}\n{{ number }}", "77"),
        ("{{ number }}\ntickets", "7 tickets"),
        ("{% if is_on %}\n  <b>a</b>\n{% endif %}\n<i></i>", "<b>a</b><i></i>"),
        ('<input\n  {% if is_on %} checked{% endif %}\n  name="a\n  b">', '<input checked name="a b">'),
        ('<a title="a > b"\n  {{ number }}>\n  x</a>', '<a title="a > b" 7> x</a>'),
        ("5 < 7\nis so", "5 < 7 is so"),
        ("7\u00a0\u20ac\n<b></b>", "7\u00a0\u20ac <b></b>"),
        ("<pre>{{ number }}{{ '\\n' }}\n  {{ number }}</pre>", "<pre>7\n7</pre>"),
    ],
)
def test_a_line_break_renders_nothing_between_tags_and_one_space_beside_text(source, expected):
    assert rendered(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        f"<p>{LONG}<a href='x'>link</a>, {LONG}</p>",
        f'<a class="button" href="{{{{ long }}}}" title="{LONG.strip()}">{{{{ icon("x") }}}}Label</a> <b>x</b>',
        f"<td>{{{{ number }}}} ticket{{{{ '' if number == 1 else 's' }}}}{{% if is_on %}}, {LONG}{{% endif %}}.</td>",
        f'<input class="x"{{% if is_on %}} checked{{% endif %}}{{% if is_off %}} hidden{{% endif %}} title="{LONG}">',
        f"<ul>{{% for one in items %}}<li>{{{{ one }}}} {LONG}</li>{{% else %}}<li>none</li>{{% endfor %}}</ul>",
        f"{{% if is_on %}}<div>{{% endif %}}<p>{LONG}</p><p>{LONG}</p>{{% if is_on %}}</div>{{% endif %}}",
        f"<pre><code>{{{{ number }}}}</code></pre><textarea>{{{{ number }}}}</textarea><p>{LONG}</p>",
        "{{ [" + ", ".join(f'"a, b if c {number}"' for number in range(20)) + "] | join }}",
    ],
)
def test_formatting_is_stable_and_renders_the_same(source):
    formatted = format_template(source)
    assert format_template(formatted) == formatted
    assert formatted.count("\n") > 1
    assert Events(re.sub("  +", " ", rendered(formatted)).strip()).found == Events(rendered(source).strip()).found
