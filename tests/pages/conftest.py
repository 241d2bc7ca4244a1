from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page
from tests.pages.campaign_shop import CampaignShop, open_campaign_shop
from tests.pages.full_house import FullHouse, fill
from tests.pages.segment_shop import Crowd, open_shop
from tests.support.analysis import analysis
from tests.support.client import Api, new_http
from tests.support.contract import Contract
from tests.support.server import Server
from tests.support.shared_tabs import tab_of
from tests.support.tenant import new_tenant
from tests.support.visitor import Visitor, sign_in_now

from regulars.web.access import Role

__all__ = ["analysis"]


@pytest.fixture(scope="session")
def full_house(
    server: Server, analysis: None, contract: Contract, http: httpx.Client, api_database_url: str
) -> Iterator[tuple[FullHouse, Visitor]]:
    """An organization with something hostile in every stored field, and its owner."""
    tenant = new_tenant(api_database_url)
    who = sign_in_now(api_database_url, tenant.organization_id, Role.OWNER)
    with new_http() as client:
        visitor = Visitor(client, server.url, who)
        yield fill(Api(server, contract, http, tenant), visitor, api_database_url), visitor


@pytest.fixture
def crowd(api: Api, marketer: Visitor, analysis: None, api_database_url: str) -> Crowd:
    return open_shop(api, marketer, api_database_url)


@pytest.fixture
def shop(api: Api, marketer: Visitor, analysis: None, server: Server, api_database_url: str) -> CampaignShop:
    return open_campaign_shop(api, marketer, server, api_database_url)


@pytest.fixture
def tab(chromium: Browser, marketer: Visitor) -> Iterator[Page]:
    with tab_of(chromium, marketer, locale="en-GB") as tab:
        yield tab
