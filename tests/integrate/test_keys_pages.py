"""API keys in the web application: made, shown once, used, limited and revoked."""

import re

import httpx
import pytest
from tests.support.client import Api, get_url
from tests.support.tenant import Tenant, another_key, new_tenant
from tests.support.visitor import Visitor

from regulars.kit.ids import API_KEY
from regulars.organizations.model import Permission
from regulars.web import cookies
from regulars.web.access import Role

SECRET = re.compile(r"rgl_[0-9A-Za-z]{36}")


def created(visitor: Visitor, *, name="Annecy tills", permission="ingest") -> tuple[httpx.Response, str]:
    """The page after the form, and the key it shows."""
    answer = visitor.post("/keys", name=name, permission=permission)
    assert answer.status_code == 303
    carried = answer.cookies.get(cookies.REVEAL)
    cookie = f"{cookies.SESSION_HTTP}={visitor.who.token}; {cookies.REVEAL}={carried}"
    page = visitor.http.get(f"{visitor.base_url}{answer.headers['location']}", headers={"Cookie": cookie})
    return page, SECRET.findall(page.text)[0]


def test_a_new_key_is_shown_once_with_a_line_to_try_it(owner):
    page, secret = created(owner)
    assert f"-H &#34;x-api-key: {secret}&#34;" in page.text
    assert "/v1/stores" in page.text
    assert "Max-Age=0" in page.headers["set-cookie"]
    again = owner.http.get(str(page.url), headers={"Cookie": f"{cookies.SESSION_HTTP}={owner.who.token}"})
    assert again.status_code == 200
    assert secret not in again.text
    assert secret not in owner.get("/keys").text


def test_the_cookie_that_carries_it_is_out_of_reach_of_scripts_and_short_lived(owner):
    answer = owner.post("/keys", name="till", permission="ingest")
    carried = next(line for line in answer.headers.get_list("set-cookie") if line.startswith(cookies.REVEAL))
    assert "HttpOnly" in carried
    assert "SameSite=lax" in carried
    assert "Max-Age=60" in carried


def test_another_session_cannot_read_a_stolen_cookie(owner, visitor_as):
    answer = owner.post("/keys", name="till", permission="ingest")
    thief = visitor_as(Role.ADMIN)
    cookie = f"{cookies.SESSION_HTTP}={thief.who.token}; {cookies.REVEAL}={answer.cookies.get(cookies.REVEAL)}"
    page = thief.http.get(f"{thief.base_url}{answer.headers['location']}", headers={"Cookie": cookie})
    assert page.status_code == 200
    assert not SECRET.search(page.text)


def test_a_limited_key_from_the_page_is_limited(owner, api: Api):
    _, secret = created(owner)
    limited = get_url(f"{owner.base_url}/v1/profiles", headers={"x-api-key": secret})
    stores = get_url(f"{owner.base_url}/v1/stores", headers={"x-api-key": secret})
    assert (limited.status_code, stores.status_code) == (403, 200)


def test_a_key_without_a_name_or_with_another_permission_is_refused_and_the_form_comes_back(owner):
    refused = owner.post("/keys", name="  ", permission="root")
    assert refused.status_code == 400
    assert "2 fields need a change" in refused.text
    assert owner.post("/keys", name="x" * 81, permission="ingest").status_code == 400


def test_a_developer_makes_ingest_keys_only(visitor_as):
    developer = visitor_as(Role.DEVELOPER)
    assert 'value="full"' not in developer.get("/keys/new").text
    assert developer.post("/keys", name="till", permission="full").status_code == 400
    assert developer.post("/keys", name="till", permission="ingest").status_code == 303


def test_a_developer_cannot_revoke_a_full_key(visitor_as, tenant: Tenant):
    developer = visitor_as(Role.DEVELOPER)
    path = f"/keys/{API_KEY.encode(tenant.key_id)}/revoke"
    assert developer.get(path).status_code == 403
    assert developer.post(path, sure="on").status_code == 403


def test_revoking_asks_first_when_the_key_is_in_use(owner, api: Api, tenant: Tenant, api_database_url):
    used = another_key(api_database_url, tenant, permission=Permission.INGEST)
    path = f"/keys/{API_KEY.encode(used.key_id)}"
    assert "never used" in owner.get(f"{path}/revoke").text
    assert owner.post(f"{path}/revoke").status_code == 303
    assert "Revoked" in owner.get(path).text
    assert owner.post(f"{path}/revoke").status_code == 404


def test_a_key_of_another_organization_is_not_there(owner, api_database_url):
    other = new_tenant(api_database_url)
    for path in ("", "/revoke"):
        assert owner.get(f"/keys/{API_KEY.encode(other.key_id)}{path}").status_code == 404
    assert owner.post(f"/keys/{API_KEY.encode(other.key_id)}/revoke", sure="on").status_code == 404
    assert owner.get("/keys/nonsense").status_code == 404


@pytest.mark.parametrize("role", [Role.MARKETER, Role.ANALYST])
def test_others_do_not_see_keys(visitor_as, role):
    visitor = visitor_as(role)
    assert visitor.get("/keys").status_code == 403
    assert "API keys" not in visitor.get("/attributes").text


def test_the_page_of_an_ingest_key_says_what_the_key_can_learn(owner):

    page, _ = created(owner)
    assert "whether a phone number may be texted" in page.text
    full, _ = created(owner, name="resync", permission="full")
    assert "whether a phone number may be texted" not in full.text
    assert "whether a number may be texted" in owner.get("/keys/new").text
