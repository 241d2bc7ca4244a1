"""Set the public address of the server from the pages. Only the owner of the only organization may, and the server
calls itself at the address first: an address that leads elsewhere would send links, callbacks and sign-ins there.

The call carries a nonce that only the processes of this server can answer. It is bounded in every way: only
https to addresses of the public internet or to networks that the operator allows, or this server's own port on this
machine; one deadline, no redirect, no proxy, a few bytes of the answer, of which the user sees nothing.
"""

import asyncio
import hmac
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import aiohttp

from regulars.accounts.audit.log import Actor, record
from regulars.accounts.model import hash_token, new_token
from regulars.kit.db import Database, Tx
from regulars.kit.http_client import describe_network_error, open_checked_session
from regulars.kit.public_address import is_loopback
from regulars.kit.setting_kinds import public_url
from regulars.kit.ssrf import AddressPolicy, AddressRefused
from regulars.organizations.public_address import begin_check, find_stored_address, has_server_alone, store_address

CHECK_PATH: Final = "/address-check"
CHECK_S_MAX: Final = 5.0
USER_AGENT: Final = "Regulars-Address-Check/1"
OK: Final = 200
REDIRECTS: Final = range(300, 400)
LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


class AddressRefusal(Exception):
    """The message is one sentence for the person who chose the address."""


class ServerShared(Exception):
    """Several organizations use the server, so none of them may set its address."""


def read_address(text: str, *, own_port: int) -> str:
    """Return the address in the form in which browsers name it, or raise AddressRefusal."""
    try:
        parts = urlsplit(public_url(text))
        host, port = (parts.hostname or "").lower(), parts.port or _DEFAULT_PORTS[parts.scheme]
    except ValueError:
        raise AddressRefusal("Enter an address like https://regulars.example.com.") from None
    if parts.path or not text.isascii():
        raise AddressRefusal("The address ends after the host, and has no letters beyond a to z.")
    if is_loopback(host):
        if port != own_port or parts.scheme != "http":
            raise AddressRefusal(f"On its own machine this server is http://{host}:{own_port}.")
    elif parts.scheme != "https":
        raise AddressRefusal("The address begins with https://. Plain http is only for the machine of the server.")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + ("" if port == _DEFAULT_PORTS[parts.scheme] else f":{port}")


async def change_address(
    database: Database, organization_id: UUID, url: str | None, *, allow: Sequence[str], by: Actor
) -> None:
    """Store the address, or none, after the server has answered there; `allow` are networks beyond the internet."""
    async with database.reading() as tx:
        await _refuse_shared(tx, organization_id)
    if url is not None:
        is_own = is_loopback(urlsplit(url).hostname or "")
        await call_self(database, url, policy=AddressPolicy(LOOPBACK if is_own else allow))
    async with database.transaction() as tx:
        await _refuse_shared(tx, organization_id)
        before = await find_stored_address(tx)
        await store_address(tx, url)
        await record(tx, organization_id, by, "server.address", "server", before={"url": before}, after={"url": url})


async def call_self(database: Database, url: str, *, policy: AddressPolicy) -> None:
    """Raise AddressRefusal unless this server answers at the address."""
    nonce, answer = new_token(), new_token()
    async with database.transaction() as tx:
        await begin_check(tx, nonce_hash=hash_token(nonce), answer=answer)
    try:
        async with asyncio.timeout(CHECK_S_MAX):
            received = await _fetch(f"{url}{CHECK_PATH}/{nonce}", len(answer), policy)
    except TimeoutError:
        raise AddressRefusal(f"No answer came from there within {CHECK_S_MAX:.0f} seconds.") from None
    except AddressRefused as refusal:
        raise AddressRefusal(str(refusal)) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise AddressRefusal(describe_network_error(error)) from None
    if not hmac.compare_digest(received, answer.encode()):
        raise AddressRefusal("Something else than this server answers there.")


async def _fetch(url: str, size: int, policy: AddressPolicy) -> bytes:
    target = policy.read_url(url)
    async with (
        open_checked_session(policy, is_plain=target.scheme == "http", sockets_max=1, user_agent=USER_AGENT) as session,
        session.get(target.url, allow_redirects=False) as response,
    ):
        if response.status in REDIRECTS:
            raise AddressRefusal("The address leads on to another one; enter that.")
        if response.status != OK:
            return b""
        try:
            return await response.content.readexactly(size)
        except asyncio.IncompleteReadError as short:
            return short.partial


async def _refuse_shared(tx: Tx, organization_id: UUID) -> None:
    if not await has_server_alone(tx, organization_id):
        raise ServerShared
