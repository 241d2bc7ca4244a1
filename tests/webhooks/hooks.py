"""A receiver that can be told what to answer, on a thread of its own."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOPBACK = "127.0.0.0/8"


class Hook:
    """By default it answers 204; what it got is kept."""

    def __init__(self) -> None:
        self.status, self.answer = 204, b""
        self.received: list[tuple[dict[str, str], str]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                hook.received.append(({name.lower(): value for name, value in self.headers.items()}, body.decode()))
                self.send_response(hook.status)
                self.send_header("content-length", str(len(hook.answer)))
                self.end_headers()
                self.wfile.write(hook.answer)

            def log_message(self, *_arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}/hook"
        self.url = f"http://{self.host}"
        # `close` waits for the next poll.
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
