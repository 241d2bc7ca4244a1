import re
import time

from tests.cli.test_serve import READY_SECONDS_MAX, serving
from tests.support.client import get_url

LINK = re.compile(r"(http://\S+/link/\S+)")


def link_of(served):
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        if found := LINK.search(served.log()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"No link was printed:\n{served.log()}")


def test_serve_prints_a_link_for_the_first_owner_and_keeps_the_secret_key_beside_the_data(data_dir):
    with serving(data_dir) as served:
        link = link_of(served)
        assert "Set up Regulars" in get_url(link).text
        assert (data_dir / "secret.key").stat().st_mode & 0o777 == 0o600
    with serving(data_dir) as served:
        assert link_of(served) != link
        assert get_url(served.url + "/link/" + link.rpartition("/")[2]).status_code == 410
