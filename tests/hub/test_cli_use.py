"""The program `cay` as people type it: help, bad input, where the state is."""

import os
import re
import stat
import subprocess

import pytest

from hub_host import CAY, clean_environment, run_cay

VERBS = {
    "serve": [],
    "env": [],
    "token": ["create", "list", "revoke", "show"],
    "image": ["pull", "import", "ls", "rm", "prune", "alias"],
    "trust": ["install", "remove"],
}


def all_verbs():
    for verb, parts in VERBS.items():
        yield [verb]
        yield from ([verb, part] for part in parts)


def complaint(done: subprocess.CompletedProcess, status: int = 2) -> str:
    """The one line on stderr of a run that failed."""
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.endswith("\n") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()


def test_help_names_the_verbs():
    done = run_cay("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize("verb", all_verbs(), ids=" ".join)
def test_each_verb_has_help(verb):
    done = run_cay(*verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--help" in done.stdout
    for part in VERBS[verb[0]] if len(verb) == 1 else ():
        assert part in done.stdout
    if len(verb) == 2 or not VERBS[verb[0]]:
        assert "--state" in done.stdout and "CAY_STATE" in done.stdout


def test_version():
    done = run_cay("--version")
    assert done.returncode == 0 and re.fullmatch(r"cay \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize("arguments, words", [
    ((), "cay: say what to do: one of serve, env, token, image, trust"),
    (("fly",), "cay: unknown verb 'fly'"),
    (("--fly",), "cay: unknown argument '--fly'"),
    (("token",), "cay token: say what to do: one of create, list, revoke, show"),
    (("token", "steal"), "cay token: unknown verb 'steal'"),
    (("token", "list", "--fly"), "cay token list: unknown argument '--fly'"),
    (("token", "list", "more"), "cay token list: unknown argument 'more'"),
    (("token", "create"), "NAME is required"),
    (("token", "create", "x", "--role", "king"), "--role: 'king' is not admin, user or proxy"),
    (("token", "create", "x", "--expires", "soon"), "--expires: 'soon' is not a time such as 30d"),
    (("token", "create", "x", "--expires", "0"), "--expires"),
    (("env", "--shell", "tcsh"), "--shell"),
    (("env", "--trust", "blindly"), "--trust"),
    (("serve", "--port", "70000"), "--port: '70000' is not a number from 0 to 65535"),
    (("serve", "--listen", "0.0.0.0"), "reach the hub by TLS only"),
    (("serve", "--tls-cert", "/etc/passwd"), "go together"),
    (("image", "pull"), "NAME is required"),
    (("image", "import", "x"), "PATH is required"),
    (("image", "alias", "x"), "TARGET is required"),
    (("image", "ls", "--state", ""), "--state"),
])
def test_bad_input_is_one_line_and_status_2(arguments, words, tmp_path):
    done = run_cay(*arguments, env=clean_environment(HOME=str(tmp_path), CAY_STATE=str(tmp_path / "state")))
    assert words in complaint(done)
    assert not (tmp_path / "state").exists()


def test_where_no_hub_has_run_is_told(tmp_path):
    for verb in (("env",), ("token", "list"), ("token", "create", "x"), ("trust", "install")):
        said = complaint(run_cay(*verb, "--state", tmp_path / "none"), 3)
        assert f"cay serve --state {tmp_path}/none" in said
    assert not (tmp_path / "none").exists()


def test_the_state_is_given_by_flag_or_variable(tmp_path):
    env = clean_environment(CAY_STATE=str(tmp_path / "variable"))
    assert run_cay("image", "ls", env=env).returncode == 0
    assert (tmp_path / "variable/images").is_dir()
    assert run_cay("image", "ls", "--state", tmp_path / "a/flag", env=env).returncode == 0
    assert stat.S_IMODE((tmp_path / "a/flag").stat().st_mode) == 0o700
    assert run_cay("image", "ls", "--state", "relative", cwd=tmp_path).returncode == 0
    assert (tmp_path / "relative/images").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_an_ordinary_user_has_a_state_of_their_own(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 12345, 12345)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != folder.parent and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    # The build folder may be one that only root can pass.
    cay = tmp_path / "cay"
    cay.write_bytes(CAY.read_bytes())
    cay.chmod(0o755)
    for variables, state in (({"HOME": str(home)}, home / ".local/state/cay"),
                             ({"HOME": "/", "XDG_STATE_HOME": str(home / "x")}, home / "x/cay")):
        done = run_cay("image", "ls", binary=cay, env={"PATH": "/usr/bin:/bin", **variables}, user=12345, group=12345,
                       extra_groups=[])
        assert (done.returncode, done.stderr) == (0, "")
        assert (state / "images").is_dir()
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        assert state.stat().st_uid == 12345
    # That of root is not theirs.
    run_cay("image", "ls", "--state", tmp_path / "roots")
    done = run_cay("image", "ls", "--state", tmp_path / "roots", binary=cay, user=12345, group=12345, extra_groups=[])
    assert done.returncode != 0 and str(tmp_path / "roots") in done.stderr


def test_what_cannot_be_printed_is_a_failure(tmp_path):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([CAY, "image", "ls", "--state", tmp_path], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert done.returncode == 1 and "could not be written" in done.stderr
