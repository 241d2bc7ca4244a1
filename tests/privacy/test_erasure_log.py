"""The log of erasures outside the database: before the commit, with its outcome, and readable after any crash."""

import errno
import json
import os
import stat
from datetime import UTC, datetime
from uuid import uuid4

import msgspec
import pytest
from tests.privacy.people import PERSON, plant
from tests.support.database_fixtures import SECRET, database

from regulars.consent.chain import hash_number
from regulars.kit import failpoint
from regulars.kit.errors import Unavailable
from regulars.kit.ids import ById
from regulars.organizations.manage import create_organization
from regulars.privacy import restore
from regulars.privacy.erase import ErasedProfile, erase_profiles, replay_erasure
from regulars.privacy.erasure_log import Erasure, ErasureLog, _Entry, merge_erasures, read_log
from regulars.profiles.find import find_profile

# A restore is of the whole database.
__all__ = ["database"]
pytestmark = pytest.mark.anyio


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


async def erase(database, organization_id, profile_id, log, *, fails=False):
    async with database.transaction() as tx:
        outcome = await erase_profiles(tx, organization_id, [ById(profile_id)], secret=SECRET, log=log)
        # Before the commit the entry is there, and nothing is known of what becomes of it.
        assert not read_log(log.path).erasures[-1].is_certain
        if fails:
            raise RuntimeError
    return outcome, tx.now


async def test_an_erasure_is_logged_before_its_commit_and_its_outcome_after_it(database, organization_id, tmp_path):
    log = ErasureLog(tmp_path / "new" / "erasures.log")
    profile_id = await plant(database, organization_id, PERSON)
    with pytest.raises(RuntimeError):
        await erase(database, organization_id, profile_id, log, fails=True)
    assert read_log(log.path).erasures == ()
    outcome, now = await erase(database, organization_id, profile_id, log)
    assert [it.profile_id for it in outcome if isinstance(it, ErasedProfile)] == [profile_id]
    hashes = (hash_number(SECRET, PERSON["number"]),)
    assert read_log(log.path).erasures == (Erasure(organization_id, profile_id, hashes, now),)
    assert [line.get("outcome") for line in lines(log.path)] == [None, "void", None, "committed"]
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert [trace for trace in PERSON.values() if trace in log.path.read_text()] == []
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT profile_id, number_hashes, erased_at FROM erasures WHERE organization_id = %s", (organization_id,)
        )
    assert rows == [(profile_id, list(hashes), now)]


async def test_a_lost_connection_before_the_commit_voids_and_during_it_leaves_the_outcome_open(
    database, organization_id, tmp_path
):
    profile_id = await plant(database, organization_id, PERSON)
    for act, expected in (("raise", [None, "void"]), ("cut", [None])):
        log = ErasureLog(tmp_path / f"{act}.log")
        failpoint.arm("erasure.logged", act)
        try:
            with pytest.raises(Exception, match=r"failpoint|closed|lost|terminated|aborted"):
                async with database.transaction() as tx:
                    await erase_profiles(tx, organization_id, [ById(profile_id)], secret=SECRET, log=log)
        finally:
            failpoint.disarm()
        # After the cut the transaction reaches its COMMIT, and the connection is found lost there.
        assert [line.get("outcome") for line in lines(log.path)] == expected
    assert [one.is_certain for one in read_log(log.path).erasures] == [False]


async def test_no_customer_is_erased_while_the_log_cannot_be_written(database, organization_id, tmp_path):
    (tmp_path / "occupied").mkdir()
    log = ErasureLog(tmp_path / "occupied")
    profile_id = await plant(database, organization_id, PERSON)
    with pytest.raises(Unavailable, match="nothing was erased"):
        await erase(database, organization_id, profile_id, log)
    async with database.reading() as tx:
        assert await find_profile(tx, organization_id, ById(profile_id)) is not None


async def test_an_entry_that_was_written_but_not_synced_is_voided(database, organization_id, tmp_path, monkeypatch):
    log = ErasureLog(tmp_path / "erasures.log")
    profile_id = await plant(database, organization_id, PERSON)

    def is_full(_descriptor):
        raise OSError(errno.ENOSPC, "no space left on the device")

    monkeypatch.setattr(os, "fsync", is_full)
    with pytest.raises(Unavailable, match="nothing was erased"):
        await erase(database, organization_id, profile_id, log)
    assert [line.get("outcome") for line in lines(log.path)] == [None, "void"]
    assert read_log(log.path).erasures == ()


def test_an_entry_with_a_damaged_hash_or_a_time_without_a_zone_counts_as_damaged(tmp_path):
    path = tmp_path / "erasures.log"
    whole = _Entry.of(Erasure(uuid4(), uuid4(), (b"\x01",), datetime(2026, 1, 5, tzinfo=UTC)))
    fields = msgspec.to_builtins(whole)
    damaged = [{"number_hashes": ["xy"]}, {"erased_at": "2026-01-05T00:00:00"}]
    text = [json.dumps(fields | {"entry": str(uuid4())} | change) for change in ({}, *damaged)]
    path.write_text("\n".join(text))
    content = read_log(path)
    assert content.damaged_lines == (2, 3)
    assert [one.profile_id for one in merge_erasures(content.erasures)] == [whole.profile_id]


def test_a_line_that_was_cut_off_swallows_no_other(tmp_path):
    log = ErasureLog(tmp_path / "erasures.log")
    one = Erasure(uuid4(), uuid4(), (b"\x01",), datetime(2026, 1, 5, tzinfo=UTC))
    log.path.write_text('{"entry":"0198')
    log._write([_Entry.of(one)], is_synced=True)
    content = read_log(log.path)
    assert content.damaged_lines == (1,)
    assert [(it.profile_id, it.is_certain) for it in content.erasures] == [(one.profile_id, False)]


def test_of_several_entries_about_one_person_the_certain_one_counts():
    organization_id, profile_id = uuid4(), uuid4()

    def entry(day, *, is_certain):
        return Erasure(organization_id, profile_id, (), datetime(2026, 1, day, tzinfo=UTC), is_certain)

    certain, later = entry(5, is_certain=True), entry(9, is_certain=False)
    other = Erasure(uuid4(), profile_id, (), datetime(2026, 1, 7, tzinfo=UTC))
    assert merge_erasures([later, certain, other]) == [certain, other]
    assert merge_erasures([entry(3, is_certain=False), later]) == [later]


async def test_a_replay_counts_as_of_the_erasure_and_happens_once(database, organization_id, tmp_path):
    profile_id = await plant(database, organization_id, PERSON)
    other_number = hash_number(SECRET, "+33600000009")
    async with database.transaction() as tx:
        at = tx.now
    erasure = Erasure(organization_id, profile_id, (other_number, hash_number(SECRET, PERSON["number"])), at)
    async with database.transaction() as tx:
        assert await replay_erasure(tx, erasure, secret=SECRET)
    async with database.transaction() as tx:
        assert not await replay_erasure(tx, erasure, secret=SECRET)
        assert await find_profile(tx, organization_id, ById(profile_id)) is None
        rows = await tx.fetch(
            "SELECT number_hash, status, updated_at FROM subscriptions WHERE organization_id = %s", (organization_id,)
        )
    assert {number_hash for number_hash, _, _ in rows} == set(erasure.number_hashes)
    assert {(status, updated) for _, status, updated in rows} == {("UNSUBSCRIBED", at)}


async def test_a_restore_is_finished_in_batches_and_what_the_backup_knew_goes_at_once(database, monkeypatch):
    monkeypatch.setattr(restore, "REPLAY_BATCH", 2)
    async with database.connection() as connection:
        shop = await create_organization(connection, "Shop")
    loads = []
    load = restore.queries.list_erasures_to_replay

    async def counting(tx, *, limit):
        found = await load(tx, limit=limit)
        loads.append(len(found))
        return found

    monkeypatch.setattr(restore.queries, "list_erasures_to_replay", counting)
    async with database.transaction() as tx:
        await tx.execute("INSERT INTO restore_marker VALUES (true, now(), '{}', false)")
        await tx.execute(
            "INSERT INTO erasures_to_replay SELECT %s, gen_random_uuid(), '{}', now(), true FROM generate_series(1, 8)",
            (shop.id,),
        )
        await tx.execute(
            "INSERT INTO erasures SELECT organization_id, profile_id, number_hashes, erased_at FROM erasures_to_replay"
            " LIMIT 5"
        )
    report = await restore.finish_restore(database)
    assert (report.replayed, report.skipped) == (3, 5)
    assert loads == [2, 1, 0]
    assert await restore.finish_restore(database) is None
