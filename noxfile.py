# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of this collection; `nox -l` lists them. antsibull-nox adds those of antsibull-nox.toml.

Sessions that change a host run as root in private namespaces (tests/private.sh).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import antsibull_nox
import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tests" / "tools"))
import engine_sessions  # noqa: E402, F401
import machine  # noqa: E402
from sessions import PRIVATE, add_coverage, count, count_junit, link, provide_pip, pytest, requirements, snapshot  # noqa: E402

HOST_PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
# The controller's Pythons of each supported ansible-core, the newest first.
CORES = {
    "2.19": ("3.13", "3.12", "3.11"),
    "2.20": ("3.14", "3.13", "3.12"),
    "2.21": ("3.14", "3.13", "3.12"),
    "2.22": ("3.15", "3.14", "3.13"),
}
# Tested only by name, until it is released.
CANDIDATE = "2.22"
OWN_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# Whether the unit tests report which lines they cover; `./run test --coverage` sets this.
COVERAGE = bool(os.environ.get("PODWIRE_COVERAGE"))

nox.needs_version = ">=2026.7.11"
nox.options.default_venv_backend = machine.venv_backend()
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"
nox.options.allow_parallel = True
nox.options.envdir = str(machine.CACHE / "nox")

machine.prepare_environment(HOST_PYTHONS)
antsibull_nox.load_antsibull_nox_toml()


# --- lint


@nox.session
def texts(session: nox.Session) -> None:
    """Check changelog fragments, spelling, words, shell scripts and workflows."""
    session.install("antsibull-changelog", "codespell", "check-jsonschema")
    machine.install(["shellcheck"])
    session.run("antsibull-changelog", "lint")
    session.run("codespell")
    session.run("python", "tests/tools/prose.py")
    workflows = map(str, Path(".github", "workflows").glob("*.yml"))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    files = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True, text=True).stdout.split("\0")
    scripts = [name for name in filter(None, files) if re.match(r"#!.*\b(ba|da)?sh$", _first_line(Path(name)))]
    session.run("shellcheck", "--external-sources", *scripts, external=True)
    count(session, passed=5)


def _first_line(path: Path) -> str:
    with open(path, "rb") as stream:
        return stream.readline(200).decode(errors="replace").rstrip()


@nox.session
def scenarios(session: nox.Session) -> None:
    """Check that molecule accepts the configuration of every scenario."""
    requirements(session, "molecule")
    session.env["MOLECULE_EPHEMERAL_DIRECTORY"] = session.create_tmp()
    with snapshot(session):
        session.run("molecule", "-c", "molecule/config.yml", "list", silent=True)


@nox.session
def installed(session: nox.Session) -> None:
    """Build and install the collection, and check that ansible-doc shows every module in full."""
    requirements(session, "run")
    with snapshot(session) as copy, tempfile.TemporaryDirectory(prefix="podwire-") as work:
        session.run("ansible-galaxy", "collection", "build", "--output-path", work, ".", silent=True)
        (archive,) = map(str, Path(work).glob("*.tar.gz"))
        options = ["--offline", "--collections-path", f"{work}/installed"]
        session.run("ansible-galaxy", "collection", "install", *options, archive, silent=True)
        session.env["ANSIBLE_COLLECTIONS_PATH"] = f"{work}/installed"
        modules = sorted(f"podwire.cni.{path.stem}" for path in copy.glob("plugins/modules/cni_*.py"))
        shown = json.loads(str(session.run("ansible-doc", "--type", "module", "--json", *modules, silent=True)))
    assert sorted(shown) == modules, shown.keys()
    for name, entry in shown.items():
        missing = [part for part in ("doc", "examples", "return") if not entry[part]]
        if missing:
            session.error(f"{name} has no {', '.join(missing)}")
    count(session, passed=1 + len(modules))


@nox.session
def docsite(session: nox.Session) -> None:
    """Build the docs site, without a warning, and without anything that it would load from elsewhere."""
    requirements(session, "docsite")
    output = machine.CACHE / "docsite"
    with snapshot(session), machine.lock("docsite"):
        session.run("python", "tests/tools/docsite.py", str(output))
    count(session, passed=len(list(output.rglob("*.html"))))


@nox.session
def hook(session: nox.Session) -> None:
    """Let pre-commit install the linter from this repository, and run it on another one."""
    requirements(session, "hook")
    with snapshot(session):
        pytest(session, *(session.posargs or ["tests/real/hook"]), private=False)


# --- ansible-test, without containers


def ansible_core(session: nox.Session, core: str) -> None:
    machine.install(machine.TO_TEST)
    # A release candidate counts until there is a release.
    session.install(f"ansible-core>={core}.0rc1,=={core}.*", "-r", "meta/ee-requirements.txt")
    requirements(session, "units")


def sanity(session: nox.Session, core: str) -> None:
    """Run the sanity tests with one ansible-core, on all Pythons that it supports and that are here."""
    ansible_core(session, core)
    provide_pip(session)
    with snapshot(session), tempfile.NamedTemporaryFile("w+", suffix=".log") as log:
        command = ["ansible-test", "sanity", "--color", "no", "--requirements", *session.posargs]
        # All of them create their environments in the same place.
        with machine.lock("ansible-test"):
            session.run(*command, stdout=log, stderr=subprocess.STDOUT, success_codes=[0, 1])
        log.seek(0)
        text = log.read()
    tests = set(re.findall(r'^Running sanity test "([^"]*)"', text, re.MULTILINE))
    failed = sum(map(int, re.findall(r"^FATAL: The (\d+) sanity test.* failed", text, re.MULTILINE)))
    skipped = sorted(set(re.findall(r"^WARNING: (Skipping sanity test .*)", text, re.MULTILINE)))
    count(session, len(tests) - failed, failed, skipped)
    if failed or not tests:
        print(text)
        session.error(f"{failed} sanity tests failed")
    print(f"ansible-core {core}:", *sorted(tests))


def units_controller(session: nox.Session, core: str) -> None:
    """Run the unit tests of modules and of the controller with one ansible-core."""
    ansible_core(session, core)
    machine.acquire_root()
    # ansible-test measures with one version of coverage only.
    pinned = (
        "import sys; from ansible_test._internal.coverage_util import get_coverage_version as pinned; "
        "version = '{}.{}'.format(*sys.version_info); print(version, pinned(version).coverage_version)"
    )
    version, coverage = str(session.run("python", "-c", pinned, silent=True)).split()
    session.install(f"coverage=={coverage}")
    with snapshot(session), tempfile.TemporaryDirectory(prefix="podwire-") as reports:
        # ansible-test writes to the tree, so it gets a copy that root owns and that ends with the namespaces. It gets
        # one worker, because the tests share the host of these namespaces.
        script = (
            'mkdir -p ~/ansible_collections/podwire && cp -r . ~/ansible_collections/podwire/cni && '
            'cd ~/ansible_collections/podwire/cni && { ansible-test units "${@:2}"; status=$?; }; '
            'cp tests/output/junit/*.xml "$1"; '
            '[ ! -e tests/output/coverage ] || ansible-test coverage report >"$1/coverage"; exit $status'
        )  # fmt: skip
        exclude = ["--exclude", "tests/unit/plugins/module_utils/"]
        measured = ["--coverage"] if COVERAGE else []
        options = ["--color", "no", *measured, "--python", version, "--num-workers", "1", *(session.posargs or exclude)]
        try:
            session.run(PRIVATE, "bash", "-c", script, "bash", reports, *options, external=True)
        finally:
            for report in Path(reports).glob("*.xml"):
                count_junit(session, report)
        if COVERAGE:
            (total,) = re.findall(r"^TOTAL.* (\d+)%$", Path(reports, "coverage").read_text(), re.MULTILINE)
            add_coverage(session, total, "plugins")


def own_core() -> str:
    """Return the newest ansible-core that the Python of nox can run."""
    known = [core for core, pythons in CORES.items() if OWN_PYTHON in pythons]
    return next((core for core in reversed(known) if core != CANDIDATE), CANDIDATE)


def newest_core() -> str:
    """Return the newest released ansible-core that a Python of this machine can run."""
    known = [core for core, pythons in CORES.items() if any(map(machine.python, pythons))]
    return next((core for core in reversed(known) if core != CANDIDATE), CANDIDATE)


# The unit tests run with the newest Python wherever it is installed.
_units_cores = {own_core(), newest_core()} if machine.python(HOST_PYTHONS[-1]) else {own_core()}
for _core, _pythons in CORES.items():
    _python = next(filter(machine.python, _pythons), None)
    for _function, _defaults in ((sanity, {own_core(), newest_core()}), (units_controller, _units_cores)):

        def _session(session: nox.Session, function=_function, core=_core, wanted=_python) -> None:
            if not wanted:
                session.skip(f"ansible-core {core} needs one of Python {', '.join(CORES[core])}, and none is here")
            function(session, core)

        _session.__doc__ = f"{str(_function.__doc__).rstrip('.')}: {_core}."
        # The tags are the parts of `./run test`.
        _tags = [_function.__name__.partition("_")[0]] if _core in _defaults else []
        _decorate = nox.session(
            name=f"{_function.__name__}-{_core}", python=_python or False, default=bool(_tags), tags=_tags
        )
        _decorate(_session)


# --- tests


@nox.session(python=HOST_PYTHONS, tags=["units"])
def units_host(session: nox.Session) -> None:
    """Run the unit tests of the code for managed hosts, without Ansible, on each Python that a host may have."""
    requirements(session, "host")
    machine.install(machine.TO_TEST)
    machine.acquire_root()
    main = session.python == OWN_PYTHON
    # The tests on bad input take most of the time, and one Python runs all of their examples.
    session.env.update({} if main else {"PODWIRE_EXAMPLES": "8"})
    if str(session.python) in ("3.12", "3.13", "3.14"):
        # Much cheaper, and not there before 3.12.
        session.env["COVERAGE_CORE"] = "sysmon"
    tests = "tests/unit/plugins/module_utils"
    with snapshot(session):
        if session.posargs:
            pytest(session, *session.posargs)
        else:
            wanted = [tests] if main else [f"{tests}/libcni", f"{tests}/_host"]
            pytest(session, *wanted, covered="plugins/module_utils" if COVERAGE else "")


@nox.session
def integration(session: nox.Session) -> None:
    """Run the modules, roles and playbooks on real hosts, which are namespaces of this machine."""
    requirements(session, "integration")
    machine.install(machine.TO_TEST)
    machine.acquire_root()
    workers = len(os.sched_getaffinity(0))
    with snapshot(session) as copy:
        machine.write_integration_config(copy / "tests" / "integration" / "integration_config.yml")
        python = str(session.run("python", "-c", "import sys; print(sys.executable)", silent=True)).strip()
        # Each worker has private namespaces of its own.
        each = [
            f"--tx={workers}*popen//python={PRIVATE} {python}",
            "--dist=loadgroup",
            "--no-loadscope-reorder",
            "--durations=25",
            # They are in memory.
            "--override-ini=tmp_path_retention_policy=failed",
        ]
        named = any(Path(word.partition("::")[0]).exists() for word in session.posargs)
        pytest(
            session,
            *each,
            *session.posargs,
            *([] if named else ["tests/host", "tests/play", "tests/docs"]),
            private=False,
        )


@nox.session
def runtimes(session: nox.Session) -> None:
    """Verify with a real runtime what cni_conf writes and predicts; --all with every runtime, NAME... with some."""
    requirements(session, "cri")
    machine.install(machine.TO_TEST)
    machine.acquire_root()
    suites = ("bookworm", "trixie", "forky") if session.posargs else ("bookworm",)
    arguments = [word for word in session.posargs if word != "--all"] if session.posargs else ["--short"]
    containerds = [word for suite in suites for word in ("--containerd", str(machine.containerd(suite)))]
    options = ["--plugins", str(machine.plugins("bookworm")), "--packages", str(machine.runtimes()), *containerds]
    if session.posargs:
        options += ["--newer", str(machine.plugins("forky"))]
    skipped = []
    try:
        options += ["--apptainer", str(machine.apptainer())]
    except machine.Unavailable as reason:
        skipped.append(f"Apptainer: no system with it can be made: {' '.join(str(reason).splitlines()[-2:])}")
    with snapshot(session):
        session.run(PRIVATE, "python", "tests/real/runtimes", *options, *arguments, external=True)
    count(session, passed=1, skipped=skipped)


@nox.session
def peer(session: nox.Session) -> None:
    """Compare libcni with Go's and with Multus: the same commands, planted bugs, interoperation, recorded answers."""
    machine.install(machine.TO_TEST)
    machine.acquire_root()
    try:
        programs = machine.go_programs()
    except machine.Unavailable as reason:
        session.skip(f"no source of Go's libcni or no Go toolchain: {reason}")
    session.env["PYTHONDONTWRITEBYTECODE"] = "1"
    driver, recorder = str(programs / "driver"), str(programs / "recorder")
    arguments = session.posargs or ["--cases", "104"]
    session.run("python", "tests/real/peer/peer.py", driver, recorder, *arguments)
    if {"--case", "--category", "--help"} & set(arguments):
        return
    session.run(
        PRIVATE, "python", "tests/real/peer/skel_peer.py", str(programs / "skel"), "--cases", "1000", external=True
    )
    session.run("python", "tests/real/peer/mutants.py", driver, recorder)
    old, new = str(machine.plugins("bookworm")), str(machine.plugins("forky"))
    session.run(PRIVATE, "python", "tests/real/peer/interop.py", driver, old, new, external=True)
    with snapshot(session):
        session.run(PRIVATE, "python", "tests/real/peer/multus_peer.py", recorder, new, external=True)
    cases = arguments[arguments.index("--cases") + 1] if "--cases" in arguments else "1000"
    count(session, passed=int(cases) + 1000 + 3)


@nox.session
def browser(session: nox.Session) -> None:
    """Test the report of the playbook drift in Chromium."""
    requirements(session, "browser")
    try:
        session.env["CHROMIUM"] = machine.chromium()
    except machine.Unavailable as reason:
        session.skip(str(reason))
    with snapshot(session) as copy, tempfile.TemporaryDirectory(prefix="podwire-") as files:
        session.env["PYTHONPATH"] += f":{copy}/tests/real/browser"
        pytest(session, f"--basetemp={files}/tests", *(session.posargs or ["tests/real/browser"]), private=False)


# --- by hand


@nox.session(default=False)
def config(session: nox.Session) -> None:
    """Write tests/integration/integration_config.yml, for `ansible-test integration` by hand."""
    machine.install(machine.TO_TEST)
    path = ROOT / "tests" / "integration" / "integration_config.yml"
    machine.write_integration_config(path)
    print(f"Written: {path}")


def prepare_to_run(session: nox.Session) -> None:
    requirements(session, "run")
    machine.install([*machine.TO_RUN, machine.PLUGINS])
    link(session)


@nox.session(default=False)
def demo(session: nox.Session) -> None:
    """Bootstrap a host end to end, in a namespace of its own."""
    prepare_to_run(session)
    session.env["PODWIRE_DEMO_REPORT"] = str(machine.CACHE / "demo-report")
    session.run(PRIVATE, "demo/run.sh", external=True)


@nox.session(default=False)
def playground(session: nox.Session) -> None:
    """Start three hosts, which are namespaces of this machine, and a shell in which to use them."""
    prepare_to_run(session)
    session.run("demo/playground.sh", str(machine.CACHE / "playground"), external=True)


@nox.session(default=False, python=False)
def fresh(session: nox.Session) -> None:
    """Run the demo or the tests in minimal Debian systems that it makes: SUITE..., --user, demo, test."""
    machine.acquire_root()
    machine.install(machine.FOR_SYSTEMS)
    with tempfile.TemporaryDirectory(prefix="podwire-") as folder:
        results = Path(folder, "results.json")
        # It removes the systems when it ends, also if nox is killed. nox waits for that if it is interrupted.
        program = ["setpriv", "--pdeathsig", "TERM", sys.executable, "tests/tools/fresh.py"]
        try:
            session.run(
                *program, str(results), *session.posargs, external=True, interrupt_timeout=None, terminate_timeout=None
            )
        finally:
            if results.exists():
                count(session, **json.loads(results.read_text()))


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure the modules, or with the argument fleet, settings or report, what that names."""
    if session.posargs == ["report"]:
        requirements(session, "browser")
        session.env["CHROMIUM"] = machine.chromium()
        link(session)
        session.run("python", "tests/real/browser/durations.py")
        return
    requirements(session, "bench")
    machine.install(machine.TO_RUN)
    link(session)
    plugins = str(machine.plugins("forky"))
    if session.posargs == ["settings"]:
        machine.install(machine.TO_TEST)
        session.run(PRIVATE, "tests/real/bench/settings.sh", plugins, str(machine.ee_base()), external=True)
    elif session.posargs == ["fleet"]:
        session.run(PRIVATE, "tests/real/bench/fleet.sh", plugins, external=True)
    else:
        session.run(PRIVATE, "tests/real/bench/run.sh", plugins, str(machine.go_programs()), external=True)


@nox.session(default=False)
def mutation(session: nox.Session) -> None:
    """Run the unit tests of a room against mutants of its code: ROOM [--sample N] [--seed S]."""
    requirements(session, "host", "mutation")
    machine.install(machine.TO_TEST)
    machine.acquire_root()
    # The tests on bad input run for every mutant.
    session.env["PODWIRE_EXAMPLES"] = "8"
    with snapshot(session):
        session.run("python", "tests/tools/mutation.py", *session.posargs)


@nox.session(default=False)
def pictures(session: nox.Session) -> None:
    """Take the pictures of the report for the documentation."""
    requirements(session, "browser")
    session.env["CHROMIUM"] = machine.chromium()
    link(session)
    session.run("python", "tests/real/browser/pictures.py", "docs/images")


@nox.session(default=False)
def molecule(session: nox.Session) -> None:
    """Run molecule scenarios on virtual machines: SCENARIO..., --all, or destroy."""
    requirements(session, "molecule")
    if session.posargs == ["destroy"]:
        session.run("python", "tests/tools/scenarios.py", "destroy")
        return
    machine.install(machine.FOR_MACHINES)
    link(session)
    session.env.update(
        XDG_CACHE_HOME=str(machine.CACHE.parent),
        ANSIBLE_HOME=f"{session.env['HOME']}/.ansible",
        # Pods and containers run busybox, because the machines cannot reach a registry.
        PODWIRE_BUSYBOX=f"{machine.runtimes()}/bin/busybox",
        # The release of the plugins that the package of a machine does not have.
        PODWIRE_PLUGINS=str(machine.plugins("bookworm").parents[3]),
        # Scenarios write reports here, for inspection.
        PODWIRE_REPORTS=str(machine.CACHE / "reports"),
    )
    machine.plugins("forky")
    results = Path(session.create_tmp(), "results.json")
    try:
        session.run("python", "tests/tools/scenarios.py", "test", str(results), *session.posargs)
    finally:
        if results.exists():
            count(session, **json.loads(results.read_text()))
