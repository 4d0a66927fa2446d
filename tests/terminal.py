"""Programs on a terminal."""

import os
import pty
import subprocess


def on_terminal(command, *, stream: str = "stdout", **options) -> tuple[int, str]:
    """The exit status of a program, and what it writes to a stream of it that is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, **{stream: theirs}, **options)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # nobody has the other end
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    return process.wait(60), text.decode()
