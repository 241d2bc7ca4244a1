"""Which addresses from users may be dialled, and every spelling of those that may not."""

import asyncio
import ipaddress
import socket

import pytest

from regulars.kit.ssrf import AddressPolicy, AddressRefused, CheckedResolver

REFUSED = [
    "http://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "example.com",
    "https://",
    "https://user@example.com/",
    "https://user:password@example.com/",
    "https://example.com/#part",
    "https://example.com:0/",
    "https://example.com:99999/",
    "https://exa mple.com/",
    "https://example.com/\n",
    "https://exa_mple..com/",
    "https://-example.com/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://anything.localhost/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://0.0.0.0/",
    "https://10.1.2.3/",
    "https://192.168.1.1/",
    "https://172.16.0.1/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://①②⑦.⓪.⓪.①/",
    "https://１２７.0.0.1/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b:1::808:808]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0:7f00:1::1]/",
    "https://[2001:db8::1]/",
    "https://[2002:808:808::1]/",
    "https://[3fff::1]/",
    "https://[5f00::1]/",
    "https://[fec0::1]/",
    "https://[100::1]/",
    "https://192.0.0.9/",
    "https://192.88.99.1/",
    "https://198.18.0.1/",
    "https://203.0.113.9/",
    "https://240.0.0.1/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fc00::1]/",
    "https://[ff02::1]/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://" + "a" * 2100 + ".example/",
]


@pytest.mark.parametrize("url", REFUSED)
def test_it_refuses(url):
    with pytest.raises(AddressRefused, match=r"\.$"):
        AddressPolicy().read_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/hook?a=b",
        "https://example.com:8443/",
        "https://bücher.example/",
        "https://8.8.8.8/",
        "https://[2606:4700:4700::1111]/",
        "https://[64:ff9b::808:808]/",
    ],
)
def test_it_takes(url):
    assert AddressPolicy().read_url(url).url == url


def test_an_allowed_network_lets_addresses_in_also_in_plain_http():
    policy = AddressPolicy(["127.0.0.0/8", "fd00::/8"])
    assert policy.read_url("http://127.0.0.1:8000/hook").scheme == "http"
    assert policy.read_url("http://localhost:8000/hook").host == "localhost"
    assert policy.read_url("https://[fd00::1]/").host == "fd00::1"
    assert policy.read_url("http://[::ffff:127.0.0.1]/").scheme == "http"
    for other in ("http://8.8.8.8/", "http://10.0.0.1/", "https://10.0.0.1/"):
        with pytest.raises(AddressRefused):
            policy.read_url(other)


def resolved(monkeypatch, *addresses):
    def getaddrinfo(host, port, **_options):
        families = {4: socket.AF_INET, 6: socket.AF_INET6}
        return [
            (families[ipaddress.ip_address(one).version], socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def resolve():
        resolver = CheckedResolver(AddressPolicy(), is_plain=False)
        try:
            return await resolver.resolve("shop.example", 443)
        finally:
            await resolver.close()

    return asyncio.run(resolve())


def test_the_addresses_of_a_name_are_given_as_they_were_checked(monkeypatch):
    found = resolved(monkeypatch, "93.184.215.14", "2606:4700::1")
    assert [one["host"] for one in found] == ["93.184.215.14", "2606:4700::1"]
    assert all(one["flags"] == socket.AI_NUMERICHOST for one in found)


@pytest.mark.parametrize("bad", ["127.0.0.1", "10.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "fe80::1"])
def test_a_name_with_one_address_that_is_not_public_is_refused_whole(monkeypatch, bad):
    with pytest.raises(AddressRefused, match="public internet"):
        resolved(monkeypatch, "93.184.215.14", bad)
