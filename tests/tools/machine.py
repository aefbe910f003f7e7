# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Provides what the sessions of noxfile.py need on this machine besides Python packages.

These are packages of the distribution, real CNI plugins and container runtimes, and the Go programs that libcni is
compared with. Plugins and runtimes come from Debian's packages and are unpacked in the cache, not installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "podwire-cni")

# python3-pyroute2 is for the managed host. In tests and in the demo, that is this machine, through /usr/bin/python3.
TO_RUN = (
    *("ca-certificates", "curl", "iproute2", "iptables", "iputils-ping", "nftables"),
    *("python3", "python3-pyroute2", "python3-venv"),
)
# util-linux had it until Debian 13. Older systems have no util-linux-extra.
PIVOT_ROOT = () if shutil.which("pivot_root", path="/usr/sbin:/sbin:/usr/bin") else ("util-linux-extra",)
TO_TEST = (
    *(*TO_RUN, "debian-archive-keyring", "e2fsprogs", "git", "gnupg", "mmdebstrap", "openssh-client", "openssl"),
    *("procps", "rsync", "shellcheck", "xz-utils", *PIVOT_ROOT),
)
FOR_MACHINES = (
    *("debian-archive-keyring", "e2fsprogs", "mmdebstrap", "openssh-client", "qemu-system-x86", "qemu-utils"),
    *("uidmap", "util-linux"),
)
# For minimal systems of another suite.
FOR_SYSTEMS = ("debian-archive-keyring", "git", "mmdebstrap", "util-linux", *PIVOT_ROOT)
# The browser is Debian's. Its driver comes from PyPI, with a node that needs libatomic1.
TO_BROWSE = ("chromium-headless-shell", "fonts-dejavu-core", "libatomic1")

PLUGINS = "containernetworking-plugins"
# Apptainer is only in sid. Its root has what a host of this collection needs.
APPTAINER_SUITE = "sid"
APPTAINER = ("apptainer", PLUGINS, "busybox-static", "iproute2", "iptables", "nftables", "python3")
# What the image of an execution environment is based on, and what the hosts are that it manages.
EE_SUITE = "trixie"
EE_BASE = ("ca-certificates", "git", "openssh-client", "openssh-server", "python3", "python3-pip")
# What the hosts of an afternoon have.
AFTERNOON_SUITE = "trixie"
AFTERNOON = ("containerd", "iproute2", "iptables", "nftables", "podman", "procps", "python3", "runc")
# containerd, and the last podman with CNI in Debian, with the libraries that a small system lacks.
RUNTIMES_SUITE = "bookworm"
RUNTIMES = (
    *("containerd", "podman", "crun", "conmon", "busybox-static"),
    *("golang-github-containers-common", "golang-github-containers-image"),
    *("libassuan0", "libdevmapper1.02.1", "libglib2.0-0", "libgpg-error0", "libgpgme11", "libseccomp2", "libsubid4"),
    "libyajl2",
)
GO_SUITE = "forky"
# pkg/skel imports the other two.
GO_LIBCNI = ("golang-github-appc-cni-dev", "golang-github-vishvananda-netns-dev", "golang-golang-x-sys-dev")


class Unavailable(Exception):
    """This machine cannot provide something; the message says why."""


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Let no other session do what is named *name* at the same time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def run(*command: str | Path, **options: object) -> str:
    """Run a command and return its output. Raises Unavailable with what it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise Unavailable(f"{' '.join(words)}: {done.stdout}{done.stderr}".strip())
    return str(done.stdout)


def install(packages: Iterable[str]) -> None:
    """Install the packages of the distribution that are missing, with sudo if necessary."""
    if not shutil.which("apt-get"):
        print("There is no apt-get. Install these packages yourself, under your distribution's names:", *packages)
        return
    with lock("apt"):
        missing = [package for package in packages if not _installed(package)]
        if not missing:
            return
        print("Installing the packages", *missing, flush=True)
        apt = [
            *([] if os.geteuid() == 0 else ["sudo", "--"]),
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "-qq",
            # A new machine may be in the middle of its automatic upgrades.
            "-o",
            "DPkg::Lock::Timeout=300",
        ]
        run(*apt, "update")
        run(*apt, "install", "--yes", "--no-install-recommends", *missing)


def _installed(package: str) -> bool:
    query = ["dpkg-query", "--show", "--showformat", "${db:Status-Status}", package]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout == "installed"


def plugins(suite: str) -> Path:
    """Return the directory of the CNI plugins of a Debian suite, after fetching them."""
    return _unpacked(suite, CACHE / "plugins" / suite, (PLUGINS,)) / "usr" / "lib" / "cni"


def runtimes() -> Path:
    """Return the directory with containerd and podman, after fetching them."""
    # The name of the directory depends on the list, so that another list is fetched again.
    key = _key([RUNTIMES_SUITE, *RUNTIMES])
    return _unpacked(RUNTIMES_SUITE, CACHE / f"runtimes-{key}", RUNTIMES)


def containerd(suite: str) -> Path:
    """Return the directory with the containerd of a Debian suite, after fetching it."""
    return runtimes() if suite == RUNTIMES_SUITE else _unpacked(suite, CACHE / "containerd" / suite, ("containerd",))


def apptainer() -> Path:
    """Return the archive of a small system with Apptainer, after making it as root."""
    return _system("apptainer", APPTAINER_SUITE, "essential", APPTAINER)


def ee_base() -> Path:
    """Return the archive of a small system with what an execution environment needs, after making it as root."""
    return _system("ee", EE_SUITE, "minbase", EE_BASE)


def afternoon() -> Path:
    """Return the archive of a new host of Debian 13 with containerd and podman, after making it as root."""
    return _system("afternoon", AFTERNOON_SUITE, "minbase", AFTERNOON)


def _system(name: str, suite: str, variant: str, packages: Iterable[str]) -> Path:
    archive = CACHE / f"{name}-{_key([suite, *packages])}.tar"
    with lock(name):
        if archive.exists():
            return archive
        print("Making a system of", suite, "with", *packages, flush=True)
        made = archive.with_suffix(".new.tar")
        keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
        try:
            run(
                *([] if os.geteuid() == 0 else ["sudo", "--"]),
                *("mmdebstrap", "--quiet", f"--variant={variant}", f"--include={','.join(packages)}"),
                # A mirror's copy of such a suite may be older than its Release file allows.
                '--aptopt=Acquire::Check-Valid-Until "false"',
                *(suite, made, f"deb [signed-by={keyring}] {mirror()} {suite} main"),
            )
            made.rename(archive)
        finally:
            made.unlink(missing_ok=True)
        return archive


def _key(lines: Iterable[str]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()[:12]


def mirror() -> str:
    """Return the mirror of Debian's main archive that this machine is configured for."""
    release = dict(re.findall(r'^(\w+)="?(.*?)"?$', Path("/etc/os-release").read_text(), re.MULTILINE))
    targets = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Identifier: Packages")
    for line in targets.splitlines():
        uri, _blank, codename = line.partition(" ")
        if codename == release.get("VERSION_CODENAME"):
            return uri
    raise Unavailable("this machine's apt sources name no mirror of Debian's main archive; see: apt-get indextargets")


def _unpacked(suite: str, directory: Path, packages: Iterable[str]) -> Path:
    """Unpack packages of a Debian suite, each verified by apt with Debian's keys, and return *directory*.

    apt works in a directory of its own, so that sources, lists and packages of the machine do not change.
    """
    with lock("packages"):
        if directory.is_dir():
            return directory
        print("Fetching", *packages, "of", suite, flush=True)
        if not shutil.which("apt-get"):
            raise Unavailable(f"{directory.name} comes from Debian's archive and needs apt-get, which is not here")
        apt = CACHE / f"apt-{suite}"
        shutil.rmtree(apt, ignore_errors=True)
        for folder in ("lists/partial", "archives/partial", "unpacked"):
            (apt / folder).mkdir(parents=True)
        keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
        (apt / "sources.list").write_text(f"deb [signed-by={keyring}] {mirror()} {suite} main\n")
        settings = [
            *(f"Dir::Etc::SourceList={apt}/sources.list", "Dir::Etc::SourceParts=/dev/null"),
            *("Dir::Etc::Preferences=/dev/null", "Dir::Etc::PreferencesParts=/dev/null"),
            *(f"Dir::State={apt}", "Dir::State::Status=/dev/null", f"Dir::Cache={apt}"),
            *("Acquire::Languages=none", "APT::Sandbox::User="),
        ]
        options = ["-qq", *(word for setting in settings for word in ("-o", setting))]
        run("apt-get", *options, "update")
        run("apt-get", *options, "download", *packages, cwd=apt)
        for package in apt.glob("*.deb"):
            run("dpkg-deb", "--extract", package, apt / "unpacked")
        directory.parent.mkdir(parents=True, exist_ok=True)
        (apt / "unpacked").rename(directory)
        shutil.rmtree(apt)
        return directory


def go_programs() -> Path:
    """Return the directory of the Go programs on Go's libcni: driver, recorder, skel, calls. Builds them if necessary.

    The source of libcni and of what its skel imports is Debian's, and the toolchain comes from PyPI.
    """
    requirements = ROOT / "tests" / "requirements-peer.txt"
    sources = [*ROOT.glob("tests/real/peer/*/*.go"), *ROOT.glob("tests/real/bench/*/*.go")]
    texts = [path.read_text() for path in (requirements, *sorted(sources))]
    build = CACHE / f"peer-{_key([GO_SUITE, *GO_LIBCNI, *texts])}"
    libcni = _unpacked(GO_SUITE, CACHE / f"go-cni-{GO_SUITE}-{_key(GO_LIBCNI)}", GO_LIBCNI)
    with lock("go"):
        if (build / "complete").exists():
            return build
        shutil.rmtree(build, ignore_errors=True)
        go = CACHE / "go"
        complete = go / "complete"
        if not complete.exists() or complete.read_text() != requirements.read_text():
            print("Fetching a Go toolchain", flush=True)
            shutil.rmtree(go, ignore_errors=True)
            run(sys.executable, "-m", "venv", go)
            run(go / "bin" / "python", "-m", "pip", "install", "-qq", "--requirement", requirements)
            complete.write_text(requirements.read_text())
        environment = {
            **os.environ,
            "CGO_ENABLED": "0",
            "GO111MODULE": "off",
            "GOCACHE": f"{CACHE}/go-build",
            "GOENV": "off",
            "GOFLAGS": "-trimpath",
            "GOPATH": f"{libcni}/usr/share/gocode",
            "GOPROXY": "off",
            "GOTOOLCHAIN": "local",
        }
        for folder in ("peer/driver", "peer/recorder", "peer/skel", "bench/calls"):
            source = ROOT / "tests" / "real" / folder
            run(go / "bin" / "go", "vet", ".", cwd=source, env=environment)
            run(go / "bin" / "go", "build", "-o", build / source.name, ".", cwd=source, env=environment)
        (build / "complete").touch()
        return build


def prepare_environment(versions: Iterable[str]) -> None:
    """Set the environment of all sessions, which look for the Pythons *versions* among other programs."""
    # Container images for Python set these variables. They make Ansible several times slower, and no host has them.
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    # As pip does. Sessions forbid Python to write bytecode (see snapshot), so Ansible would be compiled at each start.
    os.environ["UV_COMPILE_BYTECODE"] = "1"
    links = CACHE / "pythons"
    links.mkdir(parents=True, exist_ok=True)
    for version in versions:
        _link(links / f"python{version}", version)
    # On Debian, the PATH of a user lacks the directories of ip, iptables and nft.
    os.environ["PATH"] = f"{links}:{os.environ['PATH']}:/usr/local/sbin:/usr/sbin:/sbin"


def venv_backend() -> str:
    """Return what creates virtual environments: uv, which is fast, or virtualenv where uv reaches no index."""
    # Sessions that run side by side are processes that inherit the answer.
    known = os.environ.get("PODWIRE_VENV_BACKEND")
    if known:
        return known
    # uv reads neither the machine's certificates nor the settings of pip by itself.
    os.environ.setdefault("UV_SYSTEM_CERTS", "1")
    settings = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    for name, variable in (
        ("index-url", "UV_DEFAULT_INDEX"),
        ("find-links", "UV_FIND_LINKS"),
        ("cert", "SSL_CERT_FILE"),
    ):
        for value in re.findall(rf"^(?:global|install|:env:)\.{name}='(.*)'$", settings.stdout, re.MULTILINE):
            os.environ.setdefault(variable, value)
    probe = ["uv", "pip", "compile", "--quiet", "--no-cache", "-"]
    done = (
        subprocess.run(probe, input="nox", capture_output=True, text=True, check=False) if shutil.which("uv") else None
    )
    os.environ["PODWIRE_VENV_BACKEND"] = "virtualenv" if done is None or done.returncode else "uv"
    return os.environ["PODWIRE_VENV_BACKEND"]


def _link(link: Path, version: str) -> None:
    """Make *link* a link to a Python that works, if there is one: those of pyenv are found behind its shims."""
    if python(version, str(link)):
        return
    link.unlink(missing_ok=True)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python{version}")]
    for candidate in filter(None, found):
        if real := python(version, str(candidate)):
            link.symlink_to(real)
            return


def python(version: str, command: str | None = None) -> str | None:
    """Return the path of the Python *version*, of the given *command* or the one in PATH, if it runs."""
    with contextlib.suppress(OSError):
        done = subprocess.run(
            [command or f"python{version}", "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"],
            capture_output=True,
            text=True,
            check=False,
        )
        found, _blank, path = done.stdout.strip().partition(" ")
        if found == version:
            return path
    return None


def acquire_root() -> None:
    """Fail unless sudo works without a question, because the sessions have no terminal."""
    if os.geteuid() != 0:
        run("sudo", "--non-interactive", "true")


def chromium() -> str:
    """Return the path of a Chromium, after installing it if there is none."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    found = next(filter(None, map(shutil.which, names)), None)
    install(TO_BROWSE[-1:] if found else TO_BROWSE)
    found = next(filter(None, map(shutil.which, names)), None)
    if not found:
        raise Unavailable(f"there is no Chromium, and {', '.join(TO_BROWSE)} cannot be installed")
    return found


@contextlib.contextmanager
def run_directory(runs: Path, remove: Callable[[Path], None]) -> Iterator[Path]:
    """Provide a directory for one run in *runs*, and *remove* it afterwards, and those of runs that have died."""
    runs.mkdir(parents=True, exist_ok=True)
    for run in runs.glob("run.*"):
        with open(run / "lock", "a") as stream, contextlib.suppress(BlockingIOError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(run)
    directory = Path(tempfile.mkdtemp(prefix="run.", dir=runs))
    with open(directory / "lock", "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        try:
            yield directory
        finally:
            remove(directory)


def write_integration_config(path: Path) -> None:
    """Write the variables of the integration tests: where plugins and runtimes are."""
    path.write_text(f"""\
---
cni_test_plugins_old: {plugins("bookworm")}
cni_test_plugins_new: {plugins("forky")}
cni_test_runtimes: {runtimes()}
cni_test_containerds: [{containerd("trixie")}, {containerd("forky")}]
""")
