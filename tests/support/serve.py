"""Run the server on a socket that the parent process has bound; the settings come from the environment."""

import socket
import sys

import uvicorn
from regulars.server import create_app

from regulars.kit import settings


def main() -> None:
    config = uvicorn.Config(create_app(settings.load()), log_level="warning", access_log=False, lifespan="on")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])


if __name__ == "__main__":
    main()
