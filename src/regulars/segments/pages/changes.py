"""How a draft differs from what is saved, line by line."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from regulars.conditions.labels import Labels
from regulars.conditions.tree import Condition, Group


class Change(NamedTuple):
    """A line that came or went, with the group it stands in."""

    is_added: bool
    words: str


def changes(saved: Group, draft: Group, words: Labels) -> list[Change]:
    before, after = list(_lines(saved, words)), list(_lines(draft, words))
    found: list[Change] = []
    for verb, from_, to, since, until in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if verb in {"delete", "replace"}:
            found += [Change(False, line) for line in before[from_:to]]
        if verb in {"insert", "replace"}:
            found += [Change(True, line) for line in after[since:until]]
    return found


def _lines(condition: Condition, words: Labels, inside: str = "") -> Iterator[str]:
    if isinstance(condition, Group):
        here = words.sentence(condition)
        yield f"{inside}{here}"
        for inner in condition.of:
            yield from _lines(inner, words, f"{inside}{here}: ")
    else:
        yield f"{inside}{words.sentence(condition)}"
