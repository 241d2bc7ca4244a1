"""Tills that keep sending, whatever happens to the server: tickets alone and in batches, new, repeated and wrong ones,
customers, consents.
"""

import contextlib
import http.client
import json
import random
import threading
from collections.abc import Iterator
from uuid import UUID

from tests.crash.journal import Answered, Call, Journal
from tests.support import samples
from tests.support.server import Server

CLIENTS = 8
CALL_SECONDS_MAX = 20
PAUSE_AFTER_LOSS_S = 0.02
SALES, BATCHES, PROFILES = "/v1/sales-events", "/v1/sales-events/batch", "/v1/profiles"
OPT_INS = "/v1/subscriptions/opt-in"
STORE = "PARIS-01"


class Till(threading.Thread):
    def __init__(self, number: int, *, seed: int, server: Server, api_key: str, journal: Journal) -> None:
        super().__init__(name=f"till-{number}", daemon=True)
        self._number = number
        self._chance = random.Random(f"{seed}/{number}")
        self._caller = Caller(server, api_key, journal)
        self._journal = journal
        self._count = 0
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.is_set():
            if not self._caller.send(self.choose()):
                self.stop.wait(PAUSE_AFTER_LOSS_S)
        self._caller.close()

    def choose(self) -> Call:
        chance = self._chance.random()
        if chance < 0.15 and (known := self._journal.undecided):
            # Perhaps in flight at another till at this very moment, perhaps lost in a crash.
            return self._chance.choice(known)
        if chance < 0.25 and (done := self._journal.answers):
            return self._chance.choice(done[-200:]).call
        if chance < 0.35 and (done := self._journal.answers):
            return self._another_ticket(self._chance.choice(done[-200:]).call.subject)
        if chance < 0.42:
            return self._wrong_ticket()
        if chance < 0.50:
            return self._customer()
        if chance < 0.57:
            return self._consent()
        if chance < 0.77:
            return self._batch()
        return self._ticket()

    def _new_name(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self._number}-{self._count}"

    def _key(self, share: float = 0.6) -> str | None:
        return str(UUID(int=self._chance.getrandbits(128))) if self._chance.random() < share else None

    def _ticket(self) -> Call:
        sale = {**samples.sale(STORE), "external_id": self._new_name("ticket")}
        customer = self._chance.choice([None, f"customer-{self._chance.randrange(50)}", self._new_name("customer")])
        if customer is not None:
            sale["profile_id"] = customer
        return Call(SALES, samples.json_bytes(sale).decode(), self._key(), sale["external_id"])

    def _another_ticket(self, subject: str) -> Call:
        """Other content under an id that is taken, for a customer whom nobody else names."""
        if not subject.startswith("ticket"):
            return self._ticket()
        ghost = self._new_name("ghost")
        sale = {**samples.sale(STORE, total_amount_cents=1), "external_id": subject, "profile_id": ghost}
        return Call(SALES, samples.json_bytes(sale).decode(), self._key(), subject, ghost)

    def _wrong_ticket(self) -> Call:
        ghost, name = self._new_name("ghost"), self._new_name("wrong")
        sale = {**samples.sale(self._chance.choice([STORE, "nowhere"])), "external_id": name, "profile_id": ghost}
        if sale["store_id"] == STORE:
            sale["total_amount_cents"] = -1
        return Call(SALES, samples.json_bytes(sale).decode(), self._key(0.9), name, ghost)

    def _batch(self) -> Call:
        """New tickets; sometimes with one that was answered already, or with a wrong one."""
        calls = [self._ticket() for _ in range(self._chance.randrange(1, 6))]
        done = [answer.call for answer in self._journal.answers[-50:] if answer.call.path == SALES]
        if done and self._chance.random() < 0.2:
            calls.append(self._chance.choice(done))
        ghost = None
        if self._chance.random() < 0.2:
            wrong = self._wrong_ticket()
            calls.append(wrong)
            ghost = wrong.ghost
        body = samples.json_bytes({"items": [json.loads(call.body) for call in calls]}).decode()
        return Call(BATCHES, body, self._key(), self._new_name("batch"), ghost)

    def _customer(self) -> Call:
        profile = samples.profile(
            external_id=f"customer-{self._chance.randrange(50)}", first_name=self._new_name("Ada")
        )
        return Call(PROFILES, samples.json_bytes(profile).decode(), self._key(), profile["external_id"])

    def _consent(self) -> Call:
        number = f"+336{self._number:02}{self._count % 10**6:06}"
        self._count += 1
        consent = samples.opt_in(phone_number=number)
        return Call(OPT_INS, samples.json_bytes(consent).decode(), self._key(), number)


class Caller:
    """One connection that is dialled again when it is lost; every call and answer goes to the journal."""

    def __init__(self, server: Server, api_key: str, journal: Journal) -> None:
        self._server = server
        self._headers = {"x-api-key": api_key, "content-type": "application/json"}
        self._journal = journal
        self._connection: http.client.HTTPConnection | None = None

    def send(self, call: Call) -> bool:
        """Whether there was an answer that decides the call."""
        headers = {**self._headers, **({"idempotency-key": call.key} if call.key else {})}
        self._journal.sending(call)
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(*self._server.address, timeout=CALL_SECONDS_MAX)
            self._connection.request("POST", call.path, call.body.encode(), headers)
            response = self._connection.getresponse()
            body = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self._journal.lost(call, repr(error))
            self.close()
            return False
        replayed = response.getheader("idempotent-replayed") == "true"
        answer = Answered(call, response.status, body, replayed)
        self._journal.answered(answer)
        return answer.is_decided

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextlib.contextmanager
def trading(*, seed: int, server: Server, api_key: str, journal: Journal) -> Iterator[None]:
    """All tills send for the time of the block."""
    tills = [Till(n, seed=seed, server=server, api_key=api_key, journal=journal) for n in range(CLIENTS)]
    for till in tills:
        till.start()
    try:
        yield
    finally:
        for till in tills:
            till.stop.set()
        for till in tills:
            till.join(CALL_SECONDS_MAX + 5)
            assert not till.is_alive(), f"{till.name} hangs"


def settle(*, server: Server, api_key: str, journal: Journal) -> None:
    """Send what was never decided again, as its caller would, until it is."""
    caller = Caller(server, api_key, journal)
    for call in journal.undecided:
        assert any(caller.send(call) for _ in range(5)), f"no decision for {call}"
    caller.close()
