"""What the transports of huggingface_hub do at the edge, by the HTTP library of the environment that runs this.

    python edge_client.py get DIRECT_PORT|PROXY_URL BUNDLE TOKEN URL     one answer, as {"status", "body"}
    python edge_client.py wait API_PORT TOKEN JOB URL SECONDS            waits for a sandbox as the client does

`wait` reads proxy and trust from its environment, as the client does. Prints one line of JSON."""

import json
import ssl
import sys
import time
import urllib.parse
import urllib.request

try:
    import httpx2 as httpx
except ImportError:
    import httpx


def get(way: str, bundle: str, token: str, url: str) -> dict:
    context = ssl.create_default_context(cafile=bundle)
    headers = {"Authorization": f"Bearer {token}"}
    if way.startswith("http://"):
        with httpx.Client(verify=context, proxy=way, timeout=60) as client:
            answer = client.get(url, headers=headers)
    else:
        host = urllib.parse.urlsplit(url).netloc
        headers["Host"] = host
        with httpx.Client(verify=context, trust_env=False, timeout=60) as client:
            answer = client.get(url.replace(host, f"127.0.0.1:{way}"), headers=headers,
                                extensions={"sni_hostname": host.split(":")[0]})
    return {"status": answer.status_code, "body": answer.text}


def wait(api_port: str, token: str, job: str, url: str, seconds: str) -> dict:
    """Health at least every 0.15 s, the job at most every 2 s, until something is answered or the job is over."""
    failures = set()
    last = 0.0
    begun = time.monotonic()
    while time.monotonic() < begun + float(seconds):
        try:
            with httpx.Client(timeout=5) as client:
                answer = client.get(f"{url}/health", headers={"Authorization": f"Bearer {token}"})
            return {"status": answer.status_code, "body": answer.text}
        except httpx.HTTPError as error:
            failures.add(type(error).__name__)
        if time.monotonic() > last + 2:
            last = time.monotonic()
            request = urllib.request.Request(f"http://127.0.0.1:{api_port}/inspect/{job}",
                                             headers={"Authorization": f"Bearer {token}"})
            stage = json.load(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request))
            if stage["stage"] != "RUNNING":
                return {**stage, "failures": sorted(failures), "seconds": time.monotonic() - begun}
        time.sleep(0.15)
    return {"stage": "waited in vain", "failures": sorted(failures)}


if __name__ == "__main__":
    print(json.dumps({"get": get, "wait": wait}[sys.argv[1]](*sys.argv[2:])))
