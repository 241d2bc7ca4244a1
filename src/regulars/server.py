"""Composition root of the server: the routes of every module, and the objects they need."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from typing import Any, Final
from uuid import UUID

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from regulars.accounts import users
from regulars.accounts.callbacks import AddressCheck
from regulars.accounts.pages import page_table as accounts
from regulars.accounts.sessions import SessionStore
from regulars.analytics.pages import routes as analytics
from regulars.attribution.pages import routes as attribution
from regulars.attribution.pages.credit_cards import text_card, ticket_card
from regulars.campaigns.attention import count_questions
from regulars.campaigns.manage import PATH as CAMPAIGNS_PATH
from regulars.campaigns.manage import describe_uses as describe_campaigns
from regulars.campaigns.manage import name_campaigns
from regulars.campaigns.model import KIND as CAMPAIGN_KIND
from regulars.campaigns.pages import routes as campaigns
from regulars.campaigns.segment_change import find_scheduled_users
from regulars.catalog import pages as catalog
from regulars.catalog.model import Catalog
from regulars.columns.client import Analysis
from regulars.consent import api as consent
from regulars.experiments.pages import holdout
from regulars.explore import pages
from regulars.explore.consents import pages as consents
from regulars.explore.customers import pages as customers
from regulars.explore.find import pages as search
from regulars.explore.home import pages as home
from regulars.explore.simulator import pages as simulator
from regulars.explore.stores import pages as store_pages
from regulars.first_run.pages import first_steps as first_run
from regulars.http import openapi
from regulars.http.application import Application
from regulars.http.body import BODY_TIMEOUTS, BodyTimeouts
from regulars.http.fast_requests import FastRequests
from regulars.http.in_flight import REQUEST_S
from regulars.http.json_api import JsonApi
from regulars.http.probes import Readiness, service_routes
from regulars.http.rate_limit import RateLimiter
from regulars.http.reads import Reads
from regulars.http.route import DocumentRoute, QueryRoute, Route, WriteRoute
from regulars.http.writes import Writes
from regulars.inbox.callbacks import Callbacks
from regulars.inbox.find import count_undecided
from regulars.inbox.pages import inbox, messages
from regulars.inbox.pages.links import ShortLinkPages
from regulars.integrate.pages import keys, reference, requests
from regulars.journeys import api as journeys_api
from regulars.journeys.manage import KIND as JOURNEY_KIND
from regulars.journeys.manage import describe_uses as describe_journeys
from regulars.journeys.manage import list_choices
from regulars.journeys.pages import routes as journeys
from regulars.journeys.pages.common import PATH as JOURNEYS_PATH
from regulars.journeys.runs.lists import find_journeys_of_runs, list_runs_of_sale
from regulars.journeys.segment_change import find_live_users
from regulars.journeys.stats import count_parked
from regulars.kit import failpoint, vault
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY, RUN, SEGMENT
from regulars.kit.json import encode
from regulars.kit.metrics import PROCESS_METRICS, Gauge
from regulars.kit.public_address import PublicAddress
from regulars.kit.settings import Settings
from regulars.kit.ssrf import AddressPolicy
from regulars.kit.writable import Writability
from regulars.links.origin_kind import OriginKind
from regulars.organizations.authenticate import Authenticator
from regulars.organizations.public_address import follow_address, load_address
from regulars.postgres import embedded
from regulars.privacy import api as privacy
from regulars.privacy import pages as privacy_pages
from regulars.privacy.erasure_log import ErasureLog
from regulars.profiles import api as profiles
from regulars.profiles.errors import ProfileNotFound, person_erased
from regulars.request_log.recorder import RequestLog
from regulars.sales import api as sales
from regulars.sales.collision_review import count_open_collisions
from regulars.sales.fast_path import FastRecorder
from regulars.sales.model import StoredSale
from regulars.sales.pages import collisions, tickets
from regulars.segments.pages import routes as segments
from regulars.segments.saved.uses import PATH as SEGMENTS_PATH
from regulars.segments.saved.uses import find_segments_by_key
from regulars.stores import api as stores
from regulars.texts.find import find_suppressed
from regulars.texts.in_flight import RESPONSE_S, wait_for_texts_in_flight
from regulars.texts.pages import rules, team_number, write_text
from regulars.texts.pages.message_view import MESSAGES
from regulars.texts.pages.settings import SettingsPages
from regulars.texts.settings.store import open_token
from regulars.texts.text_origins import OriginFinders, TextOrigin
from regulars.web import shortcuts, theme
from regulars.web.access import Action
from regulars.web.app import WebApp
from regulars.web.route import Page
from regulars.webhooks.event_reference import EVENTS
from regulars.webhooks.find import count_endpoints_needing_attention
from regulars.webhooks.pages.checker import CheckerPages
from regulars.webhooks.pages.deliveries import DeliveryPages
from regulars.webhooks.pages.endpoints import EndpointPages
from regulars.webhooks.pages.webhook_view import PATH as WEBHOOKS
from regulars.work.wake import Waker

REQUEST_MS: Final = int(REQUEST_S * 1000)
WAITING_COUNTED_MAX: Final = 100
# The functions that describe the journeys and campaigns which use a segment, by kind.
SEGMENT_USERS: Final = {JOURNEY_KIND: describe_journeys, CAMPAIGN_KIND: describe_campaigns}
# The functions that find the live and scheduled ones among them.
ACTIVE_SEGMENT_USERS: Final = {JOURNEY_KIND: find_live_users, CAMPAIGN_KIND: find_scheduled_users}
# Stands in the OpenAPI document for the address that the caller used.
ADDRESS_PLACEHOLDER: Final = "https://address.invalid"


def api_routes(settings: Settings, *, fast_database: Database | None = None) -> tuple[Route, ...]:
    """Return all routes under `/v1`. With a `fast_database`, sales are written there with a single statement."""
    tolerance = timedelta(seconds=settings.occurred_at_tolerance_s)
    recorder = None if fast_database is None else FastRecorder(fast_database, tolerance=tolerance)
    routes: tuple[Route, ...] = (
        *profiles.ROUTES,
        *privacy.routes(ErasureLog(settings.erasure_log_path)),
        *stores.ROUTES,
        *consent.ROUTES,
        *journeys_api.ROUTES,
        *sales.routes(tolerance=tolerance, recorder=recorder),
    )
    routes = tuple([_with_erasure_error(route) for route in routes])

    @cache
    def encoded_document() -> bytes:
        """Encode the OpenAPI document once; only the server's address differs between callers."""
        return encode(describe((*routes, document), server_url=ADDRESS_PLACEHOLDER))

    document = DocumentRoute(
        path="/v1/openapi.json",
        operation_id=openapi.DOCUMENT_OPERATION,
        tag="Description",
        summary="Read this description",
        responses={200: dict[str, Any]},
        render=lambda base_url: encoded_document().replace(encode(ADDRESS_PLACEHOLDER), encode(base_url)),
    )
    return (*routes, document)


def describe(routes: Sequence[Route], *, server_url: str) -> dict[str, Any]:
    """Return the OpenAPI document, with the payloads of webhooks."""
    return openapi.build(routes, server_url=server_url, events=EVENTS)


def with_sms_hooks(routes: Sequence[Route], database: Database) -> tuple[Route, ...]:
    """Make opt-outs and erasures wait for texts on their way, and checks of consent refuse after a possible STOP."""

    async def wait_until_sent(organization_id: UUID, number_hashes: Collection[bytes] | None, left_s: float) -> None:
        await wait_for_texts_in_flight(database, organization_id, number_hashes, within_s=left_s - RESPONSE_S)

    def add_hook(route: Route) -> Route:
        if isinstance(route, WriteRoute) and route.operation_id in {consent.OPT_OUT, privacy.ERASE}:
            return replace(route, before_response=wait_until_sent)
        if isinstance(route, QueryRoute) and route.operation_id == consent.CHECK:
            return replace(route, handle=partial(consent.handle_check, find_suppressed=find_suppressed))
        return route

    return tuple(add_hook(route) for route in routes)


def _with_erasure_error(route: Route) -> Route:
    """Add the error of a retried write whose stored response names a person who was erased since."""
    return replace(route, errors=(*route.errors, ProfileNotFound)) if isinstance(route, WriteRoute) else route


def page_table(settings: Settings, address: PublicAddress | None = None) -> tuple[Page, ...]:
    """Return every page and form of the web application; `address` is the one that this process follows."""
    secrets_vault, address = vault.of(settings), address or PublicAddress(settings.public_url)
    origins: OriginFinders = {OriginKind.JOURNEY: find_sending_journeys, OriginKind.CAMPAIGN: find_sending_campaigns}
    return (
        *theme.PAGES,
        *accounts.pages(secrets_vault, settings, address),
        *first_run.PAGES,
        *home.PAGES,
        *customers.pages(Analysis(settings), origins=origins),
        *write_text.PAGES,
        *team_number.PAGES,
        *privacy_pages.pages(ErasureLog(settings.erasure_log_path)),
        *consents.PAGES,
        *tickets.pages(list_started=find_started_journeys, attribution_card=ticket_card),
        *collisions.PAGES,
        *store_pages.PAGES,
        *journeys.PAGES,
        *campaigns.pages(Analysis(settings)),
        *messages.pages(origins=origins, attribution_card=text_card),
        *inbox.pages(origins=origins),
        *simulator.PAGES,
        *SettingsPages(secrets_vault, address=address).pages(),
        *rules.PAGES,
        *holdout.PAGES,
        *search.PAGES,
        *shortcuts.PAGES,
        *EndpointPages(secrets_vault, AddressPolicy(settings.webhook_allow)).pages(),
        *DeliveryPages(secrets_vault).pages(),
        *CheckerPages(secrets_vault).pages(),
        *segments.pages(
            Analysis(settings),
            describe_uses=SEGMENT_USERS,
            find_active_users=ACTIVE_SEGMENT_USERS,
            list_journeys=list_choices,
        ),
        *analytics.pages(Analysis(settings)),
        *attribution.PAGES,
        *catalog.pages(uses=[find_reading_segments]),
        *keys.PAGES,
        *requests.PAGES,
        *reference.pages(api_routes(settings)),
    )


async def find_started_journeys(tx: Tx, organization_id: UUID, sale: StoredSale) -> list[tickets.StartedJourney]:
    """Find the journeys that a ticket started."""
    runs = await list_runs_of_sale(tx, organization_id, sale.id)
    return [
        tickets.StartedJourney(name, (JOURNEYS_PATH, JOURNEY.encode(journey_id), "runs", RUN.encode(run_id)), state)
        for journey_id, name, run_id, state in runs
    ]


async def find_sending_journeys(tx: Tx, organization_id: UUID, runs: Collection[UUID]) -> dict[UUID, TextOrigin]:
    """Find the journeys that sent texts, by the runs of the texts."""
    journeys_by_run = await find_journeys_of_runs(tx, organization_id, runs)
    return {
        run_id: TextOrigin(name, (JOURNEYS_PATH, JOURNEY.encode(journey_id), "runs", RUN.encode(run_id)))
        for run_id, (journey_id, name) in journeys_by_run.items()
    }


async def find_sending_campaigns(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, TextOrigin]:
    """Find the campaigns that sent texts."""
    names = await name_campaigns(tx, organization_id, ids)
    return {
        campaign_id: TextOrigin(name, (CAMPAIGNS_PATH, CAMPAIGN.encode(campaign_id)))
        for campaign_id, name in names.items()
    }


async def find_reading_segments(tx: Tx, organization_id: UUID, searched: Catalog, key: str) -> list[catalog.KeyUse]:
    """Find the segments whose conditions read an attribute of customers or products."""
    rows = await find_segments_by_key(tx, organization_id, catalog=searched.value, key=key)
    return [
        catalog.KeyUse(f"Segment: {row.name}", f"{SEGMENTS_PATH}/{SEGMENT.encode(row.id)}", Action.READ_SEGMENTS)
        for row in rows
    ]


async def count_waiting_work(tx: Tx, organization_id: UUID) -> dict[str, int]:
    """Count the work that waits for a user, by entry of the navigation; counting stops at a hundred."""
    # Runs of journeys that failed after all retries, by journey.
    parked = await count_parked(tx, organization_id, limit=WAITING_COUNTED_MAX)
    return {
        # Tickets that were sent a second time with other content.
        collisions.PATH: await count_open_collisions(tx, organization_id, count_max=WAITING_COUNTED_MAX),
        JOURNEYS_PATH: sum(parked.values()),
        CAMPAIGNS_PATH: await count_questions(tx, organization_id, limit=WAITING_COUNTED_MAX),
        MESSAGES: await count_undecided(tx, organization_id, limit=WAITING_COUNTED_MAX),
        WEBHOOKS: await count_endpoints_needing_attention(tx, organization_id),
    }


def create_app(
    settings: Settings,
    *,
    shared: memoryview | None = None,
    body_timeouts: BodyTimeouts = BODY_TIMEOUTS,
    is_stopping: Callable[[], bool] = lambda: False,
    has_fast_protocol: bool = True,
    has_fast_recorder: bool = True,
) -> Application:
    """Return the ASGI application; its lifespan opens the database. In `shared` memory all processes count requests.
    Tests compare both fast paths with an application without them."""
    database, address = _make_database(settings), PublicAddress(settings.public_url)
    writability = Writability(database)
    waker = Waker(database)
    database.after_commit = waker.wake
    authenticator = Authenticator(database, default_country=settings.default_country)
    routes = with_sms_hooks(api_routes(settings, fast_database=database if has_fast_recorder else None), database)
    writes = Writes(database, routes, erased_error=person_erased(), describe_outage=writability.record_error)
    rate_limiter = RateLimiter(per_s=settings.rate_limit_per_s, burst=settings.rate_limit_burst, block=shared)
    request_log = RequestLog(database)
    links = ShortLinkPages(database, fallback_url=settings.link_fallback_url)
    reads = Reads(database, describe_outage=writability.record_error)
    api = JsonApi(
        routes,
        reads=reads,
        authenticate=authenticator.authenticate,
        rate_limiter=rate_limiter,
        writes=writes,
        record_response=request_log.record,
        describe_outage=writability.record_error,
        address=address,
        timeouts=body_timeouts,
    )

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await _open(database, waker, address)
        jobs = (authenticator.record_use_forever(), request_log.write_forever(), links.clicks.write_forever())
        tasks = [asyncio.create_task(coroutine) for coroutine in (*jobs, follow_address(database, address))]
        yield
        failpoint.hit("drain")
        for task in tasks:
            task.cancel()
        drain = writes.in_flight.coalescer.drain
        await _finish_in_grace(settings, drain, authenticator.record_use, request_log.write, links.clicks.write)
        await waker.close()
        await database.close()

    _register_gauges(writes, database)
    readiness = Readiness(
        database, writability=writability, oldest_write_s=writes.in_flight.oldest_s, is_stopping=is_stopping
    )
    has_users = partial(users.has_users_now, database)
    public = pages.page_routes(routes, readiness.explain, has_users=has_users, address=address)
    callbacks = _callback_routes(settings, database, address)
    service = _service([*service_routes(readiness), *callbacks, *links.routes(), *public], lifespan)
    fast_requests = FastRequests(
        routes,
        cached_caller=authenticator.cached,
        rate_limiter=rate_limiter,
        reads=reads,
        writes=writes,
        record_response=request_log.record,
        address=address,
        trusts_proxies=bool(settings.trusted_proxies),
    )
    web = _make_web(settings, database, address)
    return Application(api, web, service, fast_requests if has_fast_protocol else None)


def _make_web(settings: Settings, database: Database, address: PublicAddress) -> WebApp:
    return WebApp(
        page_table(settings, address),
        database=database,
        sessions=SessionStore(database),
        address=address,
        count_waiting=count_waiting_work,
    )


async def _open(database: Database, waker: Waker, address: PublicAddress) -> None:
    await database.open()
    await load_address(database, address)
    await waker.open()
    failpoint.hit("start")


async def _finish_in_grace(settings: Settings, *acts: Callable[[], Awaitable[object]]) -> None:
    with contextlib.suppress(TimeoutError, *CONNECTION_ERRORS):
        async with asyncio.timeout(settings.shutdown_grace_s):
            for act in acts:
                await act()


def _service(routes: list[BaseRoute], lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]]) -> Starlette:
    service = Starlette(routes=routes, exception_handlers=pages.ERROR_HANDLERS, lifespan=lifespan)
    # A redirect to the path without a slash would repeat the caller's Host header.
    service.router.redirect_slashes = False
    return service


def _callback_routes(settings: Settings, database: Database, address: PublicAddress) -> list[BaseRoute]:
    """Return the routes that SMS providers call, and the one with which the server finds itself at an address."""
    opened = partial(open_token, vault.of(settings))
    return [*Callbacks(database, address=address, open_token=opened).routes(), *AddressCheck(database).routes()]


def _make_database(settings: Settings) -> Database:
    """Return the database for requests: statements and connections end soon after the time limit of a request."""
    return Database(
        settings.database_url or embedded.ensure_running(settings.data_dir),
        pool_max=settings.database_pool_max,
        statement_timeout_ms=min(settings.statement_timeout_ms or REQUEST_MS, REQUEST_MS),
        lock_timeout_ms=settings.lock_timeout_ms,
        checkout_s_max=REQUEST_S,
    )


def _register_gauges(writes: Writes, database: Database) -> None:
    """Register gauges that are read when Prometheus scrapes."""
    coalescer = writes.in_flight.coalescer
    PROCESS_METRICS.add_gauge(
        Gauge("regulars_queue_items", "Writes that wait for their batch.", "", lambda: {"": coalescer.waiting_items})
    )
    PROCESS_METRICS.add_gauge(Gauge("regulars_pool", "Connections of the database pool.", "state", database.pool_use))
