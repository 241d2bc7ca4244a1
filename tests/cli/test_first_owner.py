import re

from tests.cli.test_serve import serving
from tests.support.client import get_url
from tests.support.waiting import wait_until

LINK = re.compile(r"(http://\S+/link/\S+)")


def link_of(served):
    return wait_until(lambda: LINK.search(served.log()), show=served.log)[1]


def test_serve_prints_a_link_for_the_first_owner_and_keeps_the_secret_key_beside_the_data(data_dir):
    with serving(data_dir) as served:
        link = link_of(served)
        assert "Set up Regulars" in get_url(link).text
        assert (data_dir / "secret.key").stat().st_mode & 0o777 == 0o600
    with serving(data_dir) as served:
        assert link_of(served) != link
        assert get_url(served.url + "/link/" + link.rpartition("/")[2]).status_code == 410
