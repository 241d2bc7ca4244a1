"""A batch that fails is bisected."""

from collections.abc import Sequence

import pytest

from regulars.kit.bisect import bisect_failures

pytestmark = pytest.mark.anyio


class GuiltyError(Exception):
    """What an item of these tests fails with."""


class Runs:
    """Doubles numbers; some of them fail whatever they are run with."""

    def __init__(self, *guilty: int) -> None:
        self.guilty = set(guilty)
        self.runs: list[list[int]] = []

    async def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.runs.append(list(numbers))
        if self.guilty.intersection(numbers):
            raise GuiltyError
        return [number * 2 for number in numbers]


def leave_out(numbers: Sequence[int], _error: Exception) -> list[int] | None:
    return [-numbers[0]] if len(numbers) == 1 else None


async def test_what_passes_is_run_once():
    run = Runs()
    assert await bisect_failures([1, 2, 3], run, leave_out) == [2, 4, 6]
    assert run.runs == [[1, 2, 3]]


@pytest.mark.parametrize("guilty", [(1,), (4,), (7,), (1, 7), (3, 4), tuple(range(1, 8))])
async def test_only_the_guilty_have_no_result_and_the_order_stays(guilty):
    numbers = list(range(1, 8))
    results = await bisect_failures(numbers, Runs(*guilty), leave_out)
    assert results == [-number if number in guilty else number * 2 for number in numbers]


async def test_one_guilty_item_costs_two_runs_a_level():
    run = Runs(5)
    await bisect_failures(list(range(32)), run, leave_out)
    assert len(run.runs) == 1 + 2 * 5


async def test_the_callback_may_end_the_bisection_for_all_that_failed_together():
    run = Runs(2)
    assert await bisect_failures([1, 2, 3, 4], run, lambda numbers, _: [0] * len(numbers)) == [0, 0, 0, 0]
    assert len(run.runs) == 1


async def test_a_failure_that_no_item_caused_ends_everything():
    def give_up(_numbers: Sequence[int], error: Exception) -> None:
        raise error

    run = Runs(1)
    with pytest.raises(GuiltyError):
        await bisect_failures([1, 2, 3, 4], run, give_up)
    assert len(run.runs) == 1


async def test_a_single_item_is_not_bisected():
    with pytest.raises(GuiltyError):
        await bisect_failures([1, 2], Runs(1), lambda *_: None)
