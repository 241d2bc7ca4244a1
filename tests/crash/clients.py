"""Tills that send requests during all faults: tickets singly and in batches (new, repeated and invalid ones), customers,
consents and withdrawals. Some misbehave: they disconnect during a response, or send requests twice, late and
out of order.
"""

import contextlib
import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from tests.crash.journal import FORM, Call, Journal, RecordedResponse
from tests.crash.shops import CUSTOMERS, STORE, Shop
from tests.support import samples

CLIENTS = 8
CALL_SECONDS_MAX = 25
PAUSE_AFTER_LOSS_S = 0.02
SALES, BATCHES, PROFILES = "/v1/sales-events", "/v1/sales-events/batch", "/v1/profiles"
OPT_INS, OPT_OUTS = "/v1/subscriptions/opt-in", "/v1/subscriptions/opt-out"
# Ages near the seven days after which a ticket is not eligible: hours off, and less than the time of a batch.
AGES_S = (3600, 3600, 3600, 7 * 86400 - 3600, 7 * 86400 - 1, 7 * 86400 + 1, 9 * 86400)
Manner = Literal["usual", "cutting", "shuffling"]


@dataclass(frozen=True)
class Address:
    """The address of a server, as a client needs it."""

    address: tuple[str, int]


class Till(threading.Thread):
    """With a shop it also sends purchases and withdrawals of customers who may be texted."""

    def __init__(
        self,
        number: int,
        *,
        seed: int,
        server: Address,
        api_key: str,
        journal: Journal,
        shop: Shop | None = None,
        manner: Manner = "usual",
        pause_s: float = 0.0,
    ) -> None:
        super().__init__(name=f"till-{number}", daemon=True)
        self._number = number
        self._chance = random.Random(f"{seed}/{number}")
        self._shop = shop
        self._tag = "" if shop is None else shop.tag
        self._name = f"{self._tag}-" if shop is not None else ""
        self._manner = manner
        self._pause_s = pause_s
        self._caller = Caller(server, api_key, journal, cuts=self._chance if manner == "cutting" else None)
        self._journal = journal
        self._mine: list[RecordedResponse] = []
        self._late: list[Call] = []
        self._count = 0
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.is_set():
            call = self.choose()
            if self._manner == "shuffling" and self._chance.random() < 0.5:
                self._send_disorderly(call)
            elif not self._caller.send(call):
                self.stop.wait(PAUSE_AFTER_LOSS_S)
            self.stop.wait(self._pause_s)
        self._caller.close()

    def _send_disorderly(self, call: Call) -> None:
        """Sends a call twice at once, much later, or after its successor."""
        how = self._chance.random()
        if how < 0.5:
            twin = threading.Thread(target=self._caller.again().send_once, args=(call,), daemon=True)
            twin.start()
            self._caller.send(call)
            twin.join(CALL_SECONDS_MAX)
        else:
            self._late.append(call)
            if len(self._late) > 3 or self.stop.is_set():
                self._chance.shuffle(self._late)
                while self._late:
                    self._caller.send(self._late.pop())

    def choose(self) -> Call:
        chance = self._chance.random()
        if chance < 0.15 and (known := [call for call in self._journal.undecided if call.tag == self._tag]):
            # Another till may be sending it now, or a crash may have lost it.
            return self._chance.choice(known)
        done = [answer.call for answer in self._journal.last(300) if answer.call.tag == self._tag]
        if chance < 0.25 and done:
            return self._chance.choice(done)
        if chance < 0.35 and done:
            return self._another_ticket(self._chance.choice(done).subject)
        if chance < 0.40:
            return self._wrong_ticket()
        if chance < 0.47:
            return self._customer()
        if chance < 0.55:
            return self._consent()
        if chance < 0.60 and self._shop is not None:
            return self._withdrawal(self._shop)
        if chance < 0.75:
            return self._batch()
        return self._ticket()

    def _call(self, path: str, body: object, subject: str, ghost: str | None = None, *, keyed: float = 0.6) -> Call:
        key = str(UUID(int=self._chance.getrandbits(128))) if self._chance.random() < keyed else None
        return Call(path, samples.json_bytes(body).decode(), key, subject, ghost, tag=self._tag)

    def _new_name(self, what: str) -> str:
        self._count += 1
        return f"{self._name}{what}-{self._number}-{self._count}"

    def _known_customer(self) -> str:
        most = 50 if self._shop is None else CUSTOMERS
        return f"{self._name}customer-{self._chance.randrange(most)}"

    def _sale(self) -> dict[str, object]:
        age_s = self._chance.choice(AGES_S) if self._shop is not None else 3600
        sale = {**samples.sale(STORE, occurred_at=samples.ago(seconds=age_s)), "external_id": self._new_name("ticket")}
        customer = self._chance.choice([None, self._known_customer(), self._new_name("customer")])
        return sale if customer is None else {**sale, "profile_id": customer}

    def _ticket(self) -> Call:
        sale = self._sale()
        return self._call(SALES, sale, str(sale["external_id"]))

    def _another_ticket(self, subject: str) -> Call:
        """Other content under an existing id, for a customer whom no other call names."""
        if not subject.startswith(f"{self._name}ticket"):
            return self._ticket()
        ghost = self._new_name("ghost")
        sale = {**samples.sale(STORE, total_amount_cents=1), "external_id": subject, "profile_id": ghost}
        return self._call(SALES, sale, subject, ghost)

    def _wrong_sale(self) -> tuple[dict[str, object], str, str]:
        ghost, name = self._new_name("ghost"), self._new_name("wrong")
        sale = {**samples.sale(self._chance.choice([STORE, "nowhere"])), "external_id": name, "profile_id": ghost}
        return ({**sale, "total_amount_cents": -1} if sale["store_id"] == STORE else sale), name, ghost

    def _wrong_ticket(self) -> Call:
        sale, name, ghost = self._wrong_sale()
        return self._call(SALES, sale, name, ghost, keyed=0.9)

    def _batch(self) -> Call:
        """New tickets, sometimes with an old or an invalid one."""
        sales = [self._sale() for _ in range(self._chance.randrange(1, 6))]
        done = [it.call for it in self._journal.last(50) if it.call.path == SALES and it.call.tag == self._tag]
        if done and self._chance.random() < 0.2:
            sales.append(json.loads(self._chance.choice(done).body))
        ghost = None
        if self._chance.random() < 0.2:
            wrong, _, ghost = self._wrong_sale()
            sales.append(wrong)
        return self._call(BATCHES, {"items": sales}, self._new_name("batch"), ghost)

    def _customer(self) -> Call:
        profile = samples.profile(external_id=self._known_customer(), first_name=self._new_name("Ada"))
        if self._shop is not None:
            profile["phone_number"] = self._shop.number(0)
        return self._call(PROFILES, profile, profile["external_id"])

    def _consent(self) -> Call:
        self._count += 1
        number = f"+336{self._number:02}{self._count % 10**6:06}"
        if self._shop is None:
            return self._call(OPT_INS, samples.opt_in(phone_number=number), number)
        number = f"+337{int(self._tag, 16) % 10**5:05d}{(self._number * 100 + self._count) % 1000:03d}"
        given = samples.opt_in(phone_number=number, profile_id=self._known_customer())
        return self._call(OPT_INS, given, number)

    def _withdrawal(self, shop: Shop) -> Call:
        """Of a customer who has just bought, so that a text may be queued."""
        customer = self._chance.randrange(CUSTOMERS)
        number = shop.number(customer)
        if self._chance.random() < 0.5:
            return shop.stop(number)
        return self._call(OPT_OUTS, {"phone_number": number}, number)


class Caller:
    """One connection that reconnects when it is lost; the journal records every call and response."""

    def __init__(self, server: Address, api_key: str, journal: Journal, *, cuts: random.Random | None = None) -> None:
        self._server = server
        self._api_key = api_key
        self._journal = journal
        self._cuts = cuts
        self._connection: http.client.HTTPConnection | None = None

    def again(self) -> "Caller":
        return Caller(self._server, self._api_key, self._journal)

    def send_once(self, call: Call) -> None:
        self.send(call)
        self.close()

    def send(self, call: Call) -> bool:
        """Sends the call; returns whether the response decided it."""
        number = self._journal.sending(call)
        sent_at = time.monotonic()
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(*self._server.address, timeout=CALL_SECONDS_MAX)
            self._connection.request(call.method, call.path, call.body.encode(), self._headers(call))
            if self._cuts is not None and self._cuts.random() < 0.5:
                raise ConnectionResetError(self._cut(self._connection.sock))
            response = self._connection.getresponse()
            body = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self._journal.lost(call, repr(error), number)
            self.close()
            return False
        answer = RecordedResponse(
            call,
            response.status,
            body,
            response.getheader("idempotent-replayed") == "true",
            response.getheader("content-type", ""),
            response.getheader("retry-after"),
            sent_at,
        )
        self._journal.answered(answer, number)
        return answer.is_decided

    def _headers(self, call: Call) -> dict[str, str]:
        if call.signature is not None:
            return {"content-type": FORM, "x-twilio-signature": call.signature}
        headers = {"x-api-key": self._api_key, "content-type": "application/json"}
        return {**headers, "idempotency-key": call.key} if call.key else headers

    def _cut(self, connection: socket.socket) -> str:
        """Reads some bytes of the response, or none, and disconnects."""
        assert self._cuts is not None
        wanted = self._cuts.choice([0, 1, 20, 200, 700])
        if wanted:
            connection.recv(wanted)
        return f"cut after at most {wanted} bytes"

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextlib.contextmanager
def running_tills(tills: Sequence[Till]) -> Iterator[None]:
    """Runs all tills during the block."""
    for till in tills:
        till.start()
    try:
        yield
    finally:
        for till in tills:
            till.stop.set()
        for till in tills:
            till.join(2 * CALL_SECONDS_MAX + 5)
            assert not till.is_alive(), f"STUCK: {till.name} got no answer"


def repeat_undecided(*, server: Address, api_key: str, journal: Journal, calls: Sequence[Call], tries: int = 5) -> None:
    """Repeats undecided calls, as their caller would, until they are decided."""
    caller = Caller(server, api_key, journal)
    for call in calls:
        assert any(caller.send(call) for _ in range(tries)), f"STUCK: no decision for {call}"
    caller.close()
