"""Who may do what: the roles, the acts, and the one function that decides."""

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """In the order of what they may do for others: an owner can be made and unmade only by an owner."""

    OWNER = "owner"
    ADMIN = "admin"
    MARKETER = "marketer"
    ANALYST = "analyst"
    DEVELOPER = "developer"


class Action(StrEnum):
    """What a page or a form may ask for. Each route names one; a page may ask for more to show or hide a part."""

    # Every member: figures, tickets, stores, consents, customers; personal data is masked without the next one.
    READ = "read"
    SEE_PERSONAL = "see personal data"
    ERASE_CUSTOMERS = "erase customers"
    DECIDE_COLLISIONS = "decide about collisions"
    EDIT_CATALOGS = "change catalogs"
    EDIT_JOURNEYS = "write, start and stop journeys"
    READ_SEGMENTS = "see segments and their counts"
    EDIT_SEGMENTS = "build and export segments"
    MANAGE_INGEST_KEYS = "create and revoke ingest keys"
    MANAGE_FULL_KEYS = "create and revoke keys of full permission"
    READ_REQUEST_LOG = "read the request log"
    READ_WEBHOOKS = "see webhook endpoints and deliveries"
    REPLAY_WEBHOOKS = "ping endpoints and replay deliveries"
    DRAFT_WEBHOOKS = "draft webhook endpoints, which an admin approves"
    MANAGE_WEBHOOKS = "create and change webhook endpoints"
    WRITE_TEXTS = "send texts, and answer and decide about replies"
    HOLD_TEXTS = "hold all texts"
    MANAGE_TEXTS = "release texts, choose their provider and change their rules"
    MANAGE_ORGANIZATION = "change the organization"
    MANAGE_TEAM = "invite people and change their roles"
    MANAGE_OWNERS = "make and unmake owners"
    READ_AUDIT_LOG = "read the audit log"


_EVERYBODY: Final = frozenset({Action.READ})
_ANALYST: Final = _EVERYBODY | {Action.READ_SEGMENTS}
_MARKETER: Final = _EVERYBODY | {
    Action.SEE_PERSONAL,
    Action.DECIDE_COLLISIONS,
    Action.EDIT_CATALOGS,
    Action.EDIT_JOURNEYS,
    Action.WRITE_TEXTS,
    Action.HOLD_TEXTS,
    Action.READ_SEGMENTS,
    Action.EDIT_SEGMENTS,
}
_DEVELOPER: Final = _EVERYBODY | {
    Action.MANAGE_INGEST_KEYS,
    Action.READ_REQUEST_LOG,
    Action.READ_WEBHOOKS,
    Action.REPLAY_WEBHOOKS,
    Action.DRAFT_WEBHOOKS,
}
_OWNER: Final = frozenset(Action)

ALLOWED: Final = {
    Role.OWNER: _OWNER,
    Role.ADMIN: _OWNER - {Action.MANAGE_OWNERS},
    Role.MARKETER: _MARKETER,
    Role.ANALYST: _ANALYST,
    Role.DEVELOPER: _DEVELOPER,
}


def may(role: Role, action: Action) -> bool:
    """The one decision: whether this role may do this."""
    return action in ALLOWED[role]


def roles_that_may(action: Action) -> list[Role]:
    return [role for role in Role if may(role, action)]
