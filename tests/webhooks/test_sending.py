"""One attempt at a time: signatures, and what each way of failing leads to."""

from datetime import UTC, datetime, timedelta

import pytest

from regulars.kit.ssrf import AddressPolicy
from regulars.webhooks import events, find, manage
from regulars.webhooks.delivery import send as sending
from regulars.webhooks.delivery.schedule import RETRIES
from regulars.webhooks.delivery.send import RESPONSE_STORED_BYTES

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


async def only(shop):
    (delivery,) = await shop.deliveries()
    return await shop.do(find.find_details, delivery.id)


async def test_a_delivery_is_signed_as_standard_webhooks_asks(shop, receiver):
    created = await shop.create(receiver.url)
    await shop.upsert("a", first_name="Zoë")
    await shop.deliver()
    (one,) = receiver.received
    assert one.verify(created.secret)["data"]["first_name"] == "Zoë"
    assert one.id.startswith("msg_")
    assert one.headers["content-type"] == "application/json"
    details = await only(shop)
    assert (details.delivery.state, details.delivery.attempts, details.delivery.answer_status) == ("delivered", 1, 204)
    assert details.attempts == []
    assert details.body.encode() == one.body


async def test_after_a_rotation_both_secrets_sign_for_a_day_and_a_second_one_drops_the_oldest(shop, receiver):
    first = await shop.create(receiver.url)
    second = await shop.do(manage.rotate_secret, first.endpoint.id, vault=shop.vault)
    await shop.do(events.ping, first.endpoint.id)
    await shop.send()
    assert receiver.received[-1].verify(first.secret)
    assert receiver.received[-1].verify(second.secret)
    third = await shop.do(manage.rotate_secret, first.endpoint.id, vault=shop.vault)
    await shop.do(events.ping, first.endpoint.id)
    await shop.send()
    assert receiver.received[-1].verify(second.secret)
    assert receiver.received[-1].verify(third.secret)
    with pytest.raises(Exception, match="matching signature"):
        receiver.received[-1].verify(first.secret)
    await shop.later(hours=24)
    await shop.do(events.ping, first.endpoint.id)
    await shop.send()
    with pytest.raises(Exception, match="matching signature"):
        receiver.received[-1].verify(second.secret)
    revealed = await shop.do(manage.reveal_secrets, first.endpoint.id, vault=shop.vault)
    assert revealed[0] == third.secret


async def test_a_ping_reaches_the_endpoint_whatever_it_takes(shop, receiver):
    created = await shop.create(receiver.url, "profile.deleted")
    await shop.do(events.ping, created.endpoint.id)
    await shop.send()
    assert receiver.received[0].event["type"] == "webhook.ping"
    assert receiver.received[0].event["data"]["webhook"].startswith("wh_")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 5\r\n\r\nno!!!", "The response was 500."),
        (b"HTTP/1.1 301 Moved\r\nlocation: https://elsewhere.example/\r\ncontent-length: 0\r\n\r\n", "A redirect"),
        (b"220 mail.example ESMTP\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort", "not HTTP"),
        (b"", "closed the connection"),
    ],
)
async def test_only_an_answer_of_2xx_is_a_success(shop, receiver, answer, said):
    async def misbehave(reader, writer):
        writer.write(answer)
        await writer.drain()

    receiver.misbehave = misbehave
    await shop.deliver_to(receiver.url)
    details = await only(shop)
    assert details.delivery.state == "pending"
    assert said in details.attempts[0].error
    wait = details.delivery.due_at - details.delivery.attempted_at
    assert timedelta(seconds=5) <= wait <= timedelta(seconds=5.5)


async def test_a_reset_connection_is_a_failure(shop, receiver):
    async def misbehave(reader, writer):
        writer.transport.abort()

    receiver.misbehave = misbehave
    await shop.deliver_to(receiver.url)
    assert "closed the connection" in (await only(shop)).attempts[0].error


async def test_a_receiver_that_is_down_is_a_failure(shop, receiver):
    await receiver.close()
    await shop.deliver_to(receiver.url)
    assert "The connection failed" in (await only(shop)).attempts[0].error


async def test_a_slow_receiver_times_out_and_gets_one_at_a_time_from_then_on(shop, receiver, monkeypatch):
    created = await shop.create(receiver.url)
    await shop.do(events.ping, created.endpoint.id)
    await shop.send()
    monkeypatch.setattr(sending, "TIMEOUT_S", 0.3)
    receiver.delay_s = 3600
    for number in range(10):
        await shop.upsert(f"c{number}")
    await shop.run_listeners()
    await shop.send()
    first = len(receiver.received)
    assert receiver.most_at_once <= 8
    assert (await shop.endpoint(created)).health.is_slow
    receiver.most_at_once = receiver.at_once
    before = receiver.at_once
    await shop.later(minutes=1)
    await shop.send()
    assert len(receiver.received) > first
    assert receiver.most_at_once - before <= 1


async def test_an_answer_without_end_is_cut(shop, receiver):
    async def misbehave(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(10_000):
            writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            await writer.drain()

    receiver.misbehave = misbehave
    await shop.deliver_to(receiver.url)
    assert (await only(shop)).delivery.state == "delivered"


async def test_the_beginning_of_a_bad_answer_is_stored_for_people(shop, receiver):
    receiver.answer = b"HTTP/1.1 500 Oops\r\ncontent-length: 5000\r\n\r\n" + b"\0" + b"x" * 4999
    await shop.deliver_to(receiver.url)
    answer = (await only(shop)).attempts[0].answer
    assert len(answer) == RESPONSE_STORED_BYTES
    assert answer.startswith("�xxx")


async def test_a_410_disables_the_endpoint_and_nothing_more_is_sent(shop, receiver):
    receiver.answer = b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n"
    created = await shop.deliver_to(receiver.url)
    endpoint = await shop.endpoint(created)
    assert (endpoint.state, endpoint.disabled_by) == ("disabled", "receiver")
    await shop.upsert("b")
    await shop.later(days=1)
    await shop.deliver()
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    ("header", "at_least", "at_most"),
    [
        ("120", timedelta(seconds=120), timedelta(seconds=121)),
        ("1", timedelta(seconds=5), timedelta(seconds=5.6)),
        ("999999999", timedelta(hours=24), timedelta(hours=24, seconds=1)),
        ("nonsense", timedelta(seconds=5), timedelta(seconds=5.6)),
    ],
)
async def test_a_receiver_may_ask_for_a_later_attempt(shop, receiver, header, at_least, at_most):
    receiver.answer = b"HTTP/1.1 429 Slow\r\nretry-after: " + header.encode() + b"\r\ncontent-length: 0\r\n\r\n"
    await shop.deliver_to(receiver.url)
    delivery = (await only(shop)).delivery
    assert at_least <= delivery.due_at - delivery.attempted_at <= at_most


async def test_an_address_that_is_not_public_is_not_dialled(shop, receiver):
    await shop.create(receiver.url)
    await shop.create(f"http://localhost:{receiver.port}/named")
    await shop.upsert("a")
    await shop.run_listeners()
    strict = shop.new_queue(AddressPolicy())
    await shop.send(strict)
    await strict.finish()
    assert receiver.received == []
    errors = [(await shop.do(find.find_details, one.id)).attempts[0].error for one in await shop.deliveries()]
    assert all("https" in error for error in errors)


async def test_a_name_that_resolves_to_a_private_address_is_not_dialled(shop, receiver, monkeypatch):
    def resolve(host, port, **_options):
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    await shop.create(f"https://shop.example:{receiver.port}/hook")
    await shop.upsert("a")
    await shop.run_listeners()
    monkeypatch.setattr("regulars.kit.ssrf.socket.getaddrinfo", resolve)
    strict = shop.new_queue(AddressPolicy())
    await shop.send(strict)
    await strict.finish()
    assert receiver.connections == 0
    assert "not on the public internet" in (await only(shop)).attempts[0].error


async def test_no_proxy_of_the_environment_is_used(shop, receiver, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    await shop.deliver_to(receiver.url)
    assert len(receiver.received) == 1


async def test_the_last_attempt_that_fails_ends_the_delivery(shop, receiver):
    receiver.answer = b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"
    await shop.deliver_to(receiver.url)
    for _ in RETRIES.waits_s:
        # Without the endpoint being given up, which comes sooner than the tenth attempt if days pass.
        async with shop.database.transaction() as tx:
            await tx.execute("UPDATE webhook_deliveries SET due_at = created_at")
        await shop.send()
    details = await only(shop)
    assert (details.delivery.state, details.delivery.attempts, len(details.attempts)) == ("failed", 10, 10)
    assert len({one.id for one in receiver.received}) == 1
