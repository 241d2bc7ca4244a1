"""Runs the server on a socket that the test process has bound, with settings from the environment."""

import asyncio
import json
import socket
from collections.abc import Sequence

import uvloop
from tests.support.quick_passwords import QUICK

from regulars.accounts import passwords
from regulars.http.body import BodyTimeouts
from regulars.kit import log, settings
from regulars.kit.process import reduce_garbage_collection
from regulars.links.marks import set_link_url
from regulars.processes.accepting import AcceptingServer
from regulars.processes.server_process import uvicorn_config
from regulars.server import create_app


def main(arguments: Sequence[str], descriptors: Sequence[int]) -> None:
    [listening] = (socket.socket(fileno=descriptor) for descriptor in descriptors)
    options = json.loads(arguments[0])
    body_timeouts = BodyTimeouts(**options.pop("body_timeouts"))
    loaded = settings.load()
    log.configure(loaded)
    set_link_url(loaded.link_url)
    # A real hash takes 64 MiB and a tenth of a second of each sign-in.
    passwords._HASHER = QUICK  # type: ignore[misc]  # it is final in the program
    reduce_garbage_collection()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        app = create_app(loaded, body_timeouts=body_timeouts, **options)
        server = AcceptingServer(uvicorn_config(loaded, app))
        runner.run(server.serve(sockets=[listening]))
