import pytest

from regulars.web.access import Action, Role, may, roles_that_may

MATRIX = {
    Action.READ: "owner admin marketer analyst developer",
    Action.SEE_PERSONAL: "owner admin marketer",
    Action.ERASE_CUSTOMERS: "owner admin",
    Action.DECIDE_COLLISIONS: "owner admin marketer",
    Action.EDIT_CATALOGS: "owner admin marketer",
    Action.EDIT_JOURNEYS: "owner admin marketer",
    Action.READ_SEGMENTS: "owner admin marketer analyst",
    Action.EDIT_SEGMENTS: "owner admin marketer",
    Action.MANAGE_INGEST_KEYS: "owner admin developer",
    Action.MANAGE_FULL_KEYS: "owner admin",
    Action.READ_REQUEST_LOG: "owner admin developer",
    Action.READ_WEBHOOKS: "owner admin developer",
    Action.REPLAY_WEBHOOKS: "owner admin developer",
    Action.DRAFT_WEBHOOKS: "owner admin developer",
    Action.MANAGE_WEBHOOKS: "owner admin",
    Action.WRITE_TEXTS: "owner admin marketer",
    Action.HOLD_TEXTS: "owner admin marketer",
    Action.MANAGE_TEXTS: "owner admin",
    Action.MANAGE_ORGANIZATION: "owner admin",
    Action.MANAGE_TEAM: "owner admin",
    Action.MANAGE_OWNERS: "owner",
    Action.MANAGE_SERVER: "owner",
    Action.READ_AUDIT_LOG: "owner admin",
}


@pytest.mark.parametrize("action", Action)
def test_each_action_is_for_exactly_these_roles(action):
    assert [role.value for role in roles_that_may(action)] == MATRIX[action].split()


def test_an_owner_may_everything():
    assert all(may(Role.OWNER, action) for action in Action)
