"""The hub's API over jobs in memory (api_server.cc), and the clients that use it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path

from host import BINARY, ROOT

SERVER = BINARY.parent / "hub_api_server"
CLIENTS = ("2.4.0", "2.0.0", "1.31.0")


class ApiHub:
    def __init__(self, folder: Path, *around: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.process = subprocess.Popen([*around, SERVER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = json.loads(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{ready['port']}"
        self.tokens = ready["tokens"]

    def environment(self, home: Path) -> dict[str, str]:
        """Of a client, and of nothing else that this machine may have set."""
        home.mkdir(exist_ok=True)
        return {"PATH": os.environ["PATH"], "HOME": str(home), "HF_HOME": str(home), "HF_ENDPOINT": self.url,
                "HF_TOKEN": self.tokens["tester"], "OTHER_TOKEN": self.tokens["other"], "HF_HUB_DISABLE_UPDATE_CHECK": "1",
                "NO_COLOR": "1"}

    def scenario(self, version: str, name: str, home: Path) -> subprocess.CompletedProcess:
        return subprocess.run([ROOT / ".venvs" / f"hub-{version}" / "bin" / "python",
                               Path(__file__).parent / "api_scenarios.py", name],
                              env=self.environment(home), capture_output=True, text=True, timeout=240, check=False)

    def cli(self, version: str, home: Path, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([ROOT / ".venvs" / f"hub-{version}" / "bin" / "hf", *words], env=self.environment(home),
                              capture_output=True, text=True, timeout=120, check=False)

    def request(self, method: str, path: str, body: dict | None = None) -> tuple[int, dict]:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode() if body is not None else None,
                                         {"Authorization": f"Bearer {self.tokens['tester']}"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def tell(self, job: str, *acts: dict) -> None:
        request = urllib.request.Request(f"{self.url}/test/{job}", json.dumps(acts).encode(), method="POST")
        urllib.request.urlopen(request, timeout=30).read()

    def soon(self, seconds: float, job: str, *acts: dict) -> None:
        threading.Timer(seconds, self.tell, (job, *acts)).start()

    def end(self) -> int:
        self.process.stdin.close()
        return self.process.wait(30)
