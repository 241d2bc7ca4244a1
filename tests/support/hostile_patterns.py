"""Finds every regular expression of the package, and generates inputs that cause catastrophic backtracking."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from re import _constants as parsed  # type: ignore[attr-defined]  # the parser has no public name
from re import _parser as parser  # type: ignore[attr-defined]  # the parser has no public name
from types import ModuleType
from typing import Any

import regulars

FUNCTIONS = frozenset({"compile", "match", "fullmatch", "search", "sub", "split", "findall", "finditer"})
# Last characters that no pattern expects, so that the match fails there.
ENDS = ("", "\x01")
SAMPLES_PER_PART = 3
REPEATS = frozenset({parsed.MAX_REPEAT, parsed.MIN_REPEAT, parsed.POSSESSIVE_REPEAT})


@dataclass
class Expression:
    """A pattern in the source, and the methods called on it."""

    place: str
    pattern: re.Pattern[Any]
    methods: set[str] = field(default_factory=set)


def expressions() -> list[Expression]:
    """Compiled patterns, arguments of functions of `re`, and patterns of `msgspec.Meta`."""
    found: list[Expression] = []
    named: dict[str, list[Expression]] = {}
    calls: dict[str, set[str]] = {}
    for module in _modules():
        source = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for node in ast.walk(source):
            if isinstance(node, ast.Call):
                found += _from_call(module, node)
                if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                    calls.setdefault(node.func.value.id, set()).add(node.func.attr)
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                named.setdefault(name, []).extend(one for one in found if one.pattern == value)
    for name, ones in named.items():
        for one in ones:
            one.methods |= calls.get(name, set()) & FUNCTIONS
    for one in found:
        # Used through a collection, so the method is unknown and all are tried.
        one.methods = one.methods - {"compile"} or {"search", "fullmatch"}
    return found


def _modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(regulars.__path__, "regulars."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def _from_call(module: ModuleType, node: ast.Call) -> Iterator[Expression]:
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        if function.attr in FUNCTIONS:
            arguments = [node.args[0], *(one for one in node.args[1:] if "re." in ast.unparse(one))]
            yield from _evaluate(module, arguments, {function.attr}, node.lineno)
    else:
        for keyword in node.keywords:
            if keyword.arg == "pattern":
                yield from _evaluate(module, [keyword.value], {"search"}, node.lineno)


def _evaluate(module: ModuleType, arguments: list[ast.expr], methods: set[str], line: int) -> Iterator[Expression]:
    try:
        values = [eval(ast.unparse(one), vars(module)) for one in arguments]  # noqa: S307  # our own source
    except NameError:
        # Built from a local value: escaped text without repetitions.
        return
    if isinstance(values[0], str | bytes):
        yield Expression(f"{module.__name__}:{line}", re.compile(*values), set(methods))


def hostile(pattern: re.Pattern[Any], *, characters: int) -> Iterator[Any]:
    """Per repetition of the pattern: a prefix that reaches it, a long repetition, and an end that does not match."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    for before, repeated in dict.fromkeys(_repetitions(list(tree), ("",))):
        for end in ENDS:
            text = before + repeated * (characters // len(repeated)) + end
            yield text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def _repetitions(tree: list[Any], befores: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for number, (kind, argument) in enumerate(tree):
        here = _join(befores, _samples(tree[:number]))
        if kind in REPEATS and argument[1] > SAMPLES_PER_PART:
            inside = _samples(list(argument[2]))
            # Adjacent repetitions of the same characters cause the backtracking.
            beside = _samples(tree[number + 1 : number + 3])
            for before in here:
                yield from ((before, sample) for sample in (*inside, *beside) if sample)
        for inner in _inside(kind, argument):
            yield from _repetitions(inner, here)


def _inside(kind: Any, argument: Any) -> list[list[Any]]:
    if kind in REPEATS:
        return [list(argument[2])]
    if kind is parsed.SUBPATTERN:
        return [list(argument[3])]
    if kind is parsed.BRANCH:
        return [list(one) for one in argument[1]]
    return [list(argument[1])] if kind in {parsed.ASSERT, parsed.ASSERT_NOT} else []


def _samples(tree: list[Any]) -> tuple[str, ...]:
    """A few texts that these elements match."""
    texts: tuple[str, ...] = ("",)
    for kind, argument in tree:
        texts = _join(texts, tuple(dict.fromkeys(_of_part(kind, argument))))
    return texts


def _of_part(kind: Any, argument: Any) -> Iterator[str]:
    if kind is parsed.LITERAL:
        yield chr(argument)
    elif kind is parsed.NOT_LITERAL:
        yield from (one for one in (" ", "a") if ord(one) != argument)
    elif kind is parsed.ANY:
        yield from (" ", "a")
    elif kind is parsed.IN:
        yield from _of_class(argument)
    elif kind in REPEATS:
        least, _, inner = argument
        yield from (one * least for one in _samples(list(inner)))
    elif kind is parsed.SUBPATTERN:
        yield from _samples(list(argument[3]))
    elif kind is parsed.BRANCH:
        for one in argument[1]:
            yield from _samples(list(one))
    else:
        # Anchors, lookarounds and group references match the empty text here.
        yield ""


def _of_class(members: list[Any]) -> Iterator[str]:
    if members and members[0][0] is parsed.NEGATE:
        source = f"[^{''.join(re.escape(one) for one in _of_class(members[1:]))}]"
        yield from [one for one in " aA0.=-'" if re.fullmatch(source, one)][:SAMPLES_PER_PART]
        return
    for kind, argument in members:
        if kind is parsed.LITERAL:
            yield chr(argument)
        elif kind is parsed.RANGE:
            yield chr(argument[0])
        elif kind is parsed.CATEGORY:
            name = str(argument)
            yield " " if name in {"CATEGORY_SPACE", "CATEGORY_NOT_WORD", "CATEGORY_NOT_DIGIT"} else "0"


def _join(befores: tuple[str, ...], afters: tuple[str, ...]) -> tuple[str, ...]:
    joined = dict.fromkeys(before + after for before in befores for after in afters)
    return tuple(joined)[: SAMPLES_PER_PART**2]
