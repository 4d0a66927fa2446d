"""A client of the edge that is as strict as Python 3.13 and newer are by themselves.

    python strict_client.py TLS_PORT HOST [CAFILE]

Prints how it went as one line: the answer, or the kind of the failure and OpenSSL's word for it. Runs under any
Python from 3.10 on, without packages."""

import socket
import ssl
import sys

STRICT = ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN


def main(port: str, host: str, cafile: str | None = None) -> str:
    context = ssl.create_default_context(cafile=cafile)
    by_itself = context.verify_flags & STRICT == STRICT
    if sys.version_info >= (3, 13) and not by_itself:
        return "this Python should be strict by itself"
    context.verify_flags |= STRICT
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as raw, \
                context.wrap_socket(raw, server_hostname=host) as tls:
            tls.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while piece := tls.recv(65536):
                answer += piece
            return f"{tls.version()} {tls.selected_alpn_protocol()} {answer.decode().splitlines()[-1]}"
    except ssl.SSLCertVerificationError as error:
        return f"refused: {error.verify_message}"


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
