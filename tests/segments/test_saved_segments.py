"""Saved segments: versions, cycles, uses, and what a change of type does to them."""

from uuid import UUID

import pytest
from tests.segments.desk import definition

from regulars.catalog.model import AttributeType
from regulars.conditions.documents import DefinitionRefused
from regulars.kit.etag import EtagMismatch, etag_of
from regulars.kit.ids import SEGMENT, new_uuid
from regulars.kit.refusals import NotFound, NotPossible
from regulars.segments.definition import CHAIN_MAX
from regulars.segments.saved import manage
from regulars.segments.saved.queries import find_uses
from regulars.segments.saved.uses import find_segments_by_key, register_uses

NAMED = {"type": "named"}


def asks(segment_id: UUID) -> dict[str, str]:
    return {"type": "segment", "id": SEGMENT.encode(segment_id)}


def load(desk, segment_id, **more):
    return desk.do(lambda tx: manage.load_segment(tx, desk.organization_id, segment_id, **more))


def update(desk, segment_id, *conditions, **more):
    given = definition(*conditions, name=more.pop("name", "S"))
    return desk.do(lambda tx: manage.update_segment(tx, desk.organization_id, segment_id, given, **more))


def delete(desk, segment_id):
    return desk.do(lambda tx: manage.delete_segment(tx, desk.organization_id, segment_id))


def test_every_change_is_a_version_and_a_lost_race_says_so(desk):
    segment = desk.segment(NAMED)
    saved = update(desk, segment, {"type": "named", "is": False}, name="Other", etag=etag_of(1))
    assert (saved.row.version, saved.row.name) == (2, "Other")
    assert load(desk, segment, version=1).definition.name == "S"
    with pytest.raises(EtagMismatch):
        update(desk, segment, NAMED, etag=etag_of(1))
    with pytest.raises(NotFound):
        load(desk, segment, version=3)
    with pytest.raises(NotFound):
        load(desk, new_uuid())


def test_what_is_wrong_is_not_saved(desk):
    with pytest.raises(DefinitionRefused, match="no store ROME") as refused:
        desk.segment({"type": "bought", "stores": ["ROME"]})
    assert [fault.place for fault in refused.value.faults] == ["match.of[0].stores"]


def test_a_segment_may_ask_for_another_but_not_for_itself(desk):
    first = desk.segment(NAMED)
    second = desk.segment(asks(first))
    third = desk.segment(asks(second))
    with pytest.raises(DefinitionRefused, match="would refer to itself"):
        update(desk, first, asks(third))
    with pytest.raises(DefinitionRefused, match="would refer to itself"):
        update(desk, first, asks(first))
    customer = desk.customer()
    assert desk.is_in(customer, third)


def test_two_changes_at_once_cannot_close_a_circle(desk):
    first, second = desk.segment(NAMED), desk.segment(NAMED)
    refused = []

    async def both():
        async with desk.database.transaction() as one, desk.database.transaction() as two:
            await manage.update_segment(one, desk.organization_id, first, definition(asks(second)))
            waiting = desk.runner.get_loop().create_task(
                manage.update_segment(two, desk.organization_id, second, definition(asks(first)))
            )
            await one.connection.execute("COMMIT")
            try:
                await waiting
            except DefinitionRefused as error:
                refused.append(str(error))
            await one.connection.execute("BEGIN")

    desk.runner.run(both())
    assert len(refused) == 1
    assert "would refer to itself" in refused[0]


def test_a_used_segment_is_not_deleted(desk):
    first = desk.segment(NAMED)
    second = desk.segment(asks(first))
    with pytest.raises(NotPossible, match="segment"):
        delete(desk, first)
    user = new_uuid()
    desk.do(lambda tx: register_uses(tx, desk.organization_id, [second], kind="journey", used_by_id=user))
    [use] = desk.do(lambda tx: find_uses(tx, desk.organization_id, [second]))
    assert (use.kind, use.id) == ("journey", user)
    with pytest.raises(NotPossible, match="journey"):
        delete(desk, second)
    desk.do(lambda tx: register_uses(tx, desk.organization_id, [], kind="journey", used_by_id=user))
    delete(desk, second)
    delete(desk, first)
    assert desk.sql("SELECT 1 FROM segment_versions WHERE organization_id = %s") == []
    assert desk.sql("SELECT 1 FROM segment_uses WHERE organization_id = %s") == []


def test_a_retyped_key_makes_the_segment_and_those_that_use_it_match_no_customer_with_a_fault(desk):
    customer = desk.customer("C1", points="12")
    under_none = {"type": "none", "of": [{"type": "attribute", "key": "points", "comparison": "more", "value": "50"}]}
    segment = desk.segment(under_none)
    above = desk.segment({"type": "none", "of": [asks(segment)]})
    assert desk.is_in(customer, segment)
    assert not desk.is_in(customer, above)
    desk.declare("points", AttributeType.TEXT)
    assert not desk.is_in(customer, segment)
    assert not desk.is_in(customer, above)
    assert "does not offer more" in load(desk, segment).faults[0].message
    assert "has no members" in load(desk, above).faults[0].message
    desk.declare("points", AttributeType.NUMBER)
    assert desk.is_in(customer, segment)


def test_an_unknown_key_is_a_warning_and_matches_no_customer(desk):
    customer = desk.customer("C1")
    segment = desk.segment({"type": "none", "of": [{"type": "attribute", "key": "shoe", "comparison": "is_set"}]})
    assert not desk.is_in(customer, segment)
    assert [fault.is_warning for fault in load(desk, segment).faults] == [True]
    desk.customer("C2", shoe="left")
    assert desk.is_in(customer, segment)


def test_the_catalogs_know_which_segments_read_a_key(desk):
    desk.customer("C1", points="12")
    segment = desk.segment({"type": "attribute", "key": "points", "comparison": "is_set"}, name="Points")
    readers = desk.do(lambda tx: find_segments_by_key(tx, desk.organization_id, catalog="attributes", key="points"))
    assert [reader.name for reader in readers] == ["Points"]
    update(desk, segment, NAMED)
    assert desk.do(lambda tx: find_segments_by_key(tx, desk.organization_id, catalog="attributes", key="points")) == []
    assert desk.do(lambda tx: find_segments_by_key(tx, desk.organization_id, catalog="attributes", key="a\0")) == []


def test_names_and_keys_that_no_table_can_hold_do_no_harm(desk):
    given = {"type": "bought", "property": {"key": "é" * 2000, "comparison": "is_set"}}
    segment = desk.segment(given, {"type": "attribute", "key": "a\0b", "comparison": "is_set"})
    assert [fault.is_warning for fault in load(desk, segment).faults] == [True, True]


def test_a_chain_of_segments_has_an_end_whichever_of_them_would_make_it_longer(desk):
    chain = [desk.segment(NAMED)]
    while len(chain) < CHAIN_MAX:
        chain.append(desk.segment(asks(chain[-1])))
    with pytest.raises(DefinitionRefused, match="At most 10 segments may refer"):
        desk.segment(asks(chain[-1]))
    with pytest.raises(DefinitionRefused, match="At most 10 segments may refer"):
        update(desk, chain[0], asks(desk.segment(NAMED)))
    beside = desk.segment(asks(desk.segment(NAMED)))
    with pytest.raises(DefinitionRefused, match="At most 10 segments may refer"):
        update(desk, chain[1], asks(chain[0]), asks(beside))
    assert desk.is_in(desk.customer(), chain[-1])


def test_a_longer_chain_from_before_the_limit_can_be_changed_and_made_shorter(desk, monkeypatch):
    monkeypatch.setattr(manage, "CHAIN_MAX", 20)
    chain = [desk.segment(NAMED)]
    for _ in range(12):
        chain.append(desk.segment(asks(chain[-1])))
    monkeypatch.undo()
    update(desk, chain[6], asks(chain[5]), {"type": "named", "is": False})
    assert not desk.is_in(desk.customer(), chain[-1])
    update(desk, chain[6], NAMED)
    assert desk.is_in(desk.customer(), chain[-1])
