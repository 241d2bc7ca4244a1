"""Lay out the templates: two spaces a level, a line as long as fits, and nothing that changes what is rendered.

`python tests/architecture/format_templates.py [--check] [FILE…]` writes the templates, or names those that it would
change. It breaks lines only where `regulars.web.line_breaks` renders the same without the break. An element whose
content begins on a line of its own keeps that.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "regulars"
WIDTH = 120
INDENT = 2
CONTINUED = 4
VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr", "!doctype"}
)
BLOCKS = frozenset({"if", "for", "macro", "call", "block", "filter", "with"})
BRANCHES = frozenset({"elif", "else"})

_STRING = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_JINJA = rf"""\{{#.*?\#\}}|\{{%(?:{_STRING}|.)*?%\}}|\{{\{{(?:{_STRING}|.)*?\}}\}}"""
_TAG = rf"""</?[a-zA-Z!](?:{_JINJA}|"(?:{_JINJA}|[^"])*"|[^>"])*>"""
_TOKEN = re.compile(rf"(?P<jinja>{_JINJA})|(?P<tag>{_TAG})|(?P<space>[ \t\r\n]+)|(?P<text>.)", re.DOTALL)
_WORD = re.compile(rf"(?:(?!{_JINJA}|{_TAG})[^ \t\r\n])+", re.DOTALL)
_ATTRIBUTE = re.compile(rf"""(?P<jinja>{_JINJA})|(?P<space>[ \t\r\n]+)|(?P<text>"(?:{_JINJA}|[^"])*"|.)""", re.DOTALL)
_EXPRESSION = re.compile(rf"(?P<string>{_STRING})|(?P<space>[ \t\r\n]+)|(?P<text>[^ \t\r\n\"']+)", re.DOTALL)
_OPERATORS = frozenset({"if", "else", "or", "and", "~", "+", "|", "import", "in"})


@dataclass(frozen=True)
class Line:
    """A place where the line may end: `flat` stands there when it does not."""

    flat: str = ""
    is_filled: bool = False  # it ends only when what follows does not fit
    is_blank: bool = False  # an empty line follows


@dataclass(frozen=True)
class Group:
    """Its lines end all, or none of them."""

    docs: Sequence["Doc"]
    is_broken: bool = False


@dataclass(frozen=True)
class Indent:
    docs: Sequence["Doc"]
    by: int = INDENT


Doc = str | Line | Group | Indent


@dataclass
class Node:
    """A token of the template, or an element or block with what stands inside."""

    text: str
    is_text: bool = False
    newlines: int = 0  # before it; -1: it follows without a space
    bodies: list[list["Node"]] = field(default_factory=list)
    heads: list["Node"] = field(default_factory=list)  # of the second body and on, and the end


def tokens(source: str) -> Iterator[Node]:
    newlines, place = -1, 0
    while place < len(source):
        match = _TOKEN.match(source, place)
        assert match
        if match["text"]:
            match = _WORD.match(source, place)
            if match is None:
                raise ValueError(f"cannot read {source[place : place + 40]!r}")
            yield Node(match[0], is_text=True, newlines=newlines)
            newlines = -1
        elif match["space"]:
            newlines = match[0].count("\n")
        else:
            yield Node(match[0], newlines=newlines)
            newlines = -1
        place = match.end()


def name_of(node: Node) -> tuple[str, str]:
    """What a node opens, closes or divides, and its name."""
    if node.text.startswith("{%"):
        found = re.match(r"\{%[-+]?\s*(\w+)", node.text)
        word = found[1] if found else ""
        if word == "set" and "=" not in node.text:
            return "open", "set"
        if word in BRANCHES:
            return "divide", word
        if word.startswith("end"):
            return "close", word.removeprefix("end")
        return ("open", word) if word in BLOCKS else ("", word)
    if node.is_text or not node.text.startswith("<"):
        return "", ""
    found = re.match(r"</?([\w!-]+)", node.text)
    word = "<" + (found[1].lower() if found else "")
    if node.text.startswith("</"):
        return "close", word
    return ("", word) if word[1:] in VOID or node.text.endswith("/>") else ("open", word)


def tree(source: str) -> list[Node]:
    """Elements and blocks with their content. What closes in another branch than it opened stays a token."""
    root = Node("", bodies=[[]])
    stack: list[tuple[str, Node]] = [("", root)]
    for node in tokens(source):
        act, name = name_of(node)
        if act in {"close", "divide"}:
            wanted = name if act == "close" else None
            at = _find_open(stack, wanted)
            if at is not None:
                while len(stack) > at + 1:
                    _flatten(stack)
                owner = stack[-1][1]
                owner.heads.append(node)
                if act == "divide":
                    owner.bodies.append([])
                else:
                    stack.pop()
                continue
        stack[-1][1].bodies[-1].append(node)
        if act == "open":
            node.bodies.append([])
            stack.append((name, node))
    while len(stack) > 1:
        _flatten(stack)
    return root.bodies[0]


def _find_open(stack: list[tuple[str, Node]], wanted: str | None) -> int | None:
    """The place of what a token closes; an element never closes over the edge of a block."""
    for at in range(len(stack) - 1, 0, -1):
        name = stack[at][0]
        if name == wanted or (wanted is None and name in {"if", "for"}):
            return at
        if not name.startswith("<") and wanted is not None and wanted.startswith("<"):
            return None
    return None


def _flatten(stack: list[tuple[str, Node]]) -> None:
    """An element that is not closed here becomes a token among its content."""
    _, node = stack.pop()
    inner = [
        one
        for pair in zip(node.bodies, [[head] for head in node.heads] + [[]], strict=True)
        for one in pair[0] + pair[1]
    ]
    node.bodies, node.heads = [], []
    stack[-1][1].bodies[-1].extend(inner)


def gap(before: Node, after: Node) -> Doc:
    """What stands between two nodes."""
    is_beside_text = before.is_text or after.is_text
    if after.newlines == -1 or (after.newlines > 0 and not is_beside_text):
        return "" if is_beside_text else Line(is_blank=after.newlines > 1)
    return Line(" ", is_filled=True) if is_beside_text else " "


def layout(nodes: list[Node]) -> list[Doc]:
    docs: list[Doc] = []
    for before, node in zip([None, *nodes], nodes, strict=False):
        if before is not None:
            docs.append(gap(before, node))
        docs.append(layout_node(node))
    return docs


def layout_node(node: Node) -> Doc:
    if not node.bodies:
        return layout_token(node)
    docs = [layout_token(node)]
    is_broken = False
    for before, body, head in zip([node, *node.heads], node.bodies, node.heads, strict=False):
        if body:
            inner = layout(body)
            is_broken |= (not body[0].is_text and body[0].newlines > 0) or any(has_break(doc) for doc in inner)
            docs += [Indent([_edge(before, body[0]), *inner]), _edge(body[-1], head)]
        docs.append(layout_token(head))
    return Group(docs, is_broken=is_broken)


def has_break(doc: Doc) -> bool:
    return isinstance(doc, Group) and doc.is_broken


def _edge(before: Node, after: Node) -> Doc:
    """No empty line at the edges of a block."""
    doc = gap(before, after)
    return Line(doc.flat, is_filled=doc.is_filled) if isinstance(doc, Line) else doc


def layout_token(node: Node) -> Doc:
    if node.is_text:
        return node.text
    if node.text.startswith("{#"):
        words = node.text.split()
        return Group([Indent([part for word in words for part in (Line(" ", is_filled=True), word)][1:], INDENT + 1)])
    return layout_expression(node.text) if node.text.startswith("{") else layout_tag(node.text)


def layout_expression(text: str) -> Doc:
    docs: list[Doc] = []
    word = ""
    for match in _EXPRESSION.finditer(text):
        if not match["space"]:
            word += match[0]
            continue
        following = re.match(r"[^ \t\r\n]+", text[match.end() :])
        if word.endswith(("(", "[")) or (following and following[0][0] in ")]"):
            continue
        is_between_strings = word.endswith(('"', "'")) and following is not None and following[0][0] in "\"'"
        is_at_operator = following is not None and following[0] in _OPERATORS and not word.startswith("{")
        may_break = word.endswith(",") or is_between_strings or is_at_operator
        docs += [word, Line(" ", is_filled=True) if may_break else " "]
        word = ""
    return Group([Indent([*docs, word], CONTINUED)])


def layout_tag(text: str) -> Doc:
    head = re.match(r"</?[\w!-]+", text)
    assert head
    end = "/>" if text.endswith("/>") else ">"
    docs: list[Doc] = [head[0]]
    blocks = [docs]  # `{% if %} checked{% endif %}` stays together where it fits
    is_between, has_space = True, False
    for match in _ATTRIBUTE.finditer(text[head.end() : -len(end)].rstrip(" \t\r\n")):
        piece = match[0]
        if match["space"]:
            has_space = True
            continue
        act = name_of(Node(piece))[0] if match["jinja"] else ""
        if has_space or (len(blocks) == 1 and is_between and match["jinja"]):
            blocks[-1].append(Line(" " if has_space else "", is_filled=True))
        has_space = False
        if act == "open":
            inner: list[Doc] = []
            blocks[-1].append(Group(inner))
            blocks.append(inner)
        blocks[-1].append(_layout_value(piece))
        if act == "close":
            blocks.pop()
        is_between = is_between if match["jinja"] else piece.endswith('"')
    return Group([Indent([*docs, end], CONTINUED)])


def _layout_value(piece: str) -> Doc:
    if piece.startswith("{"):
        return layout_expression(piece)
    docs: list[Doc] = []
    for part in re.split(rf"({_JINJA}|[ \t\r\n]+)", piece, flags=re.DOTALL):
        if part.startswith("{"):
            docs.append(layout_expression(part))
        else:
            docs.append(part if part.strip(" \t\r\n") or not part else Line(" ", is_filled=True))
    return Group(docs)


# ---- the printer, after Wadler: a group is one line when it fits ----


def fits(room: int, first: Doc, rest: list[tuple[int, bool, Doc]]) -> bool:
    """Whether there is room for `first` on one line and for what follows up to the next possible break."""
    # What follows is taken one by one, as the rest of a long template is far more than a line has room for.
    waiting, following = [(True, first)], reversed(rest)
    while room >= 0:
        if not waiting:
            _, is_flat, doc = next(following, (0, False, Line()))
        else:
            is_flat, doc = waiting.pop()
        if isinstance(doc, str):
            room -= len(doc)
        elif isinstance(doc, Line):
            if not is_flat:
                return True
            room -= len(doc.flat)
        else:
            waiting += [(is_flat or isinstance(doc, Group), one) for one in reversed(doc.docs)]
    return room >= 0


def write(doc: Doc) -> str:
    lines = [""]
    stack: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while stack:
        indent, is_flat, one = stack.pop()
        room = WIDTH - len(lines[-1])
        if isinstance(one, str):
            lines[-1] += one
        elif isinstance(one, Indent):
            stack += [(indent + one.by, is_flat, part) for part in reversed(one.docs)]
        elif isinstance(one, Group):
            is_flat = is_flat or (not one.is_broken and fits(room, Group(one.docs), stack))
            stack += [(indent, is_flat, part) for part in reversed(one.docs)]
        elif is_flat or (one.is_filled and fits(room, one.flat, stack)):
            lines[-1] += one.flat
        else:
            lines += [""] * one.is_blank + [" " * indent]
    return "\n".join(line.rstrip(" ") for line in lines).strip("\n") + "\n"


def format_template(source: str) -> str:
    return write(Group(layout(tree(source)), is_broken=True))


def main(arguments: list[str]) -> int:
    named = [Path(one) for one in arguments if one != "--check"]
    changed = []
    for path in named or sorted(SOURCE.glob("*/templates/*.html")):
        source = path.read_text(encoding="utf-8")
        formatted = format_template(source)
        if formatted != source:
            changed.append(path)
            if "--check" not in arguments:
                path.write_text(formatted, encoding="utf-8")
    for path in changed:
        sys.stdout.write(f"{path}\n")
    return 1 if changed and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
