"""The fast path of writes: how long a queue that failed is treated in another way."""

import asyncio

from regulars.http.in_flight import QueueMarks


def test_a_mark_lasts_until_its_time_after_the_last_failure():
    async def run() -> list[bool]:
        loop, seconds = asyncio.get_running_loop(), 0.05
        marks, is_marked, is_over = QueueMarks(seconds), [], asyncio.Event()

        # The loop calls timers in the order of their times, however late it is.
        for _ in range(2):
            marks.add("queue")
            started = loop.time()
            while loop.time() <= started:
                pass
            loop.call_later(seconds, lambda: is_marked.append("queue" in marks.queues))
        loop.call_later(seconds, is_over.set)
        await is_over.wait()
        return is_marked

    assert asyncio.run(run()) == [True, False]
