"""A root of its own: packages, users, /etc and /tmp of one sandbox are its own and nobody else's."""

from __future__ import annotations

import base64
import os
import subprocess
import zipfile

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def pair(pool):
    made = pool.create(paths="root"), pool.create(paths="root")
    yield made
    for one in made:
        one.delete()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    path = tmp_path_factory.mktemp("wheel") / "caytest-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("caytest.py", "print('the wheel works')\n")
        archive.writestr("caytest-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: caytest\nVersion: 1.0\n")
        archive.writestr(
            "caytest-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("caytest-1.0.dist-info/entry_points.txt", "[console_scripts]\ncaytest=caytest:main\n")
        archive.writestr("caytest-1.0.dist-info/RECORD", "")
    return path


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deb") / "caytest"
    for name in ("DEBIAN", "usr/bin", "etc/caytest", "var/lib/caytest"):
        (folder / name).mkdir(parents=True)
    (folder / "DEBIAN/control").write_text(
        "Package: caytest\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.com>\nDescription: a test\n"
    )
    (folder / "DEBIAN/postinst").write_text(
        "#!/bin/sh\nset -e\nadduser --system --no-create-home --group caytest-user 2>/dev/null || useradd -r caytest-user\n"
        "chown caytest-user /var/lib/caytest\nchmod 4755 /usr/bin/caytest\n"
    )
    (folder / "DEBIAN/postinst").chmod(0o755)
    (folder / "usr/bin/caytest").write_text("#!/bin/sh\necho the package works\n")
    (folder / "usr/bin/caytest").chmod(0o755)
    (folder / "etc/caytest/conf").write_text("x\n")
    path = folder.parent / "caytest.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", folder, path], check=True, capture_output=True)
    return path


def upload(sandbox, local, path):
    assert sandbox.client().put("/v1/files/write", local.read_bytes(), path=path).status == 200


def ok(sandbox, command, **fields):
    done = sandbox.client(timeout=120).exec(command, **fields)
    assert done.exit["exit_code"] == 0, (command, done.stdout[-2000:], done.stderr[-2000:], done.exit)
    return done.stdout


def test_pip_install(pair, wheel):
    one, two = pair
    upload(one, wheel, f"/tmp/{wheel.name}")
    ok(one, f"python3 -m pip install --break-system-packages --no-index --root-user-action=ignore /tmp/{wheel.name}")
    assert ok(one, "cd /; python3 -c 'import caytest'") == "the wheel works\n"
    assert two.client().exec("cd /; python3 -c 'import caytest'").exit["exit_code"] != 0
    assert (
        subprocess.run(["/usr/bin/python3", "-c", "import caytest"], capture_output=True, check=False).returncode != 0
    )


def test_venv(pair, wheel):
    one, _ = pair
    upload(one, wheel, f"/tmp/{wheel.name}")
    ok(one, f"python3 -m venv /root/v && /root/v/bin/pip install --no-index /tmp/{wheel.name}")
    assert ok(one, "/root/v/bin/python -c 'import caytest'") == "the wheel works\n"


@pytest.mark.parametrize("how", ["dpkg -i /tmp/caytest.deb", "apt-get install -y /tmp/caytest.deb"])
def test_debian_package(pair, package, how):
    one, two = pair
    upload(one, package, "/tmp/caytest.deb")
    ok(one, how, env={"DEBIAN_FRONTEND": "noninteractive"})
    assert ok(one, "caytest") == "the package works\n"
    assert "caytest-user" in ok(one, "cat /etc/passwd") and "install ok installed" in ok(one, "dpkg -s caytest")
    assert ok(one, "stat -c %U /var/lib/caytest").strip() == "caytest-user"
    assert two.client().exec("caytest || dpkg -s caytest").exit["exit_code"] != 0
    assert "caytest-user" not in two.client().exec("cat /etc/passwd").stdout
    assert not os.path.exists("/usr/bin/caytest") and "caytest-user" not in open("/etc/passwd").read()
    ok(one, "dpkg --purge caytest", env={"DEBIAN_FRONTEND": "noninteractive"})
    assert one.client().exec("caytest").exit["exit_code"] == 127


def test_writing_everywhere(pair):
    one, two = pair
    mark = base64.b16encode(os.urandom(6)).decode()
    places = [
        "/etc",
        "/usr/bin",
        "/usr/local/lib",
        "/opt",
        "/var/lib",
        "/srv",
        "/root",
        "/home",
        "/tmp",
        "/var/tmp",
        "/dev/shm",
        "/",
        "/usr/lib/python3",
    ]
    for place in places:
        ok(one, f"mkdir -p {place} && echo x > {place}/{mark}")
        assert two.client().exec(f"ls {place}/{mark}").exit["exit_code"] != 0, place
        assert not os.path.exists(f"{place}/{mark}"), place
    ok(one, "echo changed >> /etc/hostname; rm /usr/bin/who; mv /usr/bin/env /usr/bin/env2")
    assert (
        two.client()
        .exec("test -e /usr/bin/who && test -e /usr/bin/env && ! grep changed /etc/hostname")
        .exit["exit_code"]
        == 0
    )
    assert os.path.exists("/usr/bin/who") and os.path.exists("/usr/bin/env")


def test_users(pair):
    one, two = pair
    ok(one, "useradd -m -u 1500 alice && echo alice:secret | chpasswd")
    assert ok(one, "su alice -c 'id -un; id -u; cd; pwd; echo x > f; stat -c %U f'").split() == [
        "alice",
        "1500",
        "/home/alice",
        "alice",
    ]
    assert one.client().exec("su alice -c 'cat /etc/shadow'").exit["exit_code"] != 0, "users are told apart"
    assert one.client().exec("su alice -c 'echo x > /etc/x'").exit["exit_code"] != 0
    ok(one, "setpriv --reuid=1500 --regid=1500 --clear-groups id")
    assert two.client().exec("id alice").exit["exit_code"] != 0
    assert subprocess.run(["id", "alice"], capture_output=True, check=False).returncode != 0


def test_setuid_and_owners(pair):
    one, _ = pair
    ok(
        one,
        "useradd -u 1501 bob; cp /usr/bin/id /usr/local/bin/suid-id; chown bob /usr/local/bin/suid-id; chmod 4755 /usr/local/bin/suid-id",
    )
    assert ok(one, "stat -c %U:%a /usr/local/bin/suid-id").strip() == "bob:4755"
    ok(one, "chown 40000:50000 /tmp && stat -c %u:%g /tmp")
    assert one.client().exec("chown 70000 /tmp").exit["exit_code"] != 0, "65536 ids, no more"


def test_the_image_is_whole(pair):
    one, _ = pair
    assert ok(one, "stat -c %u:%g /usr/bin/env /etc/passwd / /usr").split() == ["0:0"] * 4
    assert ok(one, "id -u; id -un; echo $HOME $USER").split() == ["0", "root", "/root", "root"]
    assert ok(one, "dpkg -l | wc -l") and ok(one, "python3 -c 'import ssl, sqlite3; print(1)'")
    assert ok(one, "ls -A /root /home /srv").split("\n")
    assert ok(one, "stat -c %a /tmp").strip() == "1777"
    assert ok(one, "readlink /bin /lib").split() == ["usr/bin", "usr/lib"]
    assert ok(one, "touch /dev/null && echo x > /dev/null && head -c1 /dev/urandom | wc -c; ls /dev/pts").strip()
    assert ok(one, "python3 -c 'import os; a, b = os.openpty(); print(os.ttyname(b))'").startswith("/dev/pts/")
    assert int(ok(one, "ls /proc | grep -c '^[0-9]'")) < 10


def test_a_local_root_as_image(start_pool, tmp_path):
    """A folder with a few programs is an image too."""
    images = tmp_path / "images"
    root = images / "tiny"
    for name in ("bin", "etc", "proc", "dev", "tmp", "root", "usr", "sys"):
        (root / name).mkdir(parents=True)
    busybox = next(
        (p for p in ("/bin/busybox", "/usr/bin/busybox", "/usr/lib/initramfs-tools/bin/busybox") if os.path.exists(p)),
        None,
    )
    if busybox is None:
        source = tmp_path / "sh.c"
        source.write_text(
            '#include <stdio.h>\nint main(int n, char **a) { printf("tiny %s\\n", n > 2 ? a[2] : ""); FILE *f = fopen("/etc/made", "w"); return f == 0; }\n'
        )
        subprocess.run(["cc", "-static", "-o", root / "bin/sh", source], check=True)
    else:
        subprocess.run(["cp", busybox, root / "bin/sh"], check=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    pool = start_pool(flags=["--images", str(images)])
    sandbox = pool.create(image="tiny")
    done = sandbox.client().exec("echo hello > /etc/made")
    assert done.exit["exit_code"] == 0, (done.stdout, done.stderr, done.exit)
    assert not (root / "etc/made").exists(), "the image itself is not written to"
    sandbox.delete()


def test_tmp_survives_commands(pair):
    one, two = pair
    ok(one, "echo x > /tmp/kept; echo y > /dev/shm/kept")
    assert ok(one, "cat /tmp/kept /dev/shm/kept") == "x\ny\n"
    assert two.client().exec("ls /tmp/kept /dev/shm/kept").exit["exit_code"] != 0


def test_own_abstract_sockets_and_signals_between_commands(pair):
    one, _ = pair
    client = one.client()
    process = client.spawn(
        [
            "/usr/bin/python3",
            "-c",
            "import os, socket\ns=socket.socket(socket.AF_UNIX); s.bind('\\0' + os.environ['SBX_SANDBOX_ID']); s.listen(); print('up', flush=True); s.accept()[0].send(b'hello')\nimport signal; signal.pause()",
        ]
    )
    while "up" not in client.output(f"/v1/processes/{process['id']}").stdout:
        pass
    assert (
        ok(
            one,
            [
                "/usr/bin/python3",
                "-c",
                "import os, socket\ns=socket.socket(socket.AF_UNIX); s.connect('\\0' + os.environ['SBX_SANDBOX_ID']); print(s.recv(9).decode())",
            ],
        )
        == "hello\n"
    )
    ok(one, f"kill -INT {process['pid']}")
    assert client.output(f"/v1/processes/{process['id']}", follow=1).exit["signal"] == 2


def test_the_kernels_view_is_private(pair):
    one, two = pair
    ok(one, "sleep 30 > /dev/null 2>&1 &")
    assert "sleep" not in two.client().exec("ps ax 2>/dev/null || cat /proc/*/comm").stdout
    ok(one, "ipcmk -M 4096")
    assert two.client().exec("cat /proc/sysvipc/shm | wc -l").stdout.strip() == "1"
