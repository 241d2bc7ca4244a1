"""Checks how often the verdict of a holdout is right: in A/A runs, where texts have no effect, and with a known lift.

`python bench/aa.py` simulates 10,000 runs of each cell. Each run draws customers with different purchase rates,
log-normal baskets and returns, draws the holdout, and computes the verdict with `experiments/effect.py`.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from regulars.experiments.effect import compare, power_of  # as above
from regulars.experiments.sums import ArmSums  # the path above must be set first

BUYERS_SHARE = 0.1
WINDOW_DAYS = 8
# Shape of the gamma distribution of purchase rates; a smaller one has more customers who rarely buy.
RATE_SHAPE = 0.7
# log(basket) has the standard deviation 1; this part of it lies between customers.
CUSTOMER_SIGMA = 0.5
BASKET_SIGMA = sqrt(1 - CUSTOMER_SIGMA**2)
BASKET_CENTS = 5_000
RETURNED_SHARE = 0.1
POPULATION = 200_000
RUNS_PER_POPULATION = 500
HOLDOUTS = (0.05, 0.10, 0.50)
PEOPLE = (20_000, 100_000)
LIFT = 0.10


@dataclass(frozen=True, slots=True)
class Population:
    """The amounts that each customer spends in the window and before it, without and with texts. Both amounts share an
    array, so that a sample is read once."""

    usual: np.ndarray
    lifted: np.ndarray
    # Additional spending of a customer with a text.
    effect: float

    @property
    def skew(self) -> float:
        centred = self.usual[:, 0] - self.usual[:, 0].mean()
        return float((centred**3).mean() / (centred**2).mean() ** 1.5)


def draw_population(chance: np.random.Generator, *, lift: float = 0.0, size: int = POPULATION) -> Population:
    """`lift` is the share of additional purchases."""
    rate = chance.gamma(RATE_SHAPE, 1 / RATE_SHAPE, size)
    # Scaled so that a tenth buys in the window.
    per_window = RATE_SHAPE * ((1 - BUYERS_SHARE) ** (-1 / RATE_SHAPE) - 1)
    usual = BASKET_CENTS * np.exp(chance.normal(0, CUSTOMER_SIGMA, size))
    spend = _net(chance, chance.poisson(rate * per_window), usual)
    before = _net(chance, chance.poisson(rate * per_window * 365 / WINDOW_DAYS), usual)
    extra = _net(chance, chance.poisson(rate * per_window * lift), usual)
    lifted = np.column_stack((spend + extra, before))
    return Population(np.column_stack((spend, before)), lifted, float(extra.mean()))


def _net(chance: np.random.Generator, purchases: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Net spending of each customer: a random share of one purchase in ten is returned."""
    customer = np.repeat(np.arange(purchases.size), purchases)
    basket = usual[customer] * np.exp(chance.normal(0, BASKET_SIGMA, customer.size))
    left = np.where(chance.random(customer.size) < RETURNED_SHARE, chance.random(customer.size), 1.0)
    return np.round(np.bincount(customer, basket * left, purchases.size))


@dataclass(slots=True)
class Cell:
    """Counts of runs. `covered`: the interval contains the true difference; `above` and `below`: the verdict is a gain
    or a loss."""

    holdout: float
    people: int
    runs: int = 0
    too_few: int = 0
    covered: int = 0
    above: int = 0
    below: int = 0
    power: float = 0.0

    @property
    def verdicts(self) -> int:
        return self.runs - self.too_few

    def share(self, count: int) -> float:
        return count / max(1, self.verdicts)


def run_cell(holdout: float, people: int, *, runs: int, lift: float = 0.0, seed: int = 1) -> Cell:
    """A run with too few buyers has no verdict."""
    chance = np.random.default_rng(seed)
    cell = Cell(holdout, people)
    powers = []
    for population, some in _populations(chance, runs, lift):
        if lift:
            powers.append(_power(population, holdout, people))
        for _ in range(some):
            _run(chance, cell, population)
    cell.power = float(np.mean(powers)) if powers else 0.0
    return cell


def _populations(chance: np.random.Generator, runs: int, lift: float) -> Iterator[tuple[Population, int]]:
    for first in range(0, runs, RUNS_PER_POPULATION):
        yield draw_population(chance, lift=lift), min(RUNS_PER_POPULATION, runs - first)


def _run(chance: np.random.Generator, cell: Cell, population: Population) -> None:
    drawn = chance.integers(0, len(population.usual), cell.people, dtype=np.uint32)
    held_out = int(chance.binomial(cell.people, cell.holdout))
    treated = _sums(population.lifted.take(drawn[held_out:], axis=0))
    found = compare(treated, _sums(population.usual.take(drawn[:held_out], axis=0)))
    cell.runs += 1
    if found is None:
        cell.too_few += 1
        return
    cell.covered += found.adjusted.low <= population.effect <= found.adjusted.high
    cell.above += found.adjusted.low > 0
    cell.below += found.adjusted.high < 0


def _sums(customers: np.ndarray) -> ArmSums:
    spend, before = customers.sum(axis=0).tolist()
    (squares, products), (_, before_squares) = (customers.T @ customers).tolist()
    buyers = int(np.count_nonzero(customers[:, 0]))
    return ArmSums(len(customers), buyers, int(spend), squares, int(before), before_squares, products)


def _power(population: Population, holdout: float, people: int) -> float:
    """The expected share of runs that show the lift, from the whole population and groups of the usual size."""
    held_out = round(people * holdout)
    groups = [_sums(customers) for customers in (population.lifted, population.usual)]
    scaled = [
        ArmSums(size, *(round(value * size / whole.people) for value in _values_of(whole)))
        for whole, size in zip(groups, (people - held_out, held_out), strict=True)
    ]
    found = compare(*scaled)
    return 0.0 if found is None else power_of(population.effect, sqrt(found.adjusted.variance))


def _values_of(sums: ArmSums) -> tuple[float, ...]:
    return (
        sums.buyers, sums.spend_cents, sums.spend_squares, sums.before_cents, sums.before_squares, sums.products,
    )  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=10_000, help="of each cell without a lift")
    options.add_argument("--lifted-runs", type=int, default=1_000, help="of each cell with a planted lift")
    given = options.parse_args()
    shown = draw_population(np.random.default_rng(1))
    related = float(np.corrcoef(shown.usual.T)[0, 1])
    print(
        f"{np.mean(shown.usual[:, 0] > 0):.1%} buyers, baskets with sigma 1, a part of {RETURNED_SHARE:.0%} returned;"
        f" skew of the spend {shown.skew:.0f}, correlation with the year before {related:.2f}"
    )
    _print_cells(given.runs, lift=0.0)
    _print_cells(given.lifted_runs, lift=LIFT)


def _print_cells(runs: int, *, lift: float) -> None:
    shown = "detected | computed power" if lift else "false extra | false loss"
    print(f"\n| planted lift | holdout | people | runs | too few | coverage | {shown} |\n|{'---|' * 8}")
    for people in PEOPLE:
        for holdout in HOLDOUTS:
            cell = run_cell(holdout, people, runs=runs, lift=lift)
            second = cell.power if lift else cell.share(cell.below)
            shares = (cell.too_few / cell.runs, cell.share(cell.covered), cell.share(cell.above), second)
            row = [f"{lift:.0%}", f"{holdout:.0%}", f"{people:,}", f"{runs:,}", *(f"{share:.1%}" for share in shares)]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
