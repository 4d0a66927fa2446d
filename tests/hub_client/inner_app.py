"""What a user might run in a sandbox: an HTTP and SSE server, and a WebSocket server.

    inner_app.py http PORT_FILE
    inner_app.py websocket PORT_FILE

In a pooled sandbox, which may not bind TCP ports, each listens on the socket that stands for its port.
"""

import os
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def tell(port: int) -> None:
    """Writes the port where the test waits for it, never half of it."""
    with open(sys.argv[2] + ".part", "w") as f:
        f.write(str(port))
    os.rename(sys.argv[2] + ".part", sys.argv[2])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for number in range(5):
                self.wfile.write(f"data: {number}\n\n".encode())
                self.wfile.flush()
                time.sleep(0.1)
            return
        self.reply(f"{self.path} {sorted(k.lower() for k in self.headers)}".encode())

    def do_POST(self) -> None:
        self.reply(self.rfile.read(int(self.headers["Content-Length"]))[::-1])

    def log_message(self, *unused) -> None:
        pass

    def reply(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class UnixServer(ThreadingHTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)


def main() -> None:
    http = sys.argv[1] == "http"
    port = 8000 if http else 8001
    proxy = os.environ.get("SBX_PROXY_DIR")
    if proxy:
        os.makedirs(proxy, exist_ok=True)
    if http:
        server = UnixServer(f"{proxy}/{port}.sock", Handler) if proxy else ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        tell(port if proxy else server.server_port)
        server.serve_forever()
    else:
        from websockets.sync.server import serve, unix_serve

        def echo(connection) -> None:
            for message in connection:
                connection.send(message)

        with (unix_serve(echo, f"{proxy}/{port}.sock", max_size=None) if proxy else
              serve(echo, "127.0.0.1", 0, max_size=None)) as server:
            tell(port if proxy else server.socket.getsockname()[1])
            server.serve_forever()


main()
