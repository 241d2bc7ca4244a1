"""Run the server on a socket that the parent process has bound; the settings come from the environment."""

import asyncio
import json
import socket
import sys

import uvicorn
import uvloop

from regulars.http.body import Patience
from regulars.kit import log, settings
from regulars.processes.server_process import uvicorn_config
from regulars.server import create_app


def main() -> None:
    listening = socket.socket(fileno=int(sys.argv[1]))
    patience = Patience(**json.loads(sys.argv[2]))
    loaded = settings.load()
    log.configure(loaded)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        server = uvicorn.Server(uvicorn_config(loaded, create_app(loaded, patience=patience)))
        runner.run(server.serve(sockets=[listening]))


if __name__ == "__main__":
    main()
