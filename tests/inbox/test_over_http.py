"""What the API's answers owe to texts: a withdrawal waits for what is on its way, and a possible stop holds back."""

import threading

import httpx
import psycopg
import pytest
from tests.support.server import running_server
from tests.support.tenant import new_tenant
from tests.support.texts import put_text_on_its_way
from tests.texts.desk import Desk

NUMBER = "+33612345678"


def post(server, tenant, path, body, *, key=None):
    headers = {"x-api-key": tenant.key}
    if key is not None:
        headers["idempotency-key"] = key
    answer = httpx.post(f"{server.url}{path}", json=body, headers=headers, timeout=30)
    return answer.status_code, answer.json()


def opt_in(server, tenant):
    body = {"phone_number": NUMBER, "consent_source": "WEBSITE", "consented_at": "2026-01-01T00:00:00Z"}
    assert post(server, tenant, "/v1/subscriptions/opt-in", body)[0] == 201


def test_a_withdrawal_is_answered_when_nothing_is_on_its_way_also_when_it_is_replayed(server, api_database_url):
    tenant = new_tenant(api_database_url)
    opt_in(server, tenant)
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        put_text_on_its_way(connection, tenant.organization_id)
        for _ in range(2):
            connection.execute(
                "UPDATE texts SET state = 'sending' WHERE organization_id = %s", (tenant.organization_id,)
            )
            answered = threading.Event()

            def withdraw(answered=answered):
                post(server, tenant, "/v1/subscriptions/opt-out", {"phone_number": NUMBER}, key="withdraw-once")
                answered.set()

            asking = threading.Thread(target=withdraw)
            asking.start()
            # It is committed at once, and the answer still waits.
            while connection.execute(
                "SELECT 1 FROM subscriptions WHERE organization_id = %s AND status = 'SUBSCRIBED'",
                (tenant.organization_id,),
            ).fetchone():
                pass
            assert not answered.wait(0.5)
            connection.execute("UPDATE texts SET state = 'sent' WHERE organization_id = %s", (tenant.organization_id,))
            assert answered.wait(60)
            asking.join()


@pytest.mark.parametrize("is_lapsed", [False, True])
def test_a_withdrawal_waits_for_no_other_number_and_for_no_dead_sender(server, api_database_url, is_lapsed):
    """The log says so when something was still on its way at the end of the wait."""
    tenant = new_tenant(api_database_url)
    opt_in(server, tenant)
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        put_text_on_its_way(connection, tenant.organization_id)
        connection.execute(
            "UPDATE subscriptions SET status = 'UNSUBSCRIBED' WHERE organization_id = %s", (tenant.organization_id,)
        )
        if is_lapsed:
            connection.execute(
                "UPDATE texts SET due_at = now() - interval '1 second' WHERE organization_id = %s",
                (tenant.organization_id,),
            )
    number = NUMBER if is_lapsed else "+33612345679"
    assert post(server, tenant, "/v1/subscriptions/opt-out", {"phone_number": number})[0] == 200
    not_quiet = [line for line in server.log().splitlines() if "texts.not_quiet" in line]
    assert [line for line in not_quiet if str(tenant.organization_id) in line] == []


def test_a_withdrawal_is_answered_in_time_and_truly_also_by_a_server_that_stops(api_database_url):
    """A text is on its way for ever. The answer has three seconds; a server that stops has one."""
    tenant = new_tenant(api_database_url)
    headers = {"x-api-key": tenant.key}
    limits = {"regulars.http.in_flight.REQUEST_S": 3.0}
    with running_server(api_database_url, constants=limits, shutdown_grace_s="2") as server:
        opt_in(server, tenant)
        assert post(server, tenant, "/v1/profiles", {"external_id": "ann", "phone_number": NUMBER})[0] == 201
        with psycopg.connect(api_database_url, autocommit=True) as connection:
            put_text_on_its_way(connection, tenant.organization_id)
            answer = httpx.post(
                f"{server.url}/v1/subscriptions/opt-out", json={"phone_number": NUMBER}, headers=headers, timeout=60
            )
            assert answer.status_code == 200
            given: dict[str, httpx.Response] = {}

            def erase() -> None:
                given["erase"] = httpx.delete(f"{server.url}/v1/profiles/ann", headers=headers, timeout=30)

            def withdraw() -> None:
                body = {"phone_number": NUMBER}
                given["withdraw"] = httpx.post(
                    f"{server.url}/v1/subscriptions/opt-out", json=body, headers=headers, timeout=30
                )

            asking = []
            for ask, committed in (
                (erase, "SELECT NOT EXISTS (SELECT FROM profiles WHERE organization_id = %s)"),
                (withdraw, "SELECT count(*) = 4 FROM consent_ledger WHERE organization_id = %s"),
            ):
                asking.append(threading.Thread(target=ask))
                asking[-1].start()
                while connection.execute(committed, (tenant.organization_id,)).fetchone() != (True,):
                    assert ask.__name__ not in given, given
        server.stop()
        for thread in asking:
            thread.join()
        assert (given["erase"].status_code, given["erase"].content) == (204, b"")
        assert given["withdraw"].status_code == 200, given["withdraw"].text
        assert given["withdraw"].json()["outcome"] == "already_unsubscribed"


def test_an_unread_possible_stop_means_that_the_number_may_not_be_texted(desk: Desk):
    desk.subscribe()
    desk.reply("remove me please")
    assert desk.may_text() == (False, "SUPPRESSED")
    desk.reply("STOP")
    assert desk.may_text() == (False, "UNSUBSCRIBED")
