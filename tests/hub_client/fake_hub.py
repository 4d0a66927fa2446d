"""The part of the Jobs API that sandboxes of huggingface_hub need, on loopback.

A job that is a sandbox or the host of a pool is not downloaded and run: it becomes a cay-host with the job's
variables and secrets. Its exposed URL leads through a forwarder that, for the host of a pool, ends TLS,
without which newer clients send it no credentials.
"""

from __future__ import annotations

import json
import secrets
import select
import socket
import ssl
import subprocess
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

OWNER = {"id": "5e9ecfc04957053f60648a3e", "name": "tester", "type": "user"}


def make_certificate(folder: Path) -> Path:
    """Key and certificate for every job, in one file that is also what a client must trust."""
    path = folder / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=cay test", "-addext", "subjectAltName=DNS:*.cay.localhost", "-keyout", folder / "key.pem",
                    "-out", path], check=True, capture_output=True)
    path.write_text((folder / "key.pem").read_text() + path.read_text())
    return path


class Forwarder:
    """Copies TCP connections to a port. With a certificate it ends TLS."""

    def __init__(self, target: tuple[str, int], certificate: Path | None = None) -> None:
        self.target = target
        self.tls = None
        if certificate is not None:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self.target)
            except OSError:
                return
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls is not None:
                threading.Thread(target=self._bridge, args=(client, server), daemon=True).start()
                continue
            threading.Thread(target=self._copy, args=(client, server), daemon=True).start()
            threading.Thread(target=self._copy, args=(server, client), daemon=True).start()

    def _bridge(self, client: socket.socket, server: socket.socket) -> None:
        """Both directions in one thread: a TLS connection is not for two."""
        try:
            with self.tls.wrap_socket(client, server_side=True) as secure, server:
                while True:
                    ready = [secure] if secure.pending() else select.select([secure, server], [], [])[0]
                    for source, sink in ((secure, server), (server, secure)):
                        if source in ready:
                            data = source.recv(1 << 18)
                            if not data:
                                return
                            sink.sendall(data)
        except OSError:
            server.close()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 18):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            for one in (source, sink):
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class FakeHub:
    """`start(env, token)` makes a running Host; `url` is what HF_ENDPOINT must be, `certificate` what
    SSL_CERT_FILE must be."""

    def __init__(self, start, folder: Path) -> None:
        self.start = start
        self.certificate = make_certificate(folder)
        self.jobs: dict[str, dict] = {}
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                path, _, query = self.path.partition("?")
                status, document = hub.handle(self.command, path, urllib.parse.parse_qs(query), body)
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *unused) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        for job in self.jobs.values():
            job["forwarder"].close()

    def handle(self, method: str, path: str, query: dict, body) -> tuple[int, dict | list]:
        parts = path.strip("/").split("/")
        if path == "/api/whoami-v2":
            return 200, {**OWNER, "orgs": []}
        if parts[:2] == ["api", "jobs"] and method == "POST" and len(parts) == 3:
            return 200, self.create(body)
        if parts[:2] == ["api", "jobs"] and method == "GET" and len(parts) == 3:
            return 200, self.listing(query)
        if parts[:2] == ["api", "jobs"] and len(parts) >= 4 and parts[3] in self.jobs:
            job = self.jobs[parts[3]]
            if parts[4:] == ["cancel"]:
                job["info"]["status"]["stage"] = "CANCELED"
                job["host"].stop()
            return 200, job["info"]
        return 404, {"error": f"no such thing here: {method} {path}"}

    def listing(self, query: dict) -> list:
        labels = dict(label.split("=", 1) for label in query.get("label", []))
        return [job["info"] for job in self.jobs.values()
                if job["info"]["status"]["stage"] in query.get("stage", [job["info"]["status"]["stage"]])
                and labels.items() <= job["info"]["labels"].items()]

    def create(self, spec: dict) -> dict:
        job_id = secrets.token_hex(12)
        host = self.start(env={k: str(v) for k, v in spec["environment"].items()},
                          token=spec["secrets"]["SBX_TOKEN"])
        pool = "SBX_HOST_MODE" in spec["environment"]
        forwarder = Forwarder((host.address, host.port), self.certificate if pool else None)
        info = {
            "id": job_id, "owner": OWNER, "initiator": {"type": "user", "id": OWNER["id"]},
            "createdAt": "2026-01-01T00:00:00.000Z", "dockerImage": spec.get("dockerImage"),
            "command": spec["command"], "arguments": [], "environment": spec["environment"],
            "flavor": spec["flavor"], "labels": spec["labels"],
            "status": {"stage": "RUNNING", "message": None,
                       "exposeUrls": [f"{'https' if pool else 'http'}://{job_id}--49983.cay.localhost:{forwarder.port}"]},
        }
        self.jobs[job_id] = {"info": info, "host": host, "forwarder": forwarder}
        return info
