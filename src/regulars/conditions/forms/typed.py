"""Appends texts that a user typed into a search field to the list of that field, if each names exactly one value.

Without a script this is how a user searches: a text that several values contain stays in its field, and the page lists
what was found.
"""

from typing import Final
from uuid import UUID

from regulars.conditions.field_suggestions import Suggestions, resolve_typed
from regulars.conditions.forms.draft import TYPED, walk
from regulars.conditions.forms.node import MORE, Node
from regulars.kit.db import Tx

# A user types into one or two fields before the form is sent.
_SEARCHES_MAX: Final = 5
# The field with the key of the values in a list.
_KEYS: Final = {"values": "key", "pvalues": "pkey"}


async def append_typed(tx: Tx, organization_id: UUID, root: Node) -> None:
    searches = 0
    for _, node in walk(root):
        for name, source in TYPED.items():
            typed = node.get(f"{MORE}{name}")
            if not typed or typed in node.get_list(name):
                node.fields.pop(f"{MORE}{name}", None)
                node.searches.pop(name, None)
                continue
            if name in node.searches:
                continue
            if searches == _SEARCHES_MAX:
                node.searches[name] = Suggestions(
                    source=source, message="Search again: only five searches run at once."
                )
                continue
            searches += 1
            key = node.get(_KEYS.get(name, ""))
            resolved = await resolve_typed(tx, organization_id, source, typed, key=key)
            if isinstance(resolved, Suggestions):
                node.searches[name] = resolved
            else:
                node.append(name, resolved)
                node.fields.pop(f"{MORE}{name}", None)
