"""A server inside the sandbox, for the port proxy: records exactly what reaches it and answers raw bytes."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Request:
    connection: int
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    trailers: list[tuple[str, str]] = field(default_factory=list)

    def all(self, name: str) -> list[str]:
        return [v for k, v in self.headers if k.lower() == name.lower()]

    def has(self, name: str) -> bool:
        return bool(self.all(name))


def answer(body: bytes = b"ok", status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def echo(request: Request) -> bytes:
    text = json.dumps({"method": request.method, "target": request.target, "headers": request.headers,
                       "body_length": len(request.body)})
    return answer(text.encode(), headers="Content-Type: application/json\r\n")


def listen(family: int = socket.AF_INET) -> tuple[socket.socket, int]:
    """A listening socket on loopback, and its port."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
    listener.listen(64)
    return listener, listener.getsockname()[1]


def listen_inside(host, where: str, family: int = socket.AF_INET) -> tuple[socket.socket, int]:
    """The same where the port proxy of that sandbox looks: in the host's network of a pool that is a unix
    socket with the port's name."""
    if where != "pool":
        listener = host.inside_socket(lambda: listen(family)[0])
        return listener, listener.getsockname()[1]
    port = random.randrange(20000, 60000)

    def make() -> socket.socket:
        os.makedirs("/root/.sbx/proxy", exist_ok=True)
        made = socket.socket(socket.AF_UNIX)
        made.bind(f"/root/.sbx/proxy/{port}.sock")
        made.listen(64)
        return made

    return host.inside_socket(make), port


class InnerServer:
    """`respond` gets the request and gives the answer's bytes, or takes the socket and writes itself.
    `listener`: what listen() made."""

    def __init__(self, respond: Callable[..., bytes | None] = echo, *, takes_socket: bool = False,
                 listener: tuple[socket.socket, int] | None = None) -> None:
        self.respond = respond
        self.takes_socket = takes_socket
        self.requests: list[Request] = []
        self.received = b""  # every byte of every connection
        self.closed = threading.Event()  # a connection was closed by its client
        self._connections = 0
        self._listener, self.port = listener or listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "InnerServer":
        return self

    def __exit__(self, *unused) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections += 1
            threading.Thread(target=self._serve, args=(connection, self._connections), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        reader = _Reader(connection, self)
        with connection:
            try:
                while request := reader.request(number):
                    self.requests.append(request)
                    if self.takes_socket:
                        if self.respond(request, connection) is None:
                            return
                    else:
                        connection.sendall(self.respond(request))
            except (OSError, EOFError):
                pass
            finally:
                self.closed.set()


class _Reader:
    def __init__(self, connection: socket.socket, server: InnerServer) -> None:
        self.connection, self.server, self.buffer = connection, server, b""

    def _more(self) -> None:
        data = self.connection.recv(1 << 16)
        if not data:
            raise EOFError
        self.server.received += data
        self.buffer += data

    def _line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _take(self, count: int) -> bytes:
        parts, missing = [], count
        while missing > 0:
            if not self.buffer:
                self._more()
            parts.append(self.buffer[:missing])
            self.buffer = self.buffer[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    def _fields(self) -> list[tuple[str, str]]:
        fields = []
        while line := self._line():
            name, value = line.decode("latin-1").split(":", 1)
            fields.append((name, value.strip()))
        return fields

    def request(self, number: int) -> Request | None:
        try:
            first = self._line().decode("latin-1")
        except EOFError:
            return None
        method, target, _ = first.split(" ")
        request = Request(number, method, target, self._fields())
        if request.has("Content-Length"):
            request.body = self._take(int(request.all("Content-Length")[0]))
        elif request.has("Transfer-Encoding"):
            while size := int(self._line().split(b";")[0], 16):
                request.body += self._take(size)
                self._line()
            request.trailers = self._fields()
        return request
