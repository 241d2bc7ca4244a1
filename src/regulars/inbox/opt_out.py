"""Withdraw consent when a customer presses the button of the opt-out page, to which a link in a text leads."""

from uuid import UUID

from regulars.consent.inbound import Reply, record_inbound_stop
from regulars.kit.db import Tx
from regulars.links import link_rows as queries
from regulars.texts.find import find_text
from regulars.texts.settings.store import load_texting

# Recorded in the consent ledger as the text of the withdrawal.
WITHDRAWAL_TEXT = "Opt-out by a link"


async def withdraw_by_link(tx: Tx, organization_id: UUID, code: str) -> bytes | None:
    """Withdraw the consent of the number that got the text with this link; return the number's hash, None if the text
    was deleted."""
    link = (await queries.find_links(tx, organization_id, [code])).get(code)
    text = None if link is None or link.text_id is None else await find_text(tx, organization_id, link.text_id)
    texting = await load_texting(tx, organization_id)
    if text is None or text.phone_number is None or texting is None:
        return None
    reply = Reply(phone_number=text.phone_number, text=WITHDRAWAL_TEXT, message_id=f"link:{text.id}")
    await record_inbound_stop(tx, organization_id, [reply], secret=texting.secret)
    return text.number_hash
