"""A plain HTTP client for tests, with nothing between the test and the bytes."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import urllib.parse
from dataclasses import dataclass, field
from typing import Iterator


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self):
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of an error answer, whose shape is part of the promise."""
        assert self.headers["Content-Type"].startswith("application/json"), self.headers["Content-Type"]
        document = self.json()
        assert list(document) == ["error"] and document["error"], document
        return document["error"]


def under(prefix: str, path: str) -> str:
    """`/v1/…` as the route of whatever has that prefix."""
    return prefix + path.removeprefix("/v1") if path.startswith("/v1/") else path


def parse_events(body: bytes) -> list[dict]:
    """NDJSON whose last object has no newline; pings are left out."""
    assert body.isascii(), "streams are ASCII only"
    events = [json.loads(line) for line in body.split(b"\n") if line]
    return [e for e in events if e["event"] != "ping"]


@dataclass
class Output:
    """What a stream of exec events says."""

    events: list[dict]
    raw: bytes = b""
    headers: http.client.HTTPMessage | None = field(default=None, repr=False)

    def _bytes(self, stream: str) -> bytes:
        parts = []
        for event in self.events:
            if event["event"] != stream:
                continue
            if event.get("encoding") == "base64":
                parts.append(base64.b64decode(event["data"], validate=True))
            else:
                parts.append(event["data"].encode())
        return b"".join(parts)

    @property
    def stdout(self) -> str:
        return self._bytes("stdout").decode()

    @property
    def stderr(self) -> str:
        return self._bytes("stderr").decode()

    @property
    def stdout_bytes(self) -> bytes:
        return self._bytes("stdout")

    @property
    def stderr_bytes(self) -> bytes:
        return self._bytes("stderr")

    @property
    def start(self) -> dict:
        assert self.events and self.events[0]["event"] == "start", self.events[:1]
        return self.events[0]

    @property
    def exec_id(self) -> str:
        return self.start["exec_id"]

    @property
    def gaps(self) -> list[dict]:
        return [e for e in self.events if e["event"] == "gap"]

    @property
    def exit(self) -> dict:
        exits = [e for e in self.events if e["event"] == "exit"]
        assert len(exits) == 1 and self.events[-1] is exits[0], self.events[-3:]
        return exits[0]


class Stream:
    """An answer that is read as it comes. `close()` in mid-stream is a client that goes away."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.connection = connection
        self.response = response
        self.status = response.status
        self.socket: socket.socket = connection.sock
        self.seen: list[dict] = []

    def events(self) -> Iterator[dict]:
        while True:
            line = self.response.readline()
            if not line:
                return
            event = json.loads(line)
            if event["event"] == "ping":
                continue
            self.seen.append(event)
            yield event

    def next(self, kind: str) -> dict:
        """Reads on to the next event of that kind."""
        for event in self.events():
            if event["event"] == kind:
                return event
        raise AssertionError(f"the stream ended before a {kind} event: {self.seen[-3:]}")

    def until_text(self, text: str, stream: str = "stdout") -> None:
        """Reads on until the stream's text so far contains `text`."""
        while text not in "".join(e["data"] for e in self.seen if e["event"] == stream):
            self.next(stream)

    def rest(self) -> Output:
        for _ in self.events():
            pass
        return Output(self.seen)

    def close(self) -> None:
        # Shuts down as well, since the response keeps the socket's descriptor open.
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.response.close()
        self.connection.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *unused) -> None:
        self.close()


class Client:
    """Each request on a connection of its own, or all on one with keep=True. `prefix` stands for the /v1
    of a path: a sandbox of a pool has its own, so that what is written for one mode runs in the other."""

    def __init__(self, address: str, port: int, *, token: str | None = None, keep: bool = False,
                 timeout: float = 60.0, prefix: str = "/v1", host=None) -> None:
        self.address, self.port, self.token, self.timeout = address, port, token, timeout
        self.keep, self.prefix, self.host = keep, prefix, host
        self._kept: http.client.HTTPConnection | None = None

    def _connection(self, timeout: float | None) -> http.client.HTTPConnection:
        if self.keep:
            if self._kept is None:
                self._kept = http.client.HTTPConnection(self.address, self.port, timeout=self.timeout)
            return self._kept
        return http.client.HTTPConnection(self.address, self.port, timeout=timeout or self.timeout)

    def _send(self, method, path, query, body, headers, timeout) -> http.client.HTTPConnection:
        target = under(self.prefix, path) + ("?" + urllib.parse.urlencode(query) if query else "")
        all_headers = {"X-Sandbox-Token": self.token} if self.token is not None else {}
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            all_headers["Content-Type"] = "application/json"
        connection = self._connection(timeout)
        try:
            connection.request(method, target, body=body, headers={**all_headers, **(headers or {})})
        except BrokenPipeError:
            pass  # refused before all of it was sent: the answer is there
        return connection

    def request(self, method: str, path: str, *, query=None, body=None, headers=None,
                timeout: float | None = None) -> Answer:
        connection = self._send(method, path, query, body, headers, timeout)
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        if not self.keep:
            connection.close()
        return answer

    def get(self, path: str, /, **query) -> Answer:
        return self.request("GET", path, query=query)

    def post(self, path: str, body=None, /, *, headers=None, **query) -> Answer:
        return self.request("POST", path, query=query, body=body, headers=headers)

    def put(self, path: str, body=b"", /, *, headers=None, **query) -> Answer:
        return self.request("PUT", path, query=query, body=body, headers=headers)

    def delete(self, path: str, /, **query) -> Answer:
        return self.request("DELETE", path, query=query)

    def stream(self, method: str, path: str, *, query=None, body=None, headers=None,
               timeout: float | None = None) -> Stream:
        connection = self._send(method, path, query, body, headers, timeout)
        return Stream(connection, connection.getresponse())

    # ---- calls that many tests make

    def exec(self, cmd, *, headers=None, timeout_s: float | None = None, **fields) -> Output:
        """Runs a command to its end. `fields` go into the request's body."""
        answer = self.request("POST", "/v1/exec", body={"cmd": cmd, **fields}, headers=headers,
                              timeout=timeout_s)
        assert answer.status == 200, (answer.status, answer.body)
        return Output(parse_events(answer.body), answer.body, answer.headers)

    def exec_stream(self, cmd, *, headers=None, **fields) -> Stream:
        stream = self.stream("POST", "/v1/exec", body={"cmd": cmd, **fields}, headers=headers)
        assert stream.status == 200, stream.response.read()
        return stream

    def output(self, path: str, /, **query) -> Output:
        """The output of an exec (/v1/execs/{id}) or a process (/v1/processes/{id})."""
        answer = self.request("GET", path + "/output", query=query)
        assert answer.status == 200, (answer.status, answer.body)
        return Output(parse_events(answer.body), answer.body, answer.headers)

    def spawn(self, cmd, *, headers=None, **fields) -> dict:
        answer = self.post("/v1/processes", {"cmd": cmd, **fields}, headers=headers)
        assert answer.status in (200, 201), (answer.status, answer.body)
        return answer.json()

    def process(self, process_id: str) -> dict:
        listed = [p for p in self.get("/v1/processes").json() if p["id"] == process_id]
        assert len(listed) == 1, f"{process_id} is listed {len(listed)} times"
        return listed[0]
