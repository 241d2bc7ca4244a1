"""Run the server on a socket that the parent process has bound; the settings come from the environment."""

import asyncio
import socket
import sys

import uvicorn
import uvloop

from regulars.kit import log, settings
from regulars.processes.server_process import uvicorn_config


def main() -> None:
    loaded = settings.load()
    log.configure(loaded)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(uvicorn.Server(uvicorn_config(loaded)).serve(sockets=[socket.socket(fileno=int(sys.argv[1]))]))


if __name__ == "__main__":
    main()
