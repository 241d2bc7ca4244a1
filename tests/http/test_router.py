import pytest

from regulars.http.request import ApiResponse
from regulars.http.route import ReadRoute, WriteRoute
from regulars.http.router import Router
from regulars.kit.errors import MethodNotAllowed, RouteNotFound


async def _handle(_tx, _request):
    return ApiResponse(200, b"{}")


async def _run(_tx, _organization_id, writes):
    return [ApiResponse(200, b"{}") for _ in writes]


def read(path: str) -> ReadRoute:
    return ReadRoute(path=path, operation_id=f"GET {path}", tag="", summary="", responses={}, handle=_handle)


def write(path: str, method: str = "POST") -> WriteRoute:
    return WriteRoute(
        path=path,
        operation_id=f"{method} {path}",
        tag="",
        summary="",
        responses={},
        method=method,
        prepare=bytes,
        run=_run,
    )


ROUTER = Router(
    [
        read("/v1/profiles/{profile_id}"),
        write("/v1/profiles/{profile_id}", "DELETE"),
        read("/v1/profiles/{profile_id}/attributes"),
        write("/v1/profiles/{profile_id}/attributes"),
        read("/v1/profiles"),
        write("/v1/profiles"),
        write("/v1/profiles/batch"),
        read("/v1/pairs/{one}/{other}"),
    ]
)


def find(method: str, path: bytes) -> tuple[str, tuple[str, ...]]:
    route, references = ROUTER.find(method, path)
    return route.operation_id, references


@pytest.mark.parametrize(
    ("method", "path", "operation", "references"),
    [
        ("GET", b"/v1/profiles", "GET /v1/profiles", ()),
        ("POST", b"/v1/profiles", "POST /v1/profiles", ()),
        ("POST", b"/v1/profiles/batch", "POST /v1/profiles/batch", ()),
        ("HEAD", b"/v1/profiles", "GET /v1/profiles", ()),
        ("HEAD", b"/v1/profiles/batch", "GET /v1/profiles/{profile_id}", ("batch",)),
        ("GET", b"/v1/profiles/batch", "GET /v1/profiles/{profile_id}", ("batch",)),
        ("DELETE", b"/v1/profiles/batch", "DELETE /v1/profiles/{profile_id}", ("batch",)),
        ("GET", b"/v1/profiles/b%61tch", "GET /v1/profiles/{profile_id}", ("batch",)),
        ("GET", b"/v1/profiles/a%2Fb", "GET /v1/profiles/{profile_id}", ("a/b",)),
        ("GET", b"/v1/profiles/x%2Fattributes", "GET /v1/profiles/{profile_id}", ("x/attributes",)),
        ("GET", b"/v1/profiles/x/attributes", "GET /v1/profiles/{profile_id}/attributes", ("x",)),
        ("GET", b"/v1/profiles/attributes", "GET /v1/profiles/{profile_id}", ("attributes",)),
        ("GET", b"/v1/profiles/a%252Fb", "GET /v1/profiles/{profile_id}", ("a%2Fb",)),
        ("GET", b"/v1/profiles/%25", "GET /v1/profiles/{profile_id}", ("%",)),
        ("GET", b"/v1/profiles/..", "GET /v1/profiles/{profile_id}", ("..",)),
        ("GET", b"/v1/profiles/+33", "GET /v1/profiles/{profile_id}", ("+33",)),
        ("GET", b"/v1/profiles/a%20b", "GET /v1/profiles/{profile_id}", ("a b",)),
        ("GET", b"/v1/profiles/%C3%A9", "GET /v1/profiles/{profile_id}", ("é",)),
        ("GET", b"/v1/profiles/e%CC%81", "GET /v1/profiles/{profile_id}", ("e\u0301",)),
        ("GET", b"/v1/profiles/%f0%9F%98%80", "GET /v1/profiles/{profile_id}", ("😀",)),
        ("GET", b"/v1/pairs/a%2F/%2Fb", "GET /v1/pairs/{one}/{other}", ("a/", "/b")),
    ],
)
def test_it_splits_the_raw_path_and_decodes_each_reference_once(method, path, operation, references):
    assert find(method, path) == (operation, references)


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/",
        b"/v1",
        b"/v1/",
        b"/v2/profiles",
        b"/v1/profiles/",
        b"/v1//profiles",
        b"//v1/profiles",
        b"/v1/profiles//attributes",
        b"/v1/Profiles",
        b"/v1%2Fprofiles",
        b"/v1/profiles/x/attributes/",
        b"/v1/profiles/%",
        b"/v1/profiles/%2",
        b"/v1/profiles/%zz",
        b"/v1/profiles/%%32",
        b"/v1/profiles/%FF",
        b"/v1/profiles/%C0%AF",
        b"/v1/profiles/%ED%A0%80",
        b"/v1/profiles/%00",
        b"/v1/profiles/a%00b",
        b"/v1/pairs/a",
        b"/v1/pairs//b",
        b"/v1/pairs/a/b/c",
    ],
)
def test_a_path_that_names_nothing_is_not_found_whatever_the_method(path):
    for method in ("GET", "POST", "DELETE", "BREW"):
        with pytest.raises(RouteNotFound):
            ROUTER.find(method, path)


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", b"/v1/profiles", b"GET, HEAD, POST"),
        ("head", b"/v1/profiles", b"GET, HEAD, POST"),
        ("PUT", b"/v1/profiles/x", b"DELETE, GET, HEAD"),
        ("POST", b"/v1/profiles/x", b"DELETE, GET, HEAD"),
        ("get", b"/v1/profiles/x/attributes", b"GET, HEAD, POST"),
    ],
)
def test_another_method_is_refused_with_all_that_the_path_takes(method, path, allow):
    with pytest.raises(MethodNotAllowed) as caught:
        ROUTER.find(method, path)
    assert dict(caught.value.headers)[b"allow"] == allow


def test_a_literal_path_that_is_also_a_reference_names_no_method_that_it_does_not_take():
    with pytest.raises(MethodNotAllowed) as caught:
        ROUTER.find("PUT", b"/v1/profiles/batch")
    named = dict(caught.value.headers)[b"allow"].decode().split(", ")
    assert "POST" in named
    for method in named:
        ROUTER.find(method, b"/v1/profiles/batch")
