"""A body of any shape is decoded or refused with an error of the API, never with an exception of ours."""

import itertools
import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from tests.support import samples

from regulars.consent.decode import decode_check, decode_opt_in, decode_opt_out
from regulars.consent.ledger import EventOrigin
from regulars.kit.errors import ApiError
from regulars.kit.ids import ByExternalId
from regulars.profiles.wire import decode_attributes, decode_profile
from regulars.sales.decode import decode_fully, decode_sale
from regulars.stores.decode import decode_store

ORIGIN = EventOrigin()
PRODUCT = {"external_id": "SKU-1", "name": "Scarf", "properties": {"size": 38.5, "new": True, "colour": "red"}}
SALE = samples.sale(
    "S1",
    profile_id="ada",
    total_tax_cents=817,
    payments=[{"card": 49.0}],
    metadata={"till": 1},
    line_items=[samples.line(product=PRODUCT, quantity=1.5, unit="kg", discount_cents=0)],
)
DECODERS: dict[str, tuple[Callable[[bytes], Any], Any]] = {
    "sale": (decode_sale, SALE),
    "sale, fully": (decode_fully, SALE),
    "profile": (partial(decode_profile, default_country="FR"), samples.profile()),
    "attributes": (partial(decode_attributes, reference=ByExternalId("ada")), {"attributes": {"a": "b"}}),
    "flat attributes": (partial(decode_attributes, reference=ByExternalId("ada")), {"a": "b", "c": None}),
    "store": (decode_store, samples.store()),
    "opt-in": (partial(decode_opt_in, origin=ORIGIN), samples.opt_in(profile_id="ada", store_id="S1")),
    "opt-out": (
        partial(decode_opt_out, origin=ORIGIN, default_country="FR"),
        {"phone_number": "+33612345678", "profile_id": "ada", "unsubscribed_at": samples.ago(hours=1), "reason": "x"},
    ),
    "check": (
        partial(decode_check, default_country="FR"),
        {"items": [{"phone_number": "+33612345678"}, {"profile_id": "ada"}]},
    ),
}
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 10**400, 0.5, -1e300, 5e-324, "", " ", "\x00", "x" * 1_100, "2026-02-30T00:00:00Z",
    [], [None], [0.5], [[]], {}, {"": None}, {"k": None}, {"k": [0.5]}, {"k": {"k": 1e30}}, {"k": "x" * 17_000},
)  # fmt: skip
PAIRS = 400
Path = tuple[str | int, ...]


def paths_of(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all values within a document, the document itself first."""
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        yield from paths_of(member, (*path, name))


def replaced(document: Any, path: Path, value: Any) -> Any:
    """The document with another value at the path, or as it is if an earlier replacement removed the path."""
    if not path:
        return value
    changed = deepcopy(document)
    parent = changed
    try:
        for name in path[:-1]:
            parent = parent[name]
        parent[path[-1]] = value
    except (KeyError, IndexError, TypeError):
        return document
    return changed


@pytest.mark.parametrize("name", DECODERS)
def test_any_value_at_any_place_is_decoded_or_refused(name):
    decode, valid = DECODERS[name]
    decode(json.dumps(valid).encode())
    changes = list(itertools.product(paths_of(valid), VALUES))
    chance = random.Random(name)
    refused = 0
    for pair in [*((change,) for change in changes), *(chance.sample(changes, 2) for _ in range(PAIRS))]:
        body = valid
        for path, value in pair:
            body = replaced(body, path, value)
        try:
            decode(json.dumps(body).encode())
        except ApiError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{pair}: {error!r}") from error
    assert refused > len(changes) / 2
