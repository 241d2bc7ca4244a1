"""Random requests of every kind, from a seed."""

import random
from datetime import timedelta
from typing import Any

from tests.sales.counter import SaleRequest
from tests.sales.desk import STORE
from tests.support import samples

# To be sent before the rest, which refers to its customer.
FIRST = SaleRequest(
    {**samples.sale(STORE), "external_id": "T-known", "occurred_at": "2024-05-01T00:00:00Z", "profile_id": "known"}
)


class Traffic:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sent: list[SaleRequest] = []
        self.moment = samples.now()

    def batch(self) -> list[SaleRequest]:
        sales = [self._one() for _ in range(self.chance.choice([1, 2, 5, 20, 40]))]
        self.sent += sales
        return sales

    def _one(self) -> SaleRequest:
        chance = self.chance
        if self.sent and chance.random() < 0.15:
            return chance.choice(self.sent)
        key = f"key-{chance.randrange(150)}" if chance.random() < 0.5 else None
        profile = chance.choice(
            [None, None, f"c{chance.randrange(30)}", f"new-{chance.random()}", "known", "@known", "@x"]
        )
        age = chance.choice([-3600, -10, 60, 3600, 7 * 86400 - 3600, 7 * 86400 + 5, 10**8])
        body: dict[str, Any] = {
            **samples.sale(chance.choice([STORE, STORE, STORE, "LYON-02", "@LYON-02", "nowhere", "prof_x"])),
            "external_id": f"T{chance.randrange(60)}",
            "type": chance.choice(["PURCHASE", "RETURN"]),
            "occurred_at": samples.at(self.moment - timedelta(seconds=age)),
            "total_amount_cents": chance.choice([0, 100, 2**53 - 1]),
            "metadata": chance.choice([None, {"z": 1, "a": [1.50, "é"]}]),
            "source": chance.choice([None, "pos"]),
        }
        if profile is not None:
            body["profile_id"] = "prof_01h455vb4pex5vsknk084sn02q" if profile == "@x" else profile
        if chance.random() < 0.05:
            del body["currency"]
        return SaleRequest(body, key)
