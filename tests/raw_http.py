"""HTTP by hand over one socket: for requests that no client library would send."""

from __future__ import annotations

import socket

from client import Answer


def raw_head(host, method: str, target: str, *lines: str, token: bool = True) -> bytes:
    """A request head with the token, unless told otherwise."""
    all_lines = [f"{method} {host.route(target)} HTTP/1.1", "Host: sandbox.example", *lines]
    if token:
        all_lines.append(f"X-Sandbox-Token: {host.token}")
    return ("\r\n".join(all_lines) + "\r\n\r\n").encode("latin-1")


class _Headers(list):
    """Header fields as (name, value); [] gives the first of a name, or None."""

    def __getitem__(self, name):
        return next((v for k, v in self if k.lower() == name.lower()), None)

    def get_all(self, name):
        return [v for k, v in self if k.lower() == name.lower()]


class RawConnection:
    def __init__(self, host, timeout: float = 30.0) -> None:
        self.socket = socket.create_connection((host.address, host.port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.trailers: list[tuple[str, str]] = []

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(self, *unused) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def _more(self) -> None:
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            raise EOFError("the server has closed the connection")
        self.buffer += data

    def line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self._more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def fields(self) -> _Headers:
        fields = _Headers()
        while line := self.line():
            name, value = line.decode("latin-1").split(":", 1)
            fields.append((name, value.strip()))
        return fields

    def answer(self, to_head: bool = False) -> Answer:
        """Reads one whole answer. EOFError if the server closes before its end."""
        status = int(self.line().split(b" ")[1])
        headers = self.fields()
        body = b""
        if to_head or status in (204, 304):
            pass
        elif headers["Transfer-Encoding"] == "chunked":
            while size := int(self.line(), 16):
                body += self.take(size)
                assert self.line() == b""
            self.trailers = list(self.fields())
        elif headers["Content-Length"] is not None:
            body = self.take(int(headers["Content-Length"]))
        else:
            body = self.until_close()
        return Answer(status, headers, body)

    def until_close(self) -> bytes:
        try:
            while True:
                self._more()
        except EOFError:
            data, self.buffer = self.buffer, b""
            return data
