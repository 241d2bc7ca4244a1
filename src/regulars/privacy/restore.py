"""Finish the restore of a backup: end sessions, revoke API keys, hold texts, pause campaigns, and erase again the
people that the backup brought back.

`regulars restore` writes a marker in the same transaction as the backup, with the erasures that the backup may lack.
No process serves requests or sends texts before this work is finished, even if a process is killed in between.
"""

from collections.abc import Collection
from uuid import UUID

import msgspec

from regulars.accounts.links import end_all_links
from regulars.accounts.sessions import end_all_sessions
from regulars.campaigns.manage import pause_restored
from regulars.kit.db import Database, Tx
from regulars.organizations.manage import (
    find_organization_name,
    find_secret_and_country,
    list_organizations,
    revoke_restored_keys,
)
from regulars.privacy import queries
from regulars.privacy.erase import replay_erasure
from regulars.privacy.erasure_log import Erasure
from regulars.texts.stops import hold_all_organizations

HOLD_REASON = "A backup was restored."
# Erasures that are read at a time.
REPLAY_BATCH = 500


class ReplayReport(msgspec.Struct):
    """What happened with the erasures that the backup may have lacked."""

    replayed: int = 0
    # The erasure is in the backup already, or its organization is not in the backup.
    skipped: int = 0
    # Erasures that were replayed although the log does not show whether they were committed, each with the name of its
    # organization.
    uncertain: list[tuple[str, Erasure]] = []


async def end_access(tx: Tx, *, revoked_keys: Collection[UUID], revokes_all_keys: bool) -> int:
    """End all sessions and sign-in links, revoke API keys again and hold all texts; returns how many organizations are
    on hold. The backup may be of an older release with fewer tables, and that release may run on the backup."""
    if await queries.has_table(tx, "sessions"):
        await end_all_sessions(tx)
    if await queries.has_table(tx, "sign_in_links"):
        await end_all_links(tx)
    await revoke_restored_keys(tx, revoked_keys, revokes_all=revokes_all_keys)
    if not await queries.has_table(tx, "sms_settings"):
        return 0
    return await hold_all_organizations(tx, reason=HOLD_REASON)


async def finish_restore(database: Database) -> ReplayReport | None:
    """Do the work that `regulars restore` left to do, on the schema of this release; None if no restore is pending."""
    async with database.transaction() as tx:
        marker = await queries.find_marker(tx)
        if marker is None:
            return None
        await end_access(tx, revoked_keys=marker.revoked_keys, revokes_all_keys=marker.revokes_all_keys)
        organizations = await list_organizations(tx.connection)
        # Campaigns are paused, because recipients who got a text since the backup would get it again.
        for organization in organizations:
            await pause_restored(tx, organization.id)
        in_backup = [await queries.delete_erasures_in_backup(tx, organization.id) for organization in organizations]
    report = ReplayReport(skipped=sum(in_backup))
    while True:
        async with database.transaction() as tx:
            # One sort for each batch; one for each erasure would take quadratic time.
            batch = await queries.list_erasures_to_replay(tx, limit=REPLAY_BATCH)
            if not batch:
                await queries.delete_marker(tx)
                return report
        for erasure in batch:
            async with database.transaction() as tx:
                await _replay(tx, erasure, report)


async def _replay(tx: Tx, erasure: Erasure, report: ReplayReport) -> None:
    if not await queries.delete_erasure_to_replay(tx, erasure.organization_id, erasure.profile_id):
        return
    name = await find_organization_name(tx.connection, erasure.organization_id)
    if name is None:
        report.skipped += 1
        return
    secret = (await find_secret_and_country(tx.connection, erasure.organization_id)).secret
    if not await replay_erasure(tx, erasure, secret=secret):
        report.skipped += 1
        return
    report.replayed += 1
    if not erasure.is_certain:
        report.uncertain.append((name, erasure))
