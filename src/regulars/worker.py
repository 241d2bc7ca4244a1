"""Composition root of the worker: which listeners handle which facts (recorded events), and all its queues."""

import asyncio
import contextlib
from datetime import timedelta
from functools import partial
from typing import Final

import psycopg
import uvloop

from regulars.accounts.audit.log import sweep_addresses
from regulars.attribution.holdout_sources import schedule_months, schedule_quarters
from regulars.attribution.jobs import CustomerQueue, RecomputeQueue
from regulars.attribution.jobs import handle_clicks as credit_clicks
from regulars.attribution.jobs import handle_messages as credit_texts
from regulars.attribution.jobs import handle_sales as credit_sales
from regulars.attribution.lift_queue import LiftQueue, schedule_campaigns
from regulars.attribution.sent_texts import count_sent_texts
from regulars.campaigns.exact_cost import CostQueue
from regulars.campaigns.facts import CampaignEnded
from regulars.campaigns.retention import delete_old_recipients
from regulars.campaigns.run.outcomes import handle_messages as count_campaign_texts
from regulars.campaigns.run.queue import CampaignQueue
from regulars.campaigns.run.start import StartQueue
from regulars.catalog.counts.counting import CountQueue
from regulars.catalog.model import Catalog
from regulars.columns.client import Analysis
from regulars.columns.feed import fact_handlers as columns
from regulars.columns.feed.build import ColumnsBuild
from regulars.columns.model import SALES_LISTENER as SEGMENT_SALES
from regulars.consent.facts import SubscriptionsChanged
from regulars.consent.figures import ConsentFiguresQueue
from regulars.demo.requests import DemoQueue
from regulars.experiments.facts import HoldoutMonthBegun, HoldoutQuarterChanged
from regulars.experiments.holdout.draw import HoldoutDraws
from regulars.experiments.journey_holdouts import delete_old_holdout_passes
from regulars.idempotency.model import RETENTION as IDEMPOTENCY_RETENTION
from regulars.idempotency.records import sweep as sweep_idempotency_keys
from regulars.inbox.decide import OverdueReplies
from regulars.inbox.deduplication import HASH_RETENTION, sweep_hashes
from regulars.inbox.poll import InboundPolls
from regulars.inbox.retention import delete_old_replies
from regulars.journeys.backtest.requests import BacktestQueue
from regulars.journeys.retention import RETENTION as RUN_RETENTION
from regulars.journeys.retention import delete_old_runs
from regulars.journeys.runs.enter import enter_by_consents, enter_by_sales
from regulars.journeys.runs.fact_handlers import handle_consents, handle_messages, handle_sales
from regulars.journeys.runs.lifecycle import release_runs
from regulars.journeys.runs.queue import RunQueue
from regulars.kit import vault
from regulars.kit.clock import monotonic
from regulars.kit.db import Database
from regulars.kit.metrics import PROCESS_METRICS, PUBLISH_INTERVAL_S
from regulars.kit.process import on_parent_exit, on_stop_signals, reduce_garbage_collection, send_ready
from regulars.kit.public_address import PublicAddress
from regulars.kit.releases import OutdatedReleaseError, ProcessRole, find_refusal
from regulars.kit.settings import Settings
from regulars.kit.ssrf import AddressPolicy
from regulars.links.facts import LinkClicked
from regulars.links.retention import RETENTION as TEXT_RETENTION
from regulars.links.retention import TRACE_RETENTION, sweep_click_traces, sweep_clicks
from regulars.organizations.facts import TimeZoneChanged
from regulars.organizations.public_address import follow_address, load_address
from regulars.privacy.facts import ProfileErased, StoredResponsesRemain
from regulars.privacy.jobs import anonymise_stragglers, continue_erasing_responses
from regulars.profiles.attribute_values import AttributeValues
from regulars.profiles.facts import ProfilesChanged
from regulars.request_log.entries import sweep as sweep_request_log
from regulars.request_log.model import RETENTION as REQUEST_LOG_RETENTION
from regulars.sales.blocks.build import BlockBuilds
from regulars.sales.facts import SalesRecorded
from regulars.sales.jobs import count_new_sales, recount_in_time_zone, register_new_product_keys
from regulars.sales.property_values import PropertyValues
from regulars.sales.totals.fill import SALE_AGE_MIN, TotalsFill
from regulars.segments.saved.manage import UNNEEDED_AFTER, delete_unneeded_columns
from regulars.segments.saved.sizes import SizeQueue
from regulars.texts.answer_authors import rewrite_steps
from regulars.texts.facts import MessagesChanged
from regulars.texts.providers.gateways import Gateways, open_gateways
from regulars.texts.retention import delete_old_texts
from regulars.texts.send import TextQueue
from regulars.texts.stops import ResumeQueue
from regulars.webhooks.delivery.metrics import DeliveryMetrics
from regulars.webhooks.delivery.queue import DeliveryQueue, ProbeQueue
from regulars.webhooks.delivery.send import Sender
from regulars.webhooks.jobs import (
    post_message_events,
    post_profile_events,
    post_sales_events,
    post_subscription_events,
)
from regulars.webhooks.model import RETENTION as WEBHOOK_RETENTION
from regulars.webhooks.personal import sweep_old_messages as sweep_webhooks
from regulars.work.facts import Listeners
from regulars.work.loop import run_worker
from regulars.work.outbox import OutboxQueue
from regulars.work.queue import Due, Queue, RowSweep, Sweep
from regulars.work.retries import RetryQueue

# A worker stops at most this long after a newer release has migrated the database and excluded it.
CHECK_RELEASE_S: Final = 2.0

# The name of a listener never changes: if it fails on a fact, the retry is stored under that name.
LISTENERS: Final[Listeners] = {
    SalesRecorded: {
        "catalog.product_keys": register_new_product_keys,
        "sales.hourly_totals": count_new_sales,
        # Called before the listeners that lock runs of journeys, as an erasure locks too, so that there is no deadlock.
        "attribution.sales": credit_sales,
        # Open runs of journeys handle a sale before it starts new runs, so that it does not end a run that it starts.
        "journeys.hear_sales": handle_sales,
        "journeys.enter_by_sales": enter_by_sales,
        "webhooks.sales": post_sales_events,
        SEGMENT_SALES: columns.on_sales_recorded,
    },
    TimeZoneChanged: {"sales.daily_totals": recount_in_time_zone},
    ProfileErased: {"privacy.stragglers": anonymise_stragglers},
    StoredResponsesRemain: {"privacy.answers": continue_erasing_responses},
    ProfilesChanged: {"webhooks.profiles": post_profile_events, "segments.profiles": columns.on_profiles_changed},
    SubscriptionsChanged: {
        "webhooks.subscriptions": post_subscription_events,
        "journeys.hear_consents": handle_consents,
        "journeys.enter_by_consents": enter_by_consents,
        "segments.consents": columns.on_subscriptions_changed,
    },
    LinkClicked: {"attribution.clicks": credit_clicks},
    MessagesChanged: {
        "attribution.texts": credit_texts,
        "journeys.hear_messages": handle_messages,
        "campaigns.texts": count_campaign_texts,
        "attribution.sent_texts": count_sent_texts,
        "webhooks.messages": post_message_events,
        "segments.messages": columns.on_messages_changed,
    },
    CampaignEnded: {"attribution.lift": schedule_campaigns},
    HoldoutMonthBegun: {"attribution.lift_of_months": schedule_months},
    HoldoutQuarterChanged: {"attribution.lift_of_quarters": schedule_quarters},
}

# Listeners that update the columnar data from which segments are counted. They lock its state until the commit, so they
# run last.
RUN_LAST: Final = frozenset(name for names in LISTENERS.values() for name in names if name.startswith("segments."))

# Tables whose rows are deleted after a retention time, and the column from which it counts.
IDEMPOTENCY_KEYS: Final = Due(table="idempotency_keys", column="created_at", delay=IDEMPOTENCY_RETENTION)
TEXTS: Final = Due(table="texts", column="created_at", delay=TEXT_RETENTION)
# Answers to customers that a server of an earlier release stored.
NAMED_AUTHORS: Final = Due(
    table="texts", column="created_at", condition="origin_kind = 'answer' AND strpos(step, ' ') > 0"
)
CAMPAIGN_RECIPIENTS: Final = Due(table="campaign_recipients", column="created_at", delay=TEXT_RETENTION)
CLICKS: Final = Due(table="clicks", column="minute", delay=TEXT_RETENTION)
CLICK_TRACES: Final = Due(table="clicks", column="traced_at", delay=TRACE_RETENTION)
PERSONAL_LINKS: Final = Due(table="links", column="personal_since", delay=TEXT_RETENTION)
REPLIES: Final = Due(table="replies", column="received_at", delay=TEXT_RETENTION)
ERASED_REPLIES: Final = Due(table="erased_replies", column="erased_at", delay=HASH_RETENTION)
RUNS: Final = Due(table="journey_runs", column="ended_at", delay=RUN_RETENTION)
JOURNEY_HOLDOUTS: Final = Due(table="journey_holdouts", column="passed_at", delay=RUN_RETENTION)
REQUEST_LOG: Final = Due(table="request_log", column="answered_at", delay=REQUEST_LOG_RETENTION)
WEBHOOK_MESSAGES: Final = Due(table="webhook_messages", column="created_at", delay=WEBHOOK_RETENTION)
# `fenced_at` is when the build of the columnar data of segments began.
SEGMENT_COLUMNS: Final = Due(table="segment_columns", column="fenced_at", delay=UNNEEDED_AFTER)
REQUEST_COUNTS: Final = Due(table="request_counts", column="hour", delay=REQUEST_LOG_RETENTION)


def queues(settings: Settings, gateways: Gateways) -> list[Queue]:
    """Return all queues of a worker, as new objects."""
    sender = Sender(AddressPolicy(settings.webhook_allow))
    deliveries = DeliveryQueue(sender, vault.of(settings), DeliveryMetrics(PROCESS_METRICS))
    return [
        OutboxQueue(LISTENERS, last=RUN_LAST),
        RetryQueue(LISTENERS),
        TextQueue(gateways.providers),
        HoldoutDraws(),
        RunQueue(),
        ResumeQueue(release_runs),
        BacktestQueue(),
        RowSweep("journeys.sweep", RUNS, delete_old_runs),
        RowSweep("journeys.sweep_holdouts", JOURNEY_HOLDOUTS, delete_old_holdout_passes),
        StartQueue(Analysis(settings)),
        CampaignQueue(),
        CostQueue(Analysis(settings), gateways.database),
        RowSweep("campaigns.sweep", CAMPAIGN_RECIPIENTS, delete_old_recipients),
        CustomerQueue(),
        RecomputeQueue(),
        LiftQueue(Analysis(settings), gateways.database),
        InboundPolls(gateways.twilio, gateways.database),
        OverdueReplies(),
        RowSweep("texts.sweep", TEXTS, delete_old_texts),
        RowSweep("texts.sweep_authors", NAMED_AUTHORS, rewrite_steps, poll_every_s=60),
        Sweep("clicks.sweep", CLICKS, sweep_clicks, poll_every_s=3600),
        Sweep("clicks.sweep_traces", CLICK_TRACES, sweep_click_traces, poll_every_s=600),
        Sweep("links.sweep", PERSONAL_LINKS, sweep_clicks, poll_every_s=3600),
        RowSweep("replies.sweep", REPLIES, delete_old_replies),
        Sweep("replies.sweep_hashes", ERASED_REPLIES, sweep_hashes, poll_every_s=3600),
        CountQueue({Catalog.ATTRIBUTES: AttributeValues(), Catalog.PRODUCTS: PropertyValues(age_min=SALE_AGE_MIN)}),
        TotalsFill(),
        BlockBuilds(),
        ColumnsBuild(),
        Sweep("segments.unneeded", SEGMENT_COLUMNS, delete_unneeded_columns, poll_every_s=3600),
        SizeQueue(Analysis(settings)),
        ConsentFiguresQueue(),
        deliveries,
        ProbeQueue(deliveries),
        Sweep("webhooks.sweep", WEBHOOK_MESSAGES, sweep_webhooks, poll_every_s=3600),
        DemoQueue(vault.of(settings)),
        Sweep("idempotency.sweep", IDEMPOTENCY_KEYS, sweep_idempotency_keys, poll_every_s=300),
        Sweep("request_log.sweep", REQUEST_LOG, sweep_request_log, poll_every_s=3600),
        Sweep("request_log.sweep_counts", REQUEST_COUNTS, sweep_request_log, poll_every_s=3600),
        _audit_sweep(timedelta(days=settings.audit_address_days)),
    ]


def _audit_sweep(retention: timedelta) -> Sweep:
    due = Due(table="audit_log", column="address_since", delay=retention)
    return Sweep("audit.sweep_addresses", due, partial(sweep_addresses, retention=retention), poll_every_s=3600)


def run(settings: Settings, url: str, *, lifeline: int | None = None, ready: int | None = None) -> None:
    """Work until SIGTERM or SIGINT, or until the parent exits, which closes `lifeline`; needs a migrated database. The
    parent reads from the other end of `ready` that the worker has started."""
    reduce_garbage_collection()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings, url, lifeline=lifeline, ready=ready))


async def _run(settings: Settings, url: str, *, lifeline: int | None, ready: int | None) -> None:
    stop = asyncio.Event()
    on_stop_signals(stop.set)
    if lifeline is not None:
        on_parent_exit(lifeline, stop.set)
    database = Database(
        url,
        pool_max=settings.database_pool_max,
        statement_timeout_ms=settings.statement_timeout_ms,
        lock_timeout_ms=settings.lock_timeout_ms,
    )
    await database.open()
    address = PublicAddress(settings.public_url)
    await load_address(database, address)
    gateways = open_gateways(database, vault=vault.of(settings), twilio_url=settings.twilio_url, address=address)
    following = asyncio.create_task(follow_address(database, address))
    publishing = asyncio.create_task(_publish_metrics())
    checking = asyncio.create_task(_stop_when_outdated(database, stop))
    try:
        await run_worker(
            database,
            queues(settings, gateways),
            stop=stop,
            grace_s=settings.shutdown_grace_s,
            on_started=partial(send_ready, ready),
        )
    finally:
        following.cancel()
        publishing.cancel()
        checking.cancel()
        await gateways.twilio.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(database.close(), settings.shutdown_grace_s)
    if checking.done() and not checking.cancelled():
        raise OutdatedReleaseError(checking.result())


async def _stop_when_outdated(database: Database, stop: asyncio.Event) -> str:
    """Stop when a newer release has migrated the database and excludes this worker; returns the reason."""
    while True:
        await asyncio.sleep(CHECK_RELEASE_S)
        with contextlib.suppress(psycopg.Error):
            reason = await find_refusal(database, ProcessRole.WORKER, until=monotonic() + CHECK_RELEASE_S)
            if reason is not None:
                stop.set()
                return reason


async def _publish_metrics() -> None:
    while True:
        PROCESS_METRICS.publish()
        await asyncio.sleep(PUBLISH_INTERVAL_S)
