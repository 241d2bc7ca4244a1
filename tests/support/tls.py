"""A certificate authority for tests, and a TLS proxy for a PostgreSQL without TLS."""

import asyncio
import contextlib
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from psycopg.conninfo import conninfo_to_dict

SECONDS_MAX = 20


def make_certificates(folder: Path) -> Path:
    """Writes `root.crt`, and `server.crt` with `server.key` for 127.0.0.1 and localhost, signed by it."""
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test root")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    root = _certificate(root_name, root_name, root_key.public_key())
    root = root.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = _certificate(name, root_name, key.public_key())
    server = server.add_extension(x509.SubjectAlternativeName(names), critical=False)
    pem = serialization.Encoding.PEM
    (folder / "root.crt").write_bytes(root.sign(root_key, hashes.SHA256()).public_bytes(pem))
    (folder / "server.crt").write_bytes(server.sign(root_key, hashes.SHA256()).public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "server.key").write_bytes(private)
    (folder / "server.key").chmod(0o600)
    return folder


def _certificate(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))


@contextlib.contextmanager
def tls_proxy(url: str, certificates: Path) -> Iterator[str]:
    """Runs a proxy that accepts only TLS; yields the URL of the database through it."""
    upstream = conninfo_to_dict(url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    ports: list[int] = []

    async def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ssl_request = await reader.read(8)
        if ssl_request != bytes((0, 0, 0, 8, 4, 210, 22, 47)):
            writer.close()
            return
        writer.write(b"S")
        await writer.drain()
        try:
            await writer.start_tls(context)
        except OSError:
            writer.close()
            return
        inner_reader, inner_writer = await _dial(upstream)
        await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))
        for each in (inner_writer, writer):
            with contextlib.suppress(OSError):
                await each.wait_closed()

    async def serve() -> None:
        async with await asyncio.start_server(on_connect, "127.0.0.1", 0) as server:
            ports.append(server.sockets[0].getsockname()[1])
            ready.set()
            await stop.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(SECONDS_MAX)
    try:
        yield f"postgresql://{upstream['user']}@127.0.0.1:{ports[0]}/{upstream['dbname']}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(SECONDS_MAX)


async def _dial(upstream: dict[str, Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = str(upstream.get("host", "127.0.0.1")), upstream.get("port", 5432)
    if host.startswith("/"):
        return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
    return await asyncio.open_connection(host, int(port))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    writer.close()
