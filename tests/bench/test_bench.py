import json
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from regulars.organizations.model import new_key
from regulars.sales.decode import decode_sale

BENCH = Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import attribution  # noqa: E402  # the folder of the benchmark has just been made importable
import report  # noqa: E402  # as above
import run  # noqa: E402  # as above
import tickets  # noqa: E402  # as above
from attribution_credits import CreditTimes  # noqa: E402  # as above
from attribution_pages import AttributionPages  # noqa: E402  # as above
from pages import PageTime  # noqa: E402  # as above
from redirects import Redirects  # noqa: E402  # as above
from sale_cost import RATES  # noqa: E402  # as above
from scenarios import SCENARIOS, Measurement, close_scenarios, grown_scenario  # noqa: E402  # as above

TICKET_BYTES = range(650, 1050)


def row(name, rate, **figures):
    zeros = dict.fromkeys(("app_us", "jobs_us", "database_us", "load_us", "memory_mib"), 0.0)
    made = {"name": name, "rate": rate, "rates": [rate], "failed_runs": 0, "in_turns": "", **zeros, **figures}
    return made | {"cpu_us": [sum(made[name] for name in ("app_us", "jobs_us", "database_us", "load_us"))]}


def bodies_of(requests):
    return [request.partition(b"\r\n\r\n")[2] for request in requests]


def test_the_tickets_of_the_open_loop_client_are_valid_sales_of_the_agreed_size():
    bodies = bodies_of(tickets.requests(500, run="t", key="k", host="h"))
    sales = [decode_sale(body) for body in bodies]
    assert len({sale.external_id for sale in sales}) == 500
    assert all(len(body) in TICKET_BYTES for body in bodies)
    new = sum(body.count(b'"profile_id":"N') for body in bodies)
    assert 60 < new < 140


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk makes these tickets, and it is not installed here")
@pytest.mark.parametrize("scenario", ["sales", "sales-with-keys", "duplicates", "sales-batch"])
def test_the_tickets_of_wrk_are_valid_sales_of_the_agreed_size(scenario, tmp_path):
    (tmp_path / "keys").write_text(new_key() + "\n")
    with Recorder() as recorder:
        load = ["wrk", "-t1", "-c1", "-d1s", "-s", BENCH / "load" / "tickets.lua", recorder.url]
        subprocess.run(
            [*load, "--", scenario, "run", tmp_path / "keys", "1760000000"],
            check=True,
            capture_output=True,
            timeout=30,
        )
    bodies = recorder.bodies
    if scenario == "sales-batch":
        bodies = [json.dumps(item).encode() for body in bodies for item in json.loads(body)["items"]]
    sales = [decode_sale(body) for body in bodies]
    assert len(sales) > 20
    assert all(len(body) in TICKET_BYTES for body in bodies) or scenario == "sales-batch"
    different = {sale.external_id for sale in sales}
    assert len(different) == len(sales) or scenario == "duplicates"


def test_ratios_compare_rates_and_processor_time():
    rows = [
        row("pgbench", 1000.0, database_us=90.0, load_us=10.0),
        row(report.SALES, 600.0, app_us=100.0, database_us=90.0, load_us=10.0, memory_mib=100.0),
    ]
    report.add_ratios(rows)
    assert rows[1]["to_pgbench"] == pytest.approx(0.6)
    assert rows[1]["to_pgbench_by_cpu"] == pytest.approx(0.5)
    assert rows[1]["to_fastapi"] is None


def test_a_run_with_errors_has_no_rate_and_is_left_out_of_the_median():
    measured = [Measurement(rate, *[1.0] * 8, errors=errors) for rate, errors in ((9000.0, 5), (400.0, 0), (500.0, 0))]
    found = run._row(SCENARIOS[0], measured)
    assert (found["rate"], found["rates"], found["failed_runs"], found["errors"]) == (450.0, [400.0, 500.0], 1, 5)
    assert run._row(SCENARIOS[0], measured[:1])["rate"] == 0.0


def test_the_peer_is_the_fastest_of_its_set_ups():
    rows = [row("FastAPI, 1 worker", 50.0), row("FastAPI, 2 workers", 100.0), row(report.SALES, 800.0)]
    report.add_ratios(rows)
    assert rows[2]["to_fastapi"] == pytest.approx(8.0)


def test_a_ratio_is_the_median_of_those_of_the_repetitions():
    slow_minute = [row("pgbench", 1000.0, load_us=1.0), row(report.SALES, 700.0, app_us=1.0, memory_mib=100.0)]
    slow_minute[0]["rates"], slow_minute[1]["rates"] = [1000.0, 400.0, 2000.0], [800.0, 320.0, 700.0]
    report.add_ratios(slow_minute)
    assert slow_minute[1]["to_pgbench"] == pytest.approx(0.8)
    assert report.goals(slow_minute)[0][1] == pytest.approx(0.8)
    for change in ({"in_turns": "growth"}, {"failed_runs": 1, "rates": [800.0, 320.0]}):
        changed = [slow_minute[0], {**slow_minute[1], **change}]
        report.add_ratios(changed)
        assert changed[1]["to_pgbench"] == pytest.approx(0.7), "the ratio of the medians"


def test_processor_time_is_compared_in_pairs_too_and_what_is_in_turns_with_pgbench_in_turns():
    rows = [row("pgbench", 1.0, database_us=50.0), row(report.SALES, 1.0, app_us=200.0)]
    rows += [row(report.in_turns("pgbench"), 1.0), row(report.in_turns(report.SALES), 1.0)]
    rows[2] |= {"cpu_us": [100.0, 300.0, 110.0], "rates": [1.0] * 3, "in_turns": "turns"}
    rows[3] |= {"cpu_us": [110.0, 310.0, 400.0], "rates": [1.0] * 3, "in_turns": "turns"}
    report.add_ratios(rows)
    assert [one["to_pgbench_by_cpu"] for one in rows] == pytest.approx([1.0, 0.25, 1.0, 100 / 110])
    assert report.goals(rows)[-1][1:] == (pytest.approx(100 / 110), 1.1)


def test_goals_speak_of_what_is_measured_and_compared_in_order():
    growth = {grown_scenario("regulars", None, label).name for label in ("0", "1 M", "10 M")}
    compared = {name for goal in report.GOALS for name in goal[:2]} - {report.PEER, report.in_turns(report.PEER)}
    # A lone sale is measured beside another commit, and the peers are whichever is the faster.
    others = {scenario.name for scenario in close_scenarios()} - set(map(report.in_turns, (report.LONE, *report.PEERS)))
    assert compared | set(report.PEERS) == (set(report.IN_ORDER) - {report.BATCH}) | growth | others
    assert set(report.IN_ORDER) <= {scenario.name for scenario in SCENARIOS}
    assert [scenario.name for scenario in run._in_order(SCENARIOS)][: len(report.IN_ORDER)] == list(report.IN_ORDER)


def test_goals_are_reported_only_where_both_sides_were_measured():
    rows = [row("pgbench", 1000.0), row(report.SALES, 400.0, memory_mib=100.0)]
    assert [(round(ratio, 2), least) for _, ratio, least in report.goals(rows)] == [(0.4, 0.5), (2.0, 1.0)]


def attribution_times(*, lift_cpu_s=2.9, share=0.02, p99_ms=19.0, page_ms=99.0):
    sale_us = dict.fromkeys(RATES, 100.0)
    return attribution.AttributionTimes(
        customers=1,
        sales=1,
        lift_cpu_s=[lift_cpu_s, lift_cpu_s, 9.0],
        redirects=Redirects(1000.0, 1.0, p99_ms, p99_ms, errors=0, processor_us=1.0, requests=9, clicks=9),
        pages=AttributionPages(rows=1, lifts=1, pages=[PageTime("overview", page_ms, page_ms, 1.0, 1)]),
        credits=CreditTimes(recording_us=sale_us, untexted_us={it: share * sale_us[it] for it in RATES}),
    )


@pytest.mark.parametrize("missed", [{"lift_cpu_s": 3.1}, {"share": 0.04}, {"p99_ms": 21.0}, {"page_ms": 101.0}])
def test_each_missed_bar_of_attribution_fails_the_run(missed):
    assert run.BARS["attribution"](attribution_times())
    assert not run.BARS["attribution"](attribution_times(**missed))


def test_new_results_take_the_place_of_the_old_ones_in_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"above\n{report.RESULTS_BEGIN}\nold\n{report.RESULTS_END}\nbelow\n")
    report.document(page, "new\n")
    assert page.read_text() == f"above\n{report.RESULTS_BEGIN}\nnew\n{report.RESULTS_END}\nbelow\n"


class Recorder:
    """A server that answers every request of one connection after another, and keeps the bodies."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.2)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            with connection, connection.makefile("rb") as reader:
                while length := self._length(reader):
                    self.bodies.append(reader.read(length))
                    connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")

    def _length(self, reader) -> int:
        length = 0
        try:
            while (line := reader.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
        except ConnectionResetError:
            return 0
        return length
