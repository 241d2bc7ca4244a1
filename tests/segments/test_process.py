"""The analysis process: away from the process that takes tickets, asked by a socket, and its death harms nobody."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from regulars.kit.settings import Settings
from regulars.segments.analysis.ask import Analysis, running
from regulars.segments.analysis.model import AnalysisAway, NotReady
from regulars.segments.analysis.wire import socket_path


def test_no_other_process_carries_the_libraries_of_columns():
    code = "import sys, regulars.cli.main; print(sorted({'numpy', 'polars', 'pyarrow'} & sys.modules.keys()))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert printed.stdout.strip() == "[]"


def test_a_process_that_is_away_is_told_and_not_waited_for(shop, tmp_path):
    analysis = Analysis(Settings(data_dir=tmp_path))
    with pytest.raises(AnalysisAway):
        shop.runner.run(analysis.figures(shop.organization_id, shop.asked({"type": "all", "of": []})))


def test_a_folder_with_a_long_name_has_its_socket_elsewhere(tmp_path):
    long = tmp_path / ("x" * 120)
    assert len(str(socket_path(Settings(data_dir=long)))) <= 100
    assert socket_path(Settings(data_dir=long)) == socket_path(Settings(data_dir=long))


def test_it_counts_through_its_own_death(shop, columns_database_url, tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", columns_database_url)
    monkeypatch.setenv("REGULARS_DATA_DIR", str(tmp_path))
    for number in range(5):
        shop.sale(f"c{number}", amount=1000 * number)
    shop.drain()
    asked = shop.asked({"type": "all", "of": [{"type": "spend", "currency": "EUR", "at_least_cents": 2000}]})
    settings = Settings(data_dir=Path(tmp_path), database_url=columns_database_url)

    async def ask() -> None:
        async with running(settings) as analysis:
            with pytest.raises(NotReady):
                await analysis.figures(shop.organization_id, asked, deadline_s=60)

    shop.runner.run(ask())
    shop.begin()
    shop.build()

    async def ask_again() -> None:
        before = await find_children()
        async with running(settings) as analysis:
            figures = await analysis.figures(shop.organization_id, asked, deadline_s=60)
            assert (figures.total, figures.customers, figures.split.never_asked) == (3, 5, 3)
            page = await analysis.members(shop.organization_id, asked, limit=2, deadline_s=60)
            rest = await analysis.members(shop.organization_id, asked, after=page.next, limit=2, deadline_s=60)
            assert (len(page.profile_ids), len(rest.profile_ids), rest.next) == (2, 1, None)
            some = await analysis.sample(shop.organization_id, asked, limit=5, deadline_s=60)
            assert {*page.profile_ids, *rest.profile_ids} == set(some.profile_ids)
            [child] = await find_children() - before
            os.kill(child, signal.SIGKILL)
            with pytest.raises(AnalysisAway):
                await analysis.figures(shop.organization_id, asked, deadline_s=60)
        async with running(settings) as analysis:
            assert (await analysis.figures(shop.organization_id, asked, deadline_s=60)).total == 3

    shop.runner.run(ask_again())


async def find_children() -> set[int]:
    """The analysis processes that this one started; other tests may have one of their own."""
    listed = await asyncio.create_subprocess_exec(
        "ps", "-o", "pid=,args=", "--ppid", str(os.getpid()), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await listed.communicate()
    return {int(line.split()[0]) for line in output.decode().splitlines() if "regulars.cli analysis" in line}
