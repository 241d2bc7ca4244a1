"""Make one delivery attempt: POST a signed message to an endpoint, if its address is allowed; return the outcome."""

import asyncio
import ssl
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import aiohttp

from regulars.kit.clock import monotonic
from regulars.kit.http_client import describe_network_error, open_checked_session, read_retry_after
from regulars.kit.ssrf import AddressPolicy, AddressRefused
from regulars.webhooks.delivery.schedule import AttemptOutcome
from regulars.webhooks.signature import sign

TIMEOUT_S: Final = 15.0
SOCKETS_MAX: Final = 512
RESPONSE_BYTES_MAX: Final = 64 * 1024
RESPONSE_STORED_BYTES: Final = 2 * 1024
USER_AGENT: Final = "Regulars-Webhooks/1"
SUCCESSES: Final = range(200, 300)
REDIRECTS: Final = range(300, 400)


class OutgoingMessage(NamedTuple):
    """A message with everything that an attempt needs."""

    url: str
    message_id: str
    body: bytes
    secrets: Sequence[bytes]
    # When the delivery was claimed, by the database's clock and by the monotonic clock of this process.
    claimed_at: datetime
    claimed_monotonic_s: float

    def now(self) -> datetime:
        """The current time by the database's clock: receivers refuse a message whose timestamp is wrong."""
        return self.claimed_at + timedelta(seconds=monotonic() - self.claimed_monotonic_s)


class Sender:
    """The HTTP client of a worker; all endpoints share its connections, at most 512 in total."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def send(self, message: OutgoingMessage) -> AttemptOutcome:
        """Make one attempt. Only 2xx is a success; the outcome describes any failure in a sentence."""
        started = monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                outcome = await self._post(message)
        except TimeoutError:
            outcome = AttemptOutcome(f"There was no complete response within {TIMEOUT_S:.0f} seconds.", is_timeout=True)
        except AddressRefused as refusal:
            outcome = AttemptOutcome(str(refusal))
        except ssl.SSLError as error:
            outcome = AttemptOutcome(f"TLS failed: {error.reason or 'the connection cannot be trusted'}.")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            outcome = AttemptOutcome(describe_network_error(error))
        return outcome._replace(duration_ms=int((monotonic() - started) * 1000))

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()

    async def _post(self, message: OutgoingMessage) -> AttemptOutcome:
        target = self._policy.read_url(message.url)
        timestamp = int(message.now().timestamp())
        headers = {
            "content-type": "application/json",
            "webhook-id": message.message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign(
                message.secrets, message_id=message.message_id, timestamp=timestamp, body=message.body
            ),
        }
        session = self._session(target.scheme)
        async with session.post(message.url, data=message.body, headers=headers, allow_redirects=False) as response:
            excerpt = await _read_excerpt(response.content)
            if response.status in SUCCESSES:
                return AttemptOutcome(None, response.status)
            is_redirect = response.status in REDIRECTS
            return AttemptOutcome(
                "A redirect is not followed." if is_redirect else f"The response was {response.status}.",
                response.status,
                response=excerpt,
                retry_after=read_retry_after(response.headers.get("retry-after"), now=message.now()),
            )

    def _session(self, scheme: str) -> aiohttp.ClientSession:
        session = self._sessions.get(scheme)
        if session is None:
            session = self._sessions[scheme] = open_checked_session(
                self._policy, is_plain=scheme == "http", sockets_max=SOCKETS_MAX, user_agent=USER_AGENT
            )
        return session


async def _read_excerpt(content: aiohttp.StreamReader) -> str:
    """Return the first bytes of a response, for users. It reads on to the end, so that the connection can be reused."""
    excerpt = bytearray()
    size = 0
    async for chunk in content.iter_chunked(8192):
        excerpt += chunk[: RESPONSE_STORED_BYTES - len(excerpt)]
        size += len(chunk)
        if size >= RESPONSE_BYTES_MAX:
            break
    # PostgreSQL does not accept NUL in a string.
    return excerpt.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
