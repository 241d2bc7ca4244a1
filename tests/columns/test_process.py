"""The analysis process: away from the process that takes tickets, reached by a socket, and its death harms no other process."""

import asyncio
import os
import shutil
import signal
import socket
import stat
import tempfile
from pathlib import Path

import pytest
from tests.support.fork_server import Child, fork_server

from regulars.analysis.server import listening
from regulars.columns.client import Analysis, running
from regulars.columns.protocol import STARTING, AnalysisUnavailable, NotReady, socket_path
from regulars.kit.settings import Settings


def test_a_process_that_has_not_started_is_waited_for_until_the_deadline(shop, tmp_path):
    analysis = Analysis(Settings(data_dir=tmp_path))
    query = shop.query({"type": "all", "of": []})
    with pytest.raises(NotReady, match="The analysis process is starting; try again in a moment") as starting:
        shop.runner.run(analysis.count_segment(shop.organization_id, query, deadline_s=0.1))
    assert starting.value.progress == STARTING


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_socket_is_private_also_where_the_data_folder_s_name_is_too_long(tmp_path, monkeypatch):
    shared = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))  # a stand-in for /tmp itself, with a short name
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    short, long = shared / "data", tmp_path / ("x" * 120)
    (short / "run").mkdir(parents=True)
    # Another process of ours made it first, under a permissive umask.
    (short / "run").chmod(0o775)
    long.mkdir()
    for data_dir in (short, long):
        path = socket_path(Settings(data_dir=data_dir))
        with listening(path):
            assert (mode_of(path.parent), mode_of(path)) == (0o700, 0o600)
    assert socket_path(Settings(data_dir=short)) == short / "run" / "analysis.sock"
    assert len(str(path)) <= 100
    assert path.parent.parent == shared
    shutil.rmtree(shared)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_that_another_user_made_first_is_neither_used_nor_dialled(shop, tmp_path):
    path = tmp_path / "theirs" / "analysis.sock"
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(path))
        theirs.listen()
        os.chown(path.parent, 12345, 12345)
        with pytest.raises(PermissionError), listening(path):
            pass
        assert not shop.runner.run(Analysis(Settings(data_dir=tmp_path), path=path).is_listening())


def test_it_counts_through_its_own_death(shop, columns_database_url, tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", columns_database_url)
    monkeypatch.setenv("REGULARS_DATA_DIR", str(tmp_path))
    for number in range(5):
        shop.sale(f"c{number}", amount=1000 * number)
    shop.drain()
    query = shop.query({"type": "all", "of": [{"type": "spend", "currency": "EUR", "at_least_cents": 2000}]})
    settings = Settings(data_dir=Path(tmp_path), database_url=columns_database_url)

    async def ask_before_it_listens() -> Child:
        waiting = asyncio.create_task(Analysis(settings).count_segment(shop.organization_id, query, deadline_s=60))
        await asyncio.sleep(0)
        log = tmp_path / "analysis.log"
        served = fork_server().start("tests.support.cli", "analysis", environment=dict(os.environ), log=log)
        with pytest.raises(NotReady, match="being prepared") as preparing:
            await waiting
        assert preparing.value.progress is None
        return served

    served = shop.runner.run(ask_before_it_listens())
    shop.begin_and_build()

    async def ask() -> None:
        async with running(settings) as analysis:
            figures = await analysis.count_segment(shop.organization_id, query, deadline_s=60)
            assert (figures.total, figures.customers, figures.split.never_asked) == (3, 5, 3)
            page = await analysis.members(shop.organization_id, query, limit=2, deadline_s=60)
            rest = await analysis.members(shop.organization_id, query, after=page.next, limit=2, deadline_s=60)
            assert (len(page.profile_ids), len(rest.profile_ids), rest.next) == (2, 1, None)
            some = await analysis.sample(shop.organization_id, query, limit=5, deadline_s=60)
            assert {*page.profile_ids, *rest.profile_ids} == set(some.profile_ids)
            served.send_signal(signal.SIGKILL)
            served.wait(60)
            with pytest.raises((NotReady, AnalysisUnavailable)):
                await analysis.count_segment(shop.organization_id, query, deadline_s=0.1)
        # Now there is none that serves, so that a command starts its own.
        async with running(settings) as analysis:
            assert (await analysis.count_segment(shop.organization_id, query, deadline_s=60)).total == 3

    shop.runner.run(ask())
