"""Run the server on a socket that the parent process has bound; the settings come from the environment."""

import socket
import sys

import uvicorn

from regulars.cli.server_process import uvicorn_config
from regulars.kit import settings


def main() -> None:
    uvicorn.Server(uvicorn_config(settings.load())).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])


if __name__ == "__main__":
    main()
