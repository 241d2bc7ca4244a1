"""Protect against server-side request forgery: decide which addresses the server may connect to for a user's URL.

Allowed are addresses of the public internet and networks that the operator allows. The host name is resolved here,
every address is checked, and the server connects only to checked addresses, even if the name resolves differently
afterwards.
"""

import asyncio
import ipaddress
import re
import socket
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

URL_CHARACTERS_MAX: Final = 2048
# The operator's setting that allows networks beyond the public internet.
ALLOWED_BY: Final = "REGULARS_WEBHOOK_ALLOW"
# Threads that resolve names: a name server that does not respond blocks one for as long as the resolver waits.
RESOLVERS_MAX: Final = 64
# Listed here, because `is_global` differs between patch releases of Python. Public are all IPv4 addresses except these,
# and the allocated IPv6 block except these. The source is IANA's registries of special-purpose addresses.
_IPV4_SPECIAL: Final = [
    ipaddress.IPv4Network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
]
_IPV6_ALLOCATED: Final = ipaddress.IPv6Network("2000::/3")
# IETF protocols (Teredo among them), two documentation blocks, and 6to4, which can carry any IPv4 address.
_IPV6_SPECIAL: Final = [
    ipaddress.IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.IGNORECASE)
# Labels that the system's resolver reads as an address in an old notation: `2130706433`, `0x7f.1`, `127.1`.
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_HOST_CHARACTERS_MAX: Final = 253

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(Exception):
    """The message is one sentence for the person who chose the URL."""


@dataclass(frozen=True, slots=True)
class CheckedUrl:
    """A well-formed URL. The addresses of its host are checked when the server connects."""

    scheme: str
    host: str
    url: str


class AddressPolicy:
    def __init__(self, allow: Sequence[str] = ()) -> None:
        """`allow` lists networks to which the server may connect although they are not public, also over plain http."""
        self._allow = [ipaddress.ip_network(network, strict=False) for network in allow]

    def read_url(self, url: str) -> CheckedUrl:
        """Check the URL as far as that needs no name server; raise AddressRefused if it is not allowed."""
        parts = _split_url(url)
        if parts.scheme not in {"https", "http"}:
            raise AddressRefused("The URL must start with https://.")
        if parts.scheme == "http" and not self._allow:
            raise AddressRefused(
                f"The URL must start with https://; plain http is only for networks that {ALLOWED_BY} names."
            )
        if "@" in parts.netloc:
            raise AddressRefused("The URL must not hold a user name or a password.")
        if not parts.hostname:
            raise AddressRefused("The URL names no host that can be dialled.")
        host = _read_host(parts.hostname)
        address = _parse_address(host)
        if address is not None:
            self.check([address], is_plain=parts.scheme == "http")
        elif host == "localhost" or host.endswith(".localhost"):
            self.check([ipaddress.ip_address("127.0.0.1")], is_plain=parts.scheme == "http")
        return CheckedUrl(parts.scheme, host, url)

    def check(self, addresses: Sequence[Address], *, is_plain: bool) -> None:
        """Raise AddressRefused unless every address is allowed; plain http only in networks of `allow`."""
        for resolved in addresses:
            mapped = resolved.ipv4_mapped if isinstance(resolved, ipaddress.IPv6Address) else None
            address: Address = mapped or resolved
            if any(address in network for network in self._allow if network.version == address.version):
                continue
            if is_plain:
                raise AddressRefused(f"Plain http is only for networks that {ALLOWED_BY} names; use https.")
            if not _is_public(address):
                raise AddressRefused(
                    f"The host has an address that is not on the public internet; {ALLOWED_BY} can allow its network."
                )


class CheckedResolver(AbstractResolver):
    """Gives aiohttp the checked addresses of a name; use one resolver for https and one for plain http.

    aiohttp calls no resolver for a host that is an address: call `AddressPolicy.read_url` before each connection.
    """

    def __init__(self, policy: AddressPolicy, *, is_plain: bool) -> None:
        self._policy = policy
        self._is_plain = is_plain
        self._threads = ThreadPoolExecutor(RESOLVERS_MAX, thread_name_prefix="resolve")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        resolved = await loop.run_in_executor(
            self._threads,
            lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG),
        )
        results: list[ResolveResult] = []
        for address_family, _, protocol, _, socket_address in resolved:
            address = ipaddress.ip_address(str(socket_address[0]).partition("%")[0])
            self._policy.check([address], is_plain=self._is_plain)
            results.append(
                ResolveResult(
                    hostname=host,
                    host=str(address),
                    port=port,
                    family=address_family,
                    proto=protocol,
                    flags=socket.AI_NUMERICHOST,
                )
            )
        if not results or (family != socket.AF_UNSPEC and all(result["family"] != family for result in results)):
            raise OSError(f"{host} has no address")
        return results

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _split_url(url: str) -> SplitResult:
    if len(url) > URL_CHARACTERS_MAX:
        raise AddressRefused(f"The URL has more than {URL_CHARACTERS_MAX} characters.")
    if any(character.isspace() or unicodedata.category(character) == "Cc" for character in url):
        raise AddressRefused("The URL has white space or control characters in it.")
    if "#" in url:
        raise AddressRefused("The URL must not have a part after #.")
    try:
        parts = urlsplit(url)
        if parts.port == 0:
            raise ValueError
    except ValueError:
        raise AddressRefused("The URL cannot be read.") from None
    return parts


def _read_host(text: str) -> str:
    """Return the host in its DNS form; refuse spellings that only some programs read as an address."""
    if ":" in text:
        return text
    # Some resolvers accept full-width and circled digits.
    host = unicodedata.normalize("NFKC", text).lower().rstrip(".")
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        raise AddressRefused("The host of the URL is not a name that can be looked up.") from None
    labels = host.split(".")
    if len(host) > _HOST_CHARACTERS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressRefused("The host of the URL is not a name that can be looked up.")
    if _NUMBER.fullmatch(labels[-1]) and (host != text.lower() or _parse_address(host) is None):
        raise AddressRefused("The host of the URL is an address in an unusual spelling.")
    return host


def _parse_address(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _IPV4_SPECIAL)
    if address in _NAT64:
        # A NAT64 address is public if the IPv4 address in it is.
        return _is_public(ipaddress.IPv4Address(address.packed[-4:]))
    return address in _IPV6_ALLOCATED and not any(address in network for network in _IPV6_SPECIAL)
