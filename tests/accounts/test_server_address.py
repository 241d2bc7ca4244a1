"""The public address: who may set it in the pages, and that the server finds itself there before it is stored."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

import pytest
from tests.support import database
from tests.support.client import get_url, new_http
from tests.support.open_database import open_database
from tests.support.server import Server, running_server
from tests.support.tenant import new_tenant
from tests.support.visitor import Visitor, sign_in_now
from tests.support.waiting import wait_until

from regulars.accounts import server_address
from regulars.accounts.server_address import AddressRefusal, call_self, read_address
from regulars.kit.db import Database
from regulars.kit.public_address import PublicAddress
from regulars.kit.ssrf import AddressPolicy
from regulars.organizations.manage import create_organization, mark_as_demo
from regulars.organizations.public_address import find_answer, find_stored_address
from regulars.web.access import Role

OWN_PORT = 8080
# Another process has a new address within this time.
FOLLOWED_S = 5
PAGE = "/settings/server"
Misbehave = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(scope="module")
def shop_url(shared_database):
    url, template = shared_database
    with database.new_database(url, template=template) as fresh:
        yield fresh


def served_address(server: Server) -> str:
    return get_url(f"{server.url}/v1/openapi.json").json()["servers"][0]["url"]


def make_organization(url: str, name: str, *, is_demo: bool) -> UUID:
    async def make(opened: Database) -> UUID:
        async with opened.connection() as connection:
            made = await create_organization(connection, name)
            if is_demo:
                await mark_as_demo(connection, made.id)
            return made.id

    with open_database(url) as opened:
        return opened.run(make)


def test_the_owner_of_the_only_organization_sets_it_and_every_process_takes_it(shop_url):
    tenant = new_tenant(shop_url)
    demo_id = make_organization(shop_url, "Demo", is_demo=True)
    fixed_to = "https://fixed.example.com"
    with (
        running_server(shop_url) as here,
        running_server(shop_url, link_url="") as there,
        running_server(shop_url, public_url=fixed_to) as fixed,
        new_http() as http,
    ):
        owner_session = sign_in_now(shop_url, tenant.organization_id, Role.OWNER)
        owner, owner_there, owner_of_fixed = (Visitor(http, each.url, owner_session) for each in (here, there, fixed))
        admin = Visitor(http, here.url, sign_in_now(shop_url, tenant.organization_id, Role.ADMIN))
        page = owner.get(PAGE).text
        assert "Check and save address" in page
        # The address in this browser is no address for others.
        assert f'value="{here.url}"' not in page
        owner_of_demo = Visitor(http, there.url, sign_in_now(shop_url, demo_id, Role.OWNER))
        assert "A demo cannot change it." in owner_of_demo.get(PAGE).text
        assert "Links in the texts of a demo begin with the address of this server" in owner_of_demo.get(PAGE).text
        assert "Links stay as you write them" in owner_there.get(PAGE).text
        assert owner_of_demo.post(PAGE, address=there.url).status_code == 400
        assert "Only an owner can change it." in admin.get(PAGE).text
        assert admin.post(PAGE, address=here.url).status_code == 403
        # Another port of this machine is refused, and nothing is requested there.
        refused = owner.post(PAGE, address=there.url)
        assert (refused.status_code, f"this server is {here.url}" in refused.text) == (400, True)
        # Only an address that was called, and may be right, is in a line for the administrator.
        assert "regulars address set" not in owner.post(PAGE, address="https://localhost").text
        assert "regulars address set https://10.0.0.1<" in owner.post(PAGE, address="https://10.0.0.1/").text
        assert owner.post(PAGE, address=here.url).status_code == 303
        page = owner.get(PAGE).text
        assert here.url in page
        # A provider would refuse texts whose receipts go to a machine that it cannot reach.
        assert "Only the machine of the server reaches it" in page
        assert "a real provider cannot reach it" in owner.get("/settings/texts/provider").text
        wait_until(lambda: served_address(there) == here.url, seconds=FOLLOWED_S, show=there.log)
        # The environment wins, and is shown as fixed.
        assert served_address(fixed) == fixed_to
        assert "REGULARS_PUBLIC_URL=https://fixed.example.com" in owner_of_fixed.get(PAGE).text
        assert owner_of_fixed.post(PAGE, address=fixed.url).status_code == 400
        # Without an address it is again the one that each caller uses.
        assert owner_there.post(PAGE, address="").status_code == 303
        wait_until(lambda: served_address(here) == here.url and served_address(there) == there.url, seconds=FOLLOWED_S)
        make_organization(shop_url, "Second", is_demo=False)
        assert "regulars address set https://" in owner.get(PAGE).text
        assert owner.post(PAGE, address=here.url).status_code == 400
        assert get_url(f"{here.url}{server_address.CHECK_PATH}/{'a' * 43}").status_code == 404
        assert get_url(f"{here.url}{server_address.CHECK_PATH}/%00%ff").status_code == 404


def test_an_address_where_nothing_listens_is_refused_in_plain_words(shop_url):
    async def call(opened: Database) -> None:
        listening = await asyncio.start_server(lambda *_streams: None, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        listening.close()
        await listening.wait_closed()
        with pytest.raises(AddressRefusal, match=r"^The connection failed: Connection refused\.$"):
            await call_self(opened, url, policy=AddressPolicy(["127.0.0.0/8"]))

    with open_database(shop_url) as opened:
        opened.run(call)


async def _send_away(_nonce: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 302 Found\r\nlocation: https://elsewhere.example/\r\ncontent-length: 0\r\n\r\n")


async def _echo(nonce: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(nonce), nonce))


async def _say_little(_nonce: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")


async def _stay_silent(_nonce: bytes, _writer: asyncio.StreamWriter) -> None:
    """Until the caller closes the connection."""


async def _never_end(_nonce: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n")


@contextlib.asynccontextmanager
async def stranger(misbehave: Misbehave) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A caller of https sends no head, and one that has waited enough closes the connection.
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            await misbehave(head.split(b" ")[1].rpartition(b"/")[2], writer)
            await reader.read()
        writer.close()
        is_over.set()

    is_over = asyncio.Event()
    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        await is_over.wait()
        listening.close()
        await listening.wait_closed()


@pytest.mark.parametrize(
    ("misbehave", "reason"),
    [
        (_send_away, "leads on to another one"),
        (_echo, "Something else"),
        (_say_little, "Something else"),
        (_stay_silent, "No answer came"),
        (_never_end, "No answer came"),
    ],
)
def test_what_is_not_this_server_is_refused_in_time(shop_url, monkeypatch, misbehave, reason):
    monkeypatch.setattr(server_address, "CHECK_S_MAX", 0.5)

    async def call(opened: Database) -> str | None:
        async with stranger(misbehave) as url:
            with pytest.raises(AddressRefusal, match=reason):
                await call_self(opened, url, policy=AddressPolicy(["127.0.0.0/8"]))
            with pytest.raises(AddressRefusal, match=r"not on the public internet|names"):
                await call_self(opened, url.replace("http", "https"), policy=AddressPolicy(["10.0.0.0/8"]))
        async with opened.transaction() as tx:
            assert await find_answer(tx, b"never asked") is None
            return await find_stored_address(tx)

    with open_database(shop_url) as opened:
        assert opened.run(call) is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://Regulars.Example.com:443/", "https://regulars.example.com"),
        ("https://regulars.example.com:8443", "https://regulars.example.com:8443"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_address_is_stored_as_browsers_write_it(text, address):
    assert read_address(text, own_port=OWN_PORT) == address


def test_callbacks_use_no_stored_address_of_this_machine():
    address = PublicAddress()
    for stored in ("http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080", None):
        address.update(stored)
        assert (address.url, address.callback_url) == (stored, None)
    address.update("https://regulars.example.com")
    assert address.callback_url == "https://regulars.example.com"
    fixed = PublicAddress("http://127.0.0.1:8080")
    assert fixed.callback_url == fixed.url


@pytest.mark.parametrize(
    "text",
    [
        *("http://regulars.example.com", "https://regulars.example.com/shop", "https://regulars.example.com?a=b"),
        *("regulars.example.com", "https://a:b@regulars.example.com", "https://", "https://[::1", "https://ü.example"),
        *("http://127.0.0.1:5432", "https://127.0.0.1:8080", "http://localhost", "ftp://regulars.example.com"),
        *("https://regulars.example.com:0", "https://regulars.example.com:99999", "javascript:alert(1)"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused(text):
    with pytest.raises(AddressRefusal):
        read_address(text, own_port=OWN_PORT)
