import os
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from regulars.kit.metrics import Gauge, Metrics


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def test_requests_are_counted_by_route_and_status():
    metrics = Metrics()
    route = metrics.route("POST /v1/stores")
    for status in (201, 201, 400):
        route.observe(status, 0.004)
    found = samples(metrics)
    assert found["regulars_requests_total", "route=POST /v1/stores", "status=201", "worker=0"] == 2
    assert found["regulars_requests_total", "route=POST /v1/stores", "status=400", "worker=0"] == 1


@pytest.mark.parametrize(("seconds", "bucket"), [(0.001, "0.001"), (0.0011, "0.0025"), (10.0, "10.0"), (11.0, "+Inf")])
def test_a_latency_falls_into_the_first_bucket_that_holds_it(seconds, bucket):
    metrics = Metrics()
    metrics.route("GET /x").observe(200, seconds)
    buckets = {
        sample.labels["le"]: sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
        if sample.name == "regulars_request_seconds_bucket"
    }
    order = list(buckets)
    assert [name for name in order if buckets[name] == 1.0] == order[order.index(bucket) :]


def test_the_sum_of_latencies_is_recorded():
    metrics = Metrics()
    route = metrics.route("GET /x")
    route.observe(200, 0.25)
    route.observe(200, 0.5)
    assert samples(metrics)["regulars_request_seconds_sum", "route=GET /x", "worker=0"] == 0.75
    assert samples(metrics)["regulars_request_seconds_count", "route=GET /x", "worker=0"] == 2


def test_batch_sizes_and_gauges_are_shown():
    metrics = Metrics()
    metrics.batch_sizes("sales").observe(7)
    depth = {"sales": 3.0}
    metrics.add_gauge(Gauge("regulars_queue_items", "Items waiting.", "queue", lambda: depth))
    found = samples(metrics)
    assert found["regulars_batch_items_sum", "queue=sales", "worker=0"] == 7
    assert found["regulars_queue_items", "queue=sales", "worker=0"] == 3
    depth["sales"] = 4.0
    assert samples(metrics)["regulars_queue_items", "queue=sales", "worker=0"] == 4


def test_a_gauge_without_a_label_has_one_value():
    metrics = Metrics()
    metrics.add_gauge(Gauge("regulars_waiting", "Items waiting.", "", lambda: {"": 5.0}))
    assert samples(metrics)["regulars_waiting", "worker=0"] == 5


def test_one_process_shows_the_numbers_of_its_siblings(tmp_path):
    first, second = Metrics(), Metrics()
    first.publish_to(tmp_path, process_name="0")
    second.publish_to(tmp_path, process_name="1")
    first.route("GET /x").observe(200, 0.1)
    second.route("GET /x").observe(200, 0.1)
    second.route("GET /x").observe(200, 0.1)
    first.publish()
    second.publish()
    for asked in (first, second):
        found = samples(asked)
        assert found["regulars_requests_total", "route=GET /x", "status=200", "worker=0"] == 1
        assert found["regulars_requests_total", "route=GET /x", "status=200", "worker=1"] == 2


def test_a_sibling_that_is_gone_is_forgotten(tmp_path):
    first, second = Metrics(), Metrics()
    first.publish_to(tmp_path, process_name="0")
    second.publish_to(tmp_path, process_name="1")
    second.route("GET /x").observe(200, 0.1)
    second.publish()
    long_ago = time.time() - 60
    os.utime(tmp_path / "1.json", (long_ago, long_ago))
    assert b'worker="1"' not in first.render()


def test_a_damaged_file_does_not_break_the_page(tmp_path):
    metrics = Metrics()
    metrics.publish_to(tmp_path, process_name="0")
    (tmp_path / "1.json").write_text("{")
    metrics.route("GET /x").observe(200, 0.1)
    assert b"regulars_requests_total" in metrics.render()
