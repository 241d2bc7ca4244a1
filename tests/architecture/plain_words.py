"""Names, comments, templates, scripts and styles use words of the trade; STYLE.md says which and why.

Run it to see what is left: `python tests/architecture/plain_words.py [FOLDER ...]`.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
# Each word with what to write instead.
EVERYWHERE: Final = {
    "whoever": "the caller, the user, the transaction",
    "whomever": "the caller, the user, the transaction",
    "somebody": "a user, a customer, another transaction",
    "nobody": "no customer, no user, no process",
    "everybody": "all customers, all callers",
    "anybody": "any user, any customer",
    "bite": "batch",
    "bites": "batches",
    "sight": "context, snapshot",
    "overheard": "received",
    "littered": "needs compaction",
    "tidy": "compact",
    "tidied": "compacted",
    "halves": "bisect, parts",
}
IN_NAMES: Final = {
    "tell": "publish, notify",
    "tells": "publishes, notifies",
    "told": "published, notified",
    "hear": "handle, on_…",
    "hears": "handles",
    "heard": "received",
    "kept": "stored, retained",
}
# Code of others.
LEFT_OUT: Final = ("src/regulars/vendor", "tests/vendor")

JINJA: Final = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", re.DOTALL)
# Strings come first, so that a URL in one is not taken for a comment.
SCRIPT_PROSE: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|(?P<comment>/\*.*?\*/|(?<!\S)//[^\n]*)', re.DOTALL)
# Variables and classes, functions and methods with their parameters, parameters of arrow functions.
SCRIPT_NAMES: Final = re.compile(
    r"\b(?:const|let|class)\s+(?:\w+|[\[{][^=]*)|\w+\([^()]*\)\s*\{|(?:\([^()]*\)|\w+)\s*=>"
)


def words_of(name: str) -> list[str]:
    """The words of an identifier: `find_StoredRow` has find, stored and row."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """Names that this file gives: not those that it uses."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def prose_in(source: str) -> Iterator[tuple[int, str]]:
    """Comments and docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                yield node.body[0].lineno, text


def found_in_python(source: str) -> Iterator[tuple[int, str]]:
    # Most files have none of the words, and a search costs far less than a parse.
    text = source.lower()
    if not any(word in text for word in (*EVERYWHERE, *IN_NAMES)):
        return
    for line, name in names_in(source):
        for word in words_of(name):
            if word in EVERYWHERE or word in IN_NAMES:
                yield line, word
    if not any(word in text for word in EVERYWHERE):
        return
    for line, prose in prose_in(source):
        for word in re.findall(r"[a-z]+", prose.lower()):
            if word in EVERYWHERE:
                yield line, word


def found_in_template(source: str) -> Iterator[tuple[int, str]]:
    """Texts that a visitor reads, and comments."""
    for number, line in enumerate(source.splitlines(), 1):
        for word in re.findall(r"[a-z]+", JINJA.sub(" ", line).lower()):
            if word in EVERYWHERE:
                yield number, word


def found_in_style(source: str) -> Iterator[tuple[int, str]]:
    for comment in SCRIPT_PROSE.finditer(source):
        for word in re.findall(r"[a-z]+", (comment["comment"] or "").lower()):
            if word in EVERYWHERE:
                yield source.count("\n", 0, comment.start()) + 1, word


def found_in_script(source: str) -> Iterator[tuple[int, str]]:
    yield from found_in_style(source)
    code = SCRIPT_PROSE.sub(lambda prose: re.sub(r"[^\n]", " ", prose[0]), source)
    for name in SCRIPT_NAMES.finditer(code):
        for word in words_of(name[0]):
            if word in EVERYWHERE or word in IN_NAMES:
                yield code.count("\n", 0, name.start()) + 1, word


def findings(folders: list[str]) -> Iterator[tuple[str, int, str]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if name.startswith(LEFT_OUT) or path == Path(__file__):
                continue
            if path.suffix == ".py":
                found = found_in_python(path.read_text(encoding="utf-8"))
                yield from ((name, 1, word) for word in words_of(path.stem) if word in EVERYWHERE or word in IN_NAMES)
            elif path.suffix == ".html":
                found = found_in_template(path.read_text(encoding="utf-8"))
            elif path.suffix == ".js":
                found = found_in_script(path.read_text(encoding="utf-8"))
            elif path.suffix == ".css":
                found = found_in_style(path.read_text(encoding="utf-8"))
            else:
                continue
            yield from ((name, line, word) for line, word in found)


if __name__ == "__main__":
    for path, line, word in findings(sys.argv[1:] or ["src", "tests", "bench"]):
        sys.stdout.write(f"{path}:{line}: {word}: write {EVERYWHERE.get(word) or IN_NAMES[word]}\n")
