"""The columns of the list of deliveries, on its page, in its file and in the command."""

from typing import Final

from regulars.kit.ids import WEBHOOK, WEBHOOK_DELIVERY, WEBHOOK_MESSAGE
from regulars.lists.columns import HARMLESS, Column, Columns, Place
from regulars.webhooks.model import Delivery

DELIVERY_COLUMNS: Final = Columns[Delivery](
    Column("id", lambda it: WEBHOOK_DELIVERY.encode(it.id), HARMLESS, places=Place.DATA),
    Column("webhook_id", lambda it: WEBHOOK_MESSAGE.encode(it.message_id), HARMLESS, places=Place.DATA),
    Column("endpoint", lambda it: WEBHOOK.encode(it.endpoint_id), HARMLESS),
    Column("type", lambda it: it.type, HARMLESS, json_name="event"),
    Column("state", lambda it: it.state, HARMLESS),
    Column("attempts", lambda it: it.attempts, HARMLESS),
    Column("answer", lambda it: it.answer_status, HARMLESS, json_name="answer_status"),
    Column("duration_ms", lambda it: it.duration_ms, HARMLESS, places=Place.PAGE | Place.COMMAND),
    Column("created_at", lambda it: it.created_at, HARMLESS),
    Column("attempted_at", lambda it: it.attempted_at, HARMLESS, places=Place.DATA),
    Column("is_replay", lambda it: it.is_replay, HARMLESS),
    Column("next_attempt_at", lambda it: it.due_at, HARMLESS, places=Place.PAGE | Place.COMMAND),
)
