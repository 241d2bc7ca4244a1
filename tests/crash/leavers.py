"""People who come, agree to be texted, buy, and ask to be forgotten: what is left of those who were told that they are."""

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
from tests.crash.journal import Call, Journal
from tests.crash.outside import Arrival
from tests.crash.shops import STORE, Shop
from tests.support import samples

from regulars.privacy.erasure_log import read_log

PEOPLE_MAX: Final = 400
FIRST_NUMBER: Final = 500
# Older than anything that a ticket starts: their tickets start no journey, erased or not.
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
        """Stands in everything that is personal, and nowhere else."""
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

    def ticket_meanwhile(self) -> Call:
        """Nothing personal but whose it is: it may come before the erasure or after it."""
        return self._call(SALES, self._ticket("left"))

    def farewell(self) -> Call:
        return self._call(f"{PROFILES}/{self.external_id}", None, method="DELETE")

    def _ticket(self, what: str) -> dict[str, object]:
        name = f"{self.shop.tag}-{what}-{self.number}"
        return samples.sale(
            STORE, external_id=name, profile_id=self.external_id, occurred_at=samples.ago(days=AGE_DAYS)
        )

    def _call(self, path: str, body: object, *, method: str = "POST") -> Call:
        content = "" if body is None else samples.json_bytes(body).decode()
        return Call(path, content, str(uuid4()), self.external_id, method=method, tag=f"{self.shop.tag}/leavers")


class Leavers(threading.Thread):
    """One after the other; `gone` has those whose erasure was answered, and when."""

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
                self._leave(person)
        self._caller.close()

    def _leave(self, person: Person) -> None:
        beside = self._caller.again()
        meanwhile = threading.Thread(target=beside.send_once, args=(person.ticket_meanwhile(),), daemon=True)
        meanwhile.start()
        if self._send(person.farewell(), tries_after_the_end=TRIES_AFTER_THE_END):
            self.gone[person] = time.monotonic()
        meanwhile.join(60)

    def _send(self, call: Call, *, tries_after_the_end: int = 0) -> bool:
        """Whether it was decided; what is not is sent again, as long as the trial goes on or a little longer."""
        while not self._caller.send(call):
            if self.stop.wait(PAUSE_S):
                tries_after_the_end -= 1
                if tries_after_the_end < 0:
                    return False
                self.stop.wait(PAUSE_S)
        return True


def check_gone(url: str, shop: Shop, gone: dict[Person, float], arrivals: Sequence[Arrival]) -> None:
    """Nothing personal is left in any table, and no text left after the answer."""
    words = [word for person in gone for word in (person.word, person.phone_number[1:])]
    left = _find(url, shop.organization_id, words) if words else []
    assert not left, f"GONE: {len(left)} rows still hold an erased customer: {left[:5]}"
    erased_at = {person.phone_number: moment for person, moment in gone.items()}
    late = [it.text_id for it in arrivals if it.at > erased_at.get(it.number, float("inf"))]
    assert not late, f"GONE: texts left for somebody who was erased: {late}"


def check_logged(url: str, shop: Shop, folder: Path) -> None:
    """Every erasure that was committed is in the log outside the database, and not as a void one."""
    logged = {one.profile_id for path in folder.rglob("erasures.log") for one in read_log(path).erasures}
    with psycopg.connect(url) as connection:
        query = "SELECT profile_id FROM erasures WHERE organization_id = %s"
        committed = {row[0] for row in connection.execute(query, (shop.organization_id,))}
    assert committed <= logged, f"LOG: {len(committed - logged)} erasures are missing from the log"


def of_leavers(shop: Shop, number: str) -> bool:
    return number[:-3] == shop.number(0)[:-3] and int(number[-3:]) >= FIRST_NUMBER


def _find(url: str, organization_id: UUID, words: Sequence[str]) -> list[str]:
    """Rows with one of the words, as text or as the bytes of it."""
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
