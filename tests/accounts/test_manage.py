from datetime import timedelta

import pytest

from regulars.accounts import link_use, queries, sessions, team, users
from regulars.accounts.audit.log import Actor, list_acts
from regulars.accounts.errors import (
    AccountRefusal,
    LinkUnusable,
    NoSuchMember,
)
from regulars.accounts.links import LINK_LIFE, STALE_AFTER, Purpose, find_link, make_link, use_link
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest
from regulars.organizations.manage import create_organization, find_organization
from regulars.organizations.settings import NameTaken
from regulars.web.access import Role

pytestmark = pytest.mark.anyio
BOSS = Actor(None, "boss@shop.example", "203.0.113.9")


@pytest.fixture
async def shop(database):
    async with database.connection() as connection:
        return await create_organization(connection, "Shop")


async def hire(tx, shop, role, email=None):
    person = await users.create_account(tx, email=email or f"{role.value}@shop.example", name=role.value.title())
    await users.join(tx, shop.id, shop.name, person.id, role)
    return person


async def acts(tx, shop):
    found = await list_acts(tx, shop.id, PageRequest(100))
    return [(one.act, one.subject, one.before, one.after) for one in reversed(found)]


async def test_a_link_works_once(database):
    async with database.transaction() as tx:
        token = await make_link(tx, Purpose.PASSWORD, email="a@shop.example")
        assert (await find_link(tx, token)).email == "a@shop.example"
        assert (await use_link(tx, token)).purpose is Purpose.PASSWORD
        with pytest.raises(LinkUnusable):
            await use_link(tx, token)
        with pytest.raises(LinkUnusable):
            await find_link(tx, token)


async def test_links_past_their_time_go_when_the_next_one_is_made(database):
    async with database.transaction() as tx:
        await make_link(tx, Purpose.PASSWORD, email="old@shop.example")
        later = Tx(tx.connection, tx.now + LINK_LIFE + STALE_AFTER)
        await make_link(later, Purpose.PASSWORD, email="late@shop.example")
        assert await tx.fetch("SELECT email FROM sign_in_links ORDER BY email") == [
            ("late@shop.example",),
            ("old@shop.example",),
        ]
        latest = Tx(tx.connection, later.now + timedelta(seconds=1))
        await make_link(latest, Purpose.PASSWORD, email="new@shop.example")
        assert ("old@shop.example",) not in await tx.fetch("SELECT email FROM sign_in_links")


async def test_a_link_ends_after_48_hours_and_by_a_newer_one(database):
    async with database.transaction() as tx:
        token = await make_link(tx, Purpose.PASSWORD, email="a@shop.example")
        later = Tx(tx.connection, tx.now + LINK_LIFE)
        with pytest.raises(LinkUnusable):
            await use_link(later, token)
        await make_link(tx, Purpose.PASSWORD, email="a@shop.example")
        with pytest.raises(LinkUnusable):
            await use_link(tx, token)


async def test_only_the_hash_of_a_link_is_stored(database):
    async with database.transaction() as tx:
        token = await make_link(tx, Purpose.PASSWORD, email="a@shop.example")
        (row,) = await tx.fetch("SELECT sign_in_links::text FROM sign_in_links")
        assert token not in row[0]


async def test_a_link_of_one_purpose_does_not_serve_another(database):
    async with database.transaction() as tx:
        token = await make_link(tx, Purpose.PASSWORD, email="a@shop.example")
        with pytest.raises(LinkUnusable):
            await link_use.accept_as_new(tx, token, name="A", password_hash="x", address="")


async def test_an_invitation_makes_a_member_with_its_role(database, shop):
    async with database.transaction() as tx:
        token = await team.invite(tx, shop.id, email="new@shop.example", role=Role.ANALYST, by=BOSS, by_role=Role.ADMIN)
        person, _link = await link_use.accept_as_new(tx, token, name="New", password_hash="x", address="198.51.100.1")
        (membership,) = await users.find_memberships(tx, person.id)
        assert (membership.organization_id, membership.role) == (shop.id, Role.ANALYST)
        assert await acts(tx, shop) == [
            ("member.invite", "new@shop.example", None, {"role": "analyst"}),
            ("member.join", "new@shop.example", None, {"role": "analyst", "link_made_by": "the command line"}),
        ]


async def test_an_admin_makes_no_user_an_owner_and_changes_no_owner(database, shop):
    async with database.transaction() as tx:
        owner, analyst = await hire(tx, shop, Role.OWNER), await hire(tx, shop, Role.ANALYST)
        for act in (
            team.invite(tx, shop.id, email="x@shop.example", role=Role.OWNER, by=BOSS, by_role=Role.ADMIN),
            team.change_role(tx, shop.id, analyst.id, Role.OWNER, by=BOSS, by_role=Role.ADMIN),
            team.change_role(tx, shop.id, owner.id, Role.ANALYST, by=BOSS, by_role=Role.ADMIN),
            team.remove_member(tx, shop.id, owner.id, by=BOSS, by_role=Role.ADMIN),
            team.password_link(tx, shop.id, owner.id, by=BOSS, by_role=Role.ADMIN),
        ):
            with pytest.raises(AccountRefusal, match="Only an owner"):
                await act


async def test_the_last_owner_stays(database, shop):
    async with database.transaction() as tx:
        owner = await hire(tx, shop, Role.OWNER)
        with pytest.raises(AccountRefusal, match="needs at least one owner"):
            await team.change_role(tx, shop.id, owner.id, Role.ADMIN, by=BOSS, by_role=Role.OWNER)
        with pytest.raises(AccountRefusal, match="needs at least one owner"):
            await team.remove_member(tx, shop.id, owner.id, by=BOSS, by_role=Role.OWNER)
        with pytest.raises(AccountRefusal, match="needs at least one owner"):
            await users.set_role(tx, shop.id, owner.email, Role.ADMIN)
        other = await hire(tx, shop, Role.OWNER, "second@shop.example")
        await queries.set_disabled(tx, other.id, tx.now)
        with pytest.raises(AccountRefusal, match="needs at least one owner"):
            await team.remove_member(tx, shop.id, owner.id, by=BOSS, by_role=Role.OWNER)
        await queries.set_disabled(tx, other.id, None)
        await team.remove_member(tx, shop.id, owner.id, by=BOSS, by_role=Role.OWNER)


async def test_an_admin_cannot_reset_the_password_of_a_member_of_another_organization_too(database, shop):
    async with database.connection() as connection:
        other = await create_organization(connection, "Other")
    async with database.transaction() as tx:
        analyst = await hire(tx, shop, Role.ANALYST)
        assert await team.password_link(tx, shop.id, analyst.id, by=BOSS, by_role=Role.ADMIN)
        await users.join(tx, other.id, other.name, analyst.id, Role.ANALYST)
        with pytest.raises(AccountRefusal, match="must be created on the server: `regulars user link a"):
            await team.password_link(tx, shop.id, analyst.id, by=BOSS, by_role=Role.ADMIN)


async def test_a_member_of_another_organization_is_no_member_here(database, shop):
    async with database.connection() as connection:
        other = await create_organization(connection, "Other")
    async with database.transaction() as tx:
        stranger = await hire(tx, other, Role.OWNER)
        with pytest.raises(NoSuchMember):
            await team.change_role(tx, shop.id, stranger.id, Role.ADMIN, by=BOSS, by_role=Role.OWNER)


async def test_a_member_is_not_invited_again_and_an_old_invitation_changes_no_role(database, shop):
    async with database.transaction() as tx:
        token = await team.invite(tx, shop.id, email="a@shop.example", role=Role.ANALYST, by=BOSS, by_role=Role.OWNER)
        person = await hire(tx, shop, Role.OWNER, "a@shop.example")
        with pytest.raises(AccountRefusal, match=r"^a@shop\.example is a member already"):
            await team.invite(tx, shop.id, email="a@shop.example", role=Role.ANALYST, by=BOSS, by_role=Role.OWNER)
        with pytest.raises(LinkUnusable):
            await link_use.accept_as_existing(tx, token, person.id, password_hash="x", address="")


async def test_an_invitation_is_for_its_own_address(database, shop):
    async with database.transaction() as tx:
        token = await team.invite(tx, shop.id, email="a@shop.example", role=Role.OWNER, by=BOSS, by_role=Role.OWNER)
        other = await users.create_account(tx, email="b@shop.example", name="B", password_hash="x")
        with pytest.raises(LinkUnusable):
            await link_use.accept_as_existing(tx, token, other.id, password_hash="x", address="")


async def test_a_role_change_is_in_the_audit_log_with_before_and_after(database, shop):
    async with database.transaction() as tx:
        analyst = await hire(tx, shop, Role.ANALYST)
        await team.change_role(tx, shop.id, analyst.id, Role.ADMIN, by=BOSS, by_role=Role.OWNER)
        assert await acts(tx, shop) == [("member.role", analyst.email, {"role": "analyst"}, {"role": "admin"})]


async def test_a_reset_ends_every_session(database, shop):
    async with database.transaction() as tx:
        person = await hire(tx, shop, Role.ADMIN)
        await sessions.start_session(tx, person.id, is_remembered=True, address="", agent="")
        token = await users.password_link_by_operator(tx, person.email)
        await link_use.set_password_by_link(tx, token, password_hash="x", address="")
        assert await sessions.list_sessions(tx, person.id) == []


async def test_the_first_owner_is_offered_only_while_there_is_no_user(database):
    async with database.transaction() as tx:
        old = await link_use.make_first_owner_link(tx)
        new = await link_use.make_first_owner_link(tx)
        first = {
            "organization_name": "Shop",
            "email": "me@shop.example",
            "name": "Me",
            "password_hash": "x",
            "address": "",
        }
        with pytest.raises(LinkUnusable):
            await link_use.create_first_owner(tx, old, **first)
        person, slug = await link_use.create_first_owner(tx, new, **first)
        assert slug == "shop"
        organization = await find_organization(tx.connection, "Shop")
        assert [one.role for one in await users.find_memberships(tx, person.id)] == [Role.OWNER]
        assert await link_use.make_first_owner_link(tx) is None
        assert [one[0] for one in await acts(tx, organization)] == ["organization.create", "member.join"]


async def test_the_first_owner_joins_no_organization_by_its_name(database, shop):
    first = {"email": "me@shop.example", "name": "Me", "password_hash": "x", "address": ""}
    async with database.transaction() as tx:
        token = await link_use.make_first_owner_link(tx)
        with pytest.raises(NameTaken):
            await link_use.create_first_owner(tx, token, organization_name=shop.name, **first)
