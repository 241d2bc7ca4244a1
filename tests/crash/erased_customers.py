"""Customers who consent, buy and request erasure; checks that no personal data is left after the response."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from tests.crash.clients import OPT_INS, PROFILES, SALES, Address, Caller
from tests.crash.external import Arrival
from tests.crash.journal import Call, Journal
from tests.crash.shops import STORE, Shop
from tests.support import samples

from regulars.privacy.erasure_log import read_log

PEOPLE_MAX: Final = 400
FIRST_NUMBER: Final = 500
# Too old to be eligible: their tickets start no journey.
AGE_DAYS: Final = 9
TRIES_AFTER_THE_END: Final = 20
PAUSE_S: Final = 0.05
TABLES: Final = """
SELECT table_name, bool_or(column_name = 'organization_id') FROM information_schema.columns
WHERE table_schema = 'public' AND table_name IN (SELECT relname FROM pg_class WHERE relkind IN ('r', 'p'))
GROUP BY table_name
"""


@dataclass(frozen=True, eq=False)
class Person:
    shop: Shop
    number: int

    @property
    def external_id(self) -> str:
        return f"{self.shop.tag}-leaver-{self.number}"

    @property
    def phone_number(self) -> str:
        return self.shop.number(FIRST_NUMBER + self.number)

    @property
    def word(self) -> str:
        """Marks all personal data of this person."""
        return f"Persephone{self.shop.tag}x{self.number}x"

    def calls(self) -> list[Call]:
        profile = samples.profile(
            external_id=self.external_id,
            phone_number=self.phone_number,
            first_name=self.word,
            attributes={"hobby": self.word},
        )
        consent = samples.opt_in(
            phone_number=self.phone_number,
            profile_id=self.external_id,
            consent_proof=samples.proof(source_text=f"I, {self.word}, agree."),
        )
        ticket = {**self._ticket("bought"), "metadata": {"note": self.word}}
        return [
            self._call(PROFILES, profile),
            self._call(OPT_INS, consent),
            self._call(SALES, ticket),
        ]

    def concurrent_sale(self) -> Call:
        """A sale without personal data; it may arrive before or after the erasure."""
        return self._call(SALES, self._ticket("left"))

    def erasure(self) -> Call:
        return self._call(f"{PROFILES}/{self.external_id}", None, method="DELETE")

    def _ticket(self, what: str) -> dict[str, object]:
        name = f"{self.shop.tag}-{what}-{self.number}"
        return samples.sale(
            STORE, external_id=name, profile_id=self.external_id, occurred_at=samples.ago(days=AGE_DAYS)
        )

    def _call(self, path: str, body: object, *, method: str = "POST") -> Call:
        content = "" if body is None else samples.json_bytes(body).decode()
        return Call(path, content, str(uuid4()), self.external_id, method=method, tag=f"{self.shop.tag}/leavers")


class ErasedCustomers(threading.Thread):
    """Creates and erases customers one after the other; `gone` has the time of each response to an erasure."""

    def __init__(self, server: Address, shop: Shop, journal: Journal) -> None:
        super().__init__(name="leavers", daemon=True)
        self._caller = Caller(server, shop.key, journal)
        self._shop = shop
        self.gone: dict[Person, float] = {}
        self.stop = threading.Event()

    def run(self) -> None:
        for number in range(PEOPLE_MAX):
            if self.stop.wait(PAUSE_S):
                break
            person = Person(self._shop, number)
            if all(self._send(call) for call in person.calls()):
                self._erase(person)
        self._caller.close()

    def _erase(self, person: Person) -> None:
        second_caller = self._caller.again()
        meanwhile = threading.Thread(target=second_caller.send_once, args=(person.concurrent_sale(),), daemon=True)
        meanwhile.start()
        if self._send(person.erasure(), tries_after_the_end=TRIES_AFTER_THE_END):
            self.gone[person] = time.monotonic()
        meanwhile.join(60)

    def _send(self, call: Call, *, tries_after_the_end: int = 0) -> bool:
        """Sends the call until it is decided, or until a little after the trial; returns whether it was decided."""
        while not self._caller.send(call):
            if self.stop.wait(PAUSE_S):
                tries_after_the_end -= 1
                if tries_after_the_end < 0:
                    return False
                self.stop.wait(PAUSE_S)
        return True


def check_gone(url: str, shop: Shop, gone: dict[Person, float], arrivals: Sequence[Arrival]) -> None:
    """Asserts that no table has personal data, and that no text left after the response."""
    words = [word for person in gone for word in (person.word, person.phone_number[1:])]
    left = _find(url, shop.organization_id, words) if words else []
    assert not left, f"GONE: {len(left)} rows still hold an erased customer: {left[:5]}"
    erased_at = {person.phone_number: moment for person, moment in gone.items()}
    late = [it.text_id for it in arrivals if it.at > erased_at.get(it.number, float("inf"))]
    assert not late, f"GONE: texts left for an erased customer: {late}"


def check_logged(url: str, shop: Shop, folder: Path) -> None:
    """Asserts that the erasure log has every committed erasure, and not as void."""
    logged = {one.profile_id for path in folder.rglob("erasures.log") for one in read_log(path).erasures}
    with psycopg.connect(url) as connection:
        query = "SELECT profile_id FROM erasures WHERE organization_id = %s"
        committed = {row[0] for row in connection.execute(query, (shop.organization_id,))}
    assert committed <= logged, f"LOG: {len(committed - logged)} erasures are missing from the log"


def is_of_erased_customer(shop: Shop, number: str) -> bool:
    return number[:-3] == shop.number(0)[:-3] and int(number[-3:]) >= FIRST_NUMBER


def _find(url: str, organization_id: UUID, words: Sequence[str]) -> list[str]:
    """Rows with one of the words, as text or in hex."""
    patterns = [f"%{form}%" for word in words for form in (word, word.encode().hex())]
    found = []
    with psycopg.connect(url) as connection:
        for table, has_organization in connection.execute(TABLES).fetchall():
            query = sql.SQL("SELECT it::text FROM {} AS it WHERE it::text LIKE ANY(%s)").format(sql.Identifier(table))
            parameters: list[object] = [patterns]
            if has_organization:
                query += sql.SQL(" AND organization_id = %s")
                parameters.append(organization_id)
            found += [f"{table}: {row[0][:200]}" for row in connection.execute(query, parameters)]
    return found
