"""Permissions: the roles of members, the actions, and which role may do which action."""

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """The role of a member of an organization. Only an owner can grant or revoke the role `owner`."""

    OWNER = "owner"
    ADMIN = "admin"
    MARKETER = "marketer"
    ANALYST = "analyst"
    DEVELOPER = "developer"


class Action(StrEnum):
    """A permission. Each page requires one, and may check others to show or hide a part. Error pages show the value."""

    # All members have this permission. Without `SEE_PERSONAL`, personal data is masked.
    READ = "read"
    SEE_PERSONAL = "see personal data"
    ERASE_CUSTOMERS = "erase customers"
    DECIDE_COLLISIONS = "review conflicting tickets"
    EDIT_CATALOGS = "change types of attributes and properties"
    EDIT_JOURNEYS = "write, start and stop journeys and campaigns"
    READ_SEGMENTS = "see segments and their counts"
    EDIT_SEGMENTS = "build and export segments"
    MANAGE_INGEST_KEYS = "create and revoke send-only API keys"
    MANAGE_FULL_KEYS = "create and revoke API keys with full access"
    READ_REQUEST_LOG = "read the request log"
    READ_WEBHOOKS = "see webhook endpoints and deliveries"
    REPLAY_WEBHOOKS = "send test events and replay deliveries"
    DRAFT_WEBHOOKS = "draft webhook endpoints, which an admin approves"
    MANAGE_WEBHOOKS = "create and change webhook endpoints"
    WRITE_TEXTS = "send texts, and answer replies"
    HOLD_TEXTS = "pause all texts"
    MANAGE_TEXTS = "resume texts, choose their provider and change their rules"
    MANAGE_ORGANIZATION = "change the organization"
    MANAGE_TEAM = "invite people and change their roles"
    MANAGE_OWNERS = "add and remove owners"
    MANAGE_SERVER = "set the public address of the server"
    READ_AUDIT_LOG = "read the audit log"


_ALL_ROLES: Final = frozenset({Action.READ})
_ANALYST: Final = _ALL_ROLES | {Action.READ_SEGMENTS}
_MARKETER: Final = _ALL_ROLES | {
    Action.SEE_PERSONAL,
    Action.DECIDE_COLLISIONS,
    Action.EDIT_CATALOGS,
    Action.EDIT_JOURNEYS,
    Action.WRITE_TEXTS,
    Action.HOLD_TEXTS,
    Action.READ_SEGMENTS,
    Action.EDIT_SEGMENTS,
}
_DEVELOPER: Final = _ALL_ROLES | {
    Action.MANAGE_INGEST_KEYS,
    Action.READ_REQUEST_LOG,
    Action.READ_WEBHOOKS,
    Action.REPLAY_WEBHOOKS,
    Action.DRAFT_WEBHOOKS,
}
_OWNER: Final = frozenset(Action)

ALLOWED: Final = {
    Role.OWNER: _OWNER,
    Role.ADMIN: _OWNER - {Action.MANAGE_OWNERS, Action.MANAGE_SERVER},
    Role.MARKETER: _MARKETER,
    Role.ANALYST: _ANALYST,
    Role.DEVELOPER: _DEVELOPER,
}


def may(role: Role, action: Action) -> bool:
    """Whether the role has the permission."""
    return action in ALLOWED[role]


def roles_that_may(action: Action) -> list[Role]:
    return [role for role in Role if may(role, action)]
