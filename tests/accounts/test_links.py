"""A link is valid only while its maker could still make it, and an invitation needs the account's password."""

import asyncio

import pytest
from tests.accounts.test_manage import acts, hire
from tests.support.waiting import until_locked

from regulars.accounts import link_use, queries, sessions, team, users
from regulars.accounts.audit.log import Actor, lock_chain_end
from regulars.accounts.errors import AccountRefusal, LinkUnusable
from regulars.accounts.links import end_password_links, list_links, use_link
from regulars.organizations.manage import create_organization
from regulars.web.access import Role

pytestmark = pytest.mark.anyio


@pytest.fixture
async def shop(database):
    async with database.connection() as connection:
        return await create_organization(connection, "Shop")


@pytest.fixture
async def other(database):
    async with database.connection() as connection:
        return await create_organization(connection, "Other")


async def hire_boss(tx, shop, role=Role.ADMIN, email="boss@shop.example"):
    person = await hire(tx, shop, role, email)
    return Actor(person.id, person.email, "203.0.113.9")


async def reset(tx, token):
    return await link_use.set_password_by_link(tx, token, password_hash="taken", address="")


async def joins_another(tx, shop, other, boss, person):
    token = await users.invite_user(tx, other.id, person.email, role=Role.OWNER)
    await link_use.accept_as_existing(tx, token, person.id, password_hash="old", address="")


async def joins_unseen(tx, shop, other, boss, person):
    await users.join(tx, other.id, other.name, person.id, Role.OWNER)


async def is_promoted(tx, shop, other, boss, person):
    await users.set_role(tx, shop.id, person.email, Role.OWNER)


async def is_promoted_unseen(tx, shop, other, boss, person):
    await users.join(tx, shop.id, shop.name, person.id, Role.OWNER)


async def is_removed(tx, shop, other, boss, person):
    by = Actor(None, "owner@shop.example", "")
    await team.remove_member(tx, shop.id, person.id, by=by, by_role=Role.OWNER)


async def loses_the_maker(tx, shop, other, boss, person):
    by = Actor(None, "owner@shop.example", "")
    await team.remove_member(tx, shop.id, boss.id, by=by, by_role=Role.OWNER)


async def outlives_the_rank_of_the_maker(tx, shop, other, boss, person):
    await users.join(tx, shop.id, shop.name, boss.id, Role.MARKETER)


async def sees_the_maker_disabled(tx, shop, other, boss, person):
    await users.disable_user(tx, boss.name)


async def changes_the_password(tx, shop, other, boss, person):
    me = Actor(person.id, person.email, "")
    await users.change_password(tx, me, person.id, password_hash="new", session_id=person.id)


CASES = (
    joins_another,
    joins_unseen,
    is_promoted,
    is_promoted_unseen,
    is_removed,
    loses_the_maker,
    outlives_the_rank_of_the_maker,
    sees_the_maker_disabled,
    changes_the_password,
)


async def test_a_password_link_does_not_outlive_the_right_it_was_made_under(database, shop, other):
    for case in CASES:
        name = case.__name__
        async with database.transaction() as tx:
            boss = await hire_boss(tx, shop, email=f"boss-{name}@shop.example")
            person = await hire(tx, shop, Role.ANALYST, f"{name}@shop.example")
            await queries.set_password(tx, person.id, "old")
            token = await team.password_link(tx, shop.id, person.id, by=boss, by_role=Role.ADMIN)
            assert (await link_use.inspect_link(tx, token))[0].email == person.email
            await case(tx, shop, other, boss, person)
            with pytest.raises(LinkUnusable):
                await link_use.inspect_link(tx, token)
            with pytest.raises(LinkUnusable):
                await reset(tx, token)


async def test_an_invitation_does_not_outlive_the_right_of_its_maker(database, shop):
    async with database.transaction() as tx:
        owner = await hire_boss(tx, shop, Role.OWNER)
        await hire(tx, shop, Role.OWNER, "second@shop.example")
        token = await team.invite(tx, shop.id, email="a@shop.example", role=Role.OWNER, by=owner, by_role=Role.OWNER)
        await users.join(tx, shop.id, shop.name, owner.id, Role.ADMIN)
        with pytest.raises(LinkUnusable):
            await link_use.accept_as_new(tx, token, name="A", password_hash="x", address="")
        token = await team.invite(tx, shop.id, email="b@shop.example", role=Role.ADMIN, by=owner, by_role=Role.ADMIN)
        await team.remove_member(tx, shop.id, owner.id, by=Actor(None, "x", ""), by_role=Role.OWNER)
        with pytest.raises(LinkUnusable):
            await link_use.accept_as_new(tx, token, name="B", password_hash="x", address="")


async def test_open_links_are_listed_with_their_maker_and_can_be_withdrawn(database, shop):
    async with database.transaction() as tx:
        boss = await hire_boss(tx, shop)
        person = await hire(tx, shop, Role.ANALYST)
        invitation = await team.invite(
            tx, shop.id, email="new@shop.example", role=Role.ANALYST, by=boss, by_role=Role.ADMIN
        )
        reset_link = await team.password_link(tx, shop.id, person.id, by=boss, by_role=Role.ADMIN)
        found = await list_links(tx, shop.id)
        assert {(one.purpose.value, one.email, one.maker) for one in found} == {
            ("invitation", "new@shop.example", boss.name),
            ("password", person.email, boss.name),
        }
        for one in found:
            await team.withdraw_link(tx, shop.id, one.id, by=boss)
        assert await list_links(tx, shop.id) == []
        for token in (invitation, reset_link):
            with pytest.raises(LinkUnusable):
                await link_use.inspect_link(tx, token)
        assert [one[0] for one in await acts(tx, shop)][-2:] == ["member.link_withdraw", "member.link_withdraw"]


async def test_a_transaction_that_began_before_a_link_ended_cannot_use_it(database, shop):
    async with database.transaction() as tx:
        person = await hire(tx, shop, Role.ANALYST)
        token = await users.password_link_by_operator(tx, person.email)
    async with database.transaction() as early:
        async with database.transaction() as tx:
            assert tx.now >= early.now
            await end_password_links(tx, person.email)
        with pytest.raises(LinkUnusable):
            await use_link(early, token)


async def test_joining_locks_the_audit_logs_in_the_order_in_which_a_sign_in_does(database, shop, other):
    async with database.transaction() as tx:
        person = await hire(tx, other, Role.ANALYST)
        await queries.set_password(tx, person.id, "old")
        token = await users.invite_user(tx, shop.id, person.email, role=Role.ANALYST)
        await lock_chain_end(tx, other.id)

    async def join():
        async with database.transaction() as tx:
            await link_use.accept_as_existing(tx, token, person.id, password_hash="old", address="")

    async with database.transaction() as tx:
        await lock_chain_end(tx, other.id)
        joining = asyncio.create_task(join())
        await until_locked(database)
        # "Other" comes before "Shop", whose log is still free.
        assert not joining.done()
        await tx.fetch("SELECT 1 FROM audit_heads WHERE organization_id = %s FOR UPDATE NOWAIT", (shop.id,))
    await joining


async def test_the_audit_log_names_who_made_the_link_that_was_used(database, shop):
    async with database.transaction() as tx:
        boss = await hire_boss(tx, shop)
        token = await team.invite(tx, shop.id, email="new@shop.example", role=Role.ANALYST, by=boss, by_role=Role.ADMIN)
        person, _link = await link_use.accept_as_new(tx, token, name="New", password_hash="x", address="")
        await reset(tx, await team.password_link(tx, shop.id, person.id, by=boss, by_role=Role.ADMIN))
        await reset(tx, await users.password_link_by_operator(tx, person.email))
        made = [one[3].get("link_made_by") for one in await acts(tx, shop) if one[3] and "link_made_by" in one[3]]
        assert made == [boss.name, boss.name, "the command line"]


async def test_a_known_address_gets_an_invitation_and_no_membership(database, shop, other):
    async with database.transaction() as tx:
        person = await hire(tx, shop, Role.ANALYST, "ceo@other.example")
        await queries.set_password(tx, person.id, "the thief's")
        token = await users.invite_user(tx, other.id, person.email, role=Role.OWNER)
        assert [one.organization_id for one in await users.find_memberships(tx, person.id)] == [shop.id]
        with pytest.raises(LinkUnusable):
            await link_use.accept_as_new(tx, token, name="Thief", password_hash="x", address="")
        with pytest.raises(AccountRefusal, match="is a member already"):
            await users.invite_user(tx, shop.id, person.email, role=Role.OWNER)


async def test_an_invitation_is_unusable_for_a_member_of_another_organization_without_a_password(database, shop, other):
    async with database.transaction() as tx:
        person = await hire(tx, other, Role.OWNER, "ceo@other.example")
        boss = await hire_boss(tx, shop)
        token = await team.invite(tx, shop.id, email=person.email, role=Role.ANALYST, by=boss, by_role=Role.ADMIN)
        with pytest.raises(LinkUnusable):
            await link_use.accept_as_new(tx, token, name="Thief", password_hash="x", address="")


async def test_a_password_that_changed_meanwhile_joins_nothing(database, shop, other):
    async with database.transaction() as tx:
        person = await hire(tx, shop, Role.ANALYST)
        await queries.set_password(tx, person.id, "changed")
        token = await users.invite_user(tx, other.id, person.email, role=Role.OWNER)
        with pytest.raises(LinkUnusable):
            await link_use.accept_as_existing(tx, token, person.id, password_hash="as it was checked", address="")


async def test_the_operator_gives_an_account_back_to_its_owner(database, shop):
    async with database.transaction() as tx:
        boss = await hire_boss(tx, shop)
        person = await hire(tx, shop, Role.ANALYST)
        await queries.set_password(tx, person.id, "the thief's")
        theirs = await team.password_link(tx, shop.id, person.id, by=boss, by_role=Role.ADMIN)
        await sessions.start_session(tx, person.id, is_remembered=True, address="", agent="")
        token = await users.reset_user(tx, person.email, without_second_factor=True)
        with pytest.raises(LinkUnusable):
            await reset(tx, theirs)
        assert await sessions.list_sessions(tx, person.id) == []
        found = await queries.find_account_by_email(tx, person.email)
        assert not found.has_password, "whoever knew it could sign in until the link is used"
        assert (await reset(tx, token)).id == person.id
