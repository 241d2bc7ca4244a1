"""Delete replies after 25 months, and texts and replies of a person when the person is erased."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from regulars.inbox.deduplication import erase_replies
from regulars.kit.db import Tx
from regulars.links.retention import erase_from_click_facts, forget_people
from regulars.texts import text_rows as texts
from regulars.texts.facts import MessagesChanged
from regulars.texts.model import TextState
from regulars.texts.settings.store import load_texting
from regulars.texts.team_numbers import delete_team_numbers
from regulars.work.outbox import rewrite_waiting_facts


async def delete_old_replies(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    return await tx.execute(
        """
        DELETE FROM replies
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM replies
            WHERE organization_id = %(organization_id)s AND received_at < %(before)s AND due_at IS NULL
            ORDER BY received_at
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ))
        """,
        {"organization_id": organization_id, "before": before, "limit": limit},
    )


async def erase_from_facts(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes] = ()
) -> None:
    """Remove erased people from recorded events (facts) that listeners have not handled yet. Call it before the
    people's texts and journey runs are changed, because listeners lock facts first and then runs."""
    text_ids = await texts.find_text_ids_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    erased = {*profile_ids, *text_ids}

    def remove_people(fact: MessagesChanged) -> MessagesChanged | None:
        return None if erased & {fact.profile_id, fact.text_id} or fact.number_hash in number_hashes else fact

    await rewrite_waiting_facts(tx, organization_id, MessagesChanged, erased, remove_people)
    await erase_from_click_facts(tx, organization_id, profile_ids)


async def erase_messages(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes] = ()
) -> None:
    """Delete the texts and replies of erased people, whose numbers the caller has locked; a person who is also a team
    member loses the number for test texts. A text that is being sent is emptied now, and deleted when its outcome is
    stored."""
    text_ids = await texts.find_text_ids_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    await forget_people(tx, organization_id, profile_ids, text_ids)
    locked = await texts.lock_texts(tx, organization_id, text_ids) if text_ids else []
    sending = [text_id for text_id, state, _ in locked if state == TextState.SENDING]
    if sending:
        # The number's hash remains, so that a withdrawal can wait until the text is sent.
        await tx.execute(
            """
            UPDATE texts SET body = '', phone_number = NULL, profile_id = NULL
            WHERE organization_id = %s AND id = ANY (%s::uuid[])
            """,
            (organization_id, sending),
        )
    deleted = [text_id for text_id, state, _ in locked if state != TextState.SENDING]
    await texts.delete_texts(tx, organization_id, deleted)
    await texts.delete_simulator_texts(tx, organization_id, [text_id for text_id, _, _ in locked])
    await delete_team_numbers(tx, organization_id, number_hashes)
    texting = await load_texting(tx, organization_id)
    if texting is not None:
        await erase_replies(
            tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes, secret=texting.secret
        )
