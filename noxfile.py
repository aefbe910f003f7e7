# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of this collection; `nox -l` lists them. antsibull-nox adds those of antsibull-nox.toml.

Selected by default are those of the gate (`./run test`), with PODWIRE_FULL all that a release must pass (`./run test
--full`). They run side by side, one for each processor, in the order of this file: linters, then the longest first. So
each is a single process.
Sessions that change a host run as root in private namespaces (tests/private.sh).
"""

from __future__ import annotations

import glob
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
import engine_sessions  # noqa: E402, F401  # pylint: disable=unused-import
import machine  # noqa: E402
from sessions import PRIVATE, count, count_junit, link, provide_pip, pytest, requirements, snapshot  # noqa: E402

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
# Whether all that a release must pass is selected by default, instead of the gate.
FULL = bool(os.environ.get("PODWIRE_FULL"))

# ansible-lint has a session of its own, with more rules.
os.environ["GALAXY_IMPORTER_RUN_ANSIBLE_LINT"] = str(int(FULL))

nox.needs_version = ">=2026.7.11"
nox.options.default_venv_backend = machine.venv_backend()
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"
nox.options.allow_parallel = True
nox.options.envdir = str(machine.CACHE / "nox")

machine.prepare_environment(HOST_PYTHONS)

# Linters first: they find most mistakes, and the last sessions are short ones, so that no processor waits long.
antsibull_nox.load_antsibull_nox_toml()


@nox.session
def ansible_lint(session: nox.Session) -> None:
    """Run ansible-lint, whose checks of syntax are forks of one process."""
    session.install("ansible-lint")
    link(session)
    session.run("python", "tests/tools/ansible_lint.py", "--offline", *session.posargs)


# --- tests on real hosts


def run_on_host(session: nox.Session, *tests: str) -> None:
    """Run tests; in the gate samples of them, and every third case of each parametrized test."""
    requirements(session, "play")
    machine.install(machine.TO_TEST)
    machine.acquire_root()
    with snapshot(session) as copy:
        machine.write_integration_config(copy / "tests" / "integration" / "integration_config.yml")
        # The files of tests are in memory.
        kept = ["--durations=15", "--override-ini=tmp_path_retention_policy=failed"]
        named = any(Path(word.partition("::")[0]).exists() for word in session.posargs)
        session.env.update({} if FULL or named else {"PODWIRE_SAMPLE": "1", "PODWIRE_CASES": "3"})
        pytest(session, *kept, *session.posargs, *([] if named else tests))


@nox.session
def host_modules(session: nox.Session) -> None:
    """Run each module on a real host, which is namespaces of this machine, with real plugins and runtimes."""
    run_on_host(session, *sorted(glob.glob("tests/host/cni_*")))


@nox.session
def host_state(session: nox.Session) -> None:
    """Run what several modules do on such a host: footprints and repair, runtimes, other users, several networks."""
    every = set(glob.glob("tests/host/*/")) - set(glob.glob("tests/host/cni_*/"))
    run_on_host(session, *sorted(every))


@nox.session
def play(session: nox.Session) -> None:
    """Run playbooks and roles on a real host, which is namespaces of this machine."""
    run_on_host(session, "tests/play")


# --- units

# Those that need no Ansible.
HOST_UNITS = ("tests/unit/conformance", "tests/unit/examples", "tests/unit/plugins/module_utils")


def units_host(session: nox.Session) -> None:
    """Run the unit tests of the code for managed hosts, without Ansible, with a Python that a host may have."""
    requirements(session, "host")
    machine.install(machine.TO_TEST)
    machine.acquire_root()
    newest = session.python == GATE_PYTHONS[-1]
    # The tests on bad input take most of the time. One Python runs all of their examples, in the full run.
    session.env.update({} if newest and (FULL or COVERAGE) else {"PODWIRE_SAMPLE": "1"})
    # Which functions run matters for what a Python lacks, not with how many values.
    session.env.update({} if newest or FULL or session.posargs else {"PODWIRE_CASES": "4"})
    if str(session.python) in ("3.12", "3.13", "3.14"):
        # Much cheaper, and not there before 3.12.
        session.env["COVERAGE_CORE"] = "sysmon"
    tests = HOST_UNITS if newest else (*HOST_UNITS[:-1], f"{HOST_UNITS[-1]}/libcni", f"{HOST_UNITS[-1]}/_host")
    with snapshot(session):
        if session.posargs:
            pytest(session, *session.posargs)
        else:
            pytest(session, *tests, covered="plugins/module_utils" if COVERAGE else "")


# The oldest and the newest Python of this machine that a host may have.
GATE_PYTHONS = [version for version in HOST_PYTHONS if machine.python(version)]
GATE_PYTHONS = [*dict.fromkeys((GATE_PYTHONS[0], GATE_PYTHONS[-1]))]
for _version in sorted(HOST_PYTHONS, key=lambda version: version not in GATE_PYTHONS):
    nox.session(
        units_host, name=f"units_host-{_version}", python=_version, default=FULL or _version in GATE_PYTHONS,
        tags=["units"],
    )  # fmt: skip


# --- ansible-test, without containers


def ansible_core(session: nox.Session, core: str) -> None:
    machine.install(machine.TO_TEST)
    # A release candidate counts until there is a release.
    session.install(f"ansible-core>={core}.0rc1,=={core}.*", "-r", "meta/ee-requirements.txt")
    requirements(session, "units")


def sanity(session: nox.Session, core: str) -> None:
    """Run the sanity tests with one ansible-core; in the full run on all Pythons that it supports and that are here."""
    ansible_core(session, core)
    provide_pip(session)
    with snapshot(session), tempfile.NamedTemporaryFile("w+", suffix=".log") as log:
        # Two thirds of the time are pylint's, and the linters of the gate find most of what it finds.
        fewer = [] if FULL else ["--python", str(session.python), "--skip-test", "pylint"]
        command = ["ansible-test", "sanity", "--color", "no", "--requirements", *fewer, *session.posargs]
        # All of them create their environments in the same place.
        with machine.lock("ansible-test"):
            session.run(*command, stdout=log, stderr=subprocess.STDOUT, success_codes=[0, 1])
        log.seek(0)
        text = log.read()
    tests = set(re.findall(r'^Running sanity test "([^"]*)"', text, re.MULTILINE))
    failed = sum(map(int, re.findall(r"^FATAL: The (\d+) sanity test.* failed", text, re.MULTILINE)))
    skipped = sorted(set(re.findall(r"^WARNING: (Skipping sanity test .*)", text, re.MULTILINE)))
    count(session, len(tests) - failed, failed, skipped)
    # A test that ends in a traceback ends them all, and is not counted.
    if failed or not tests or "\nFATAL: " in text:
        print(text)
        session.error(f"{failed or 'the'} sanity tests failed")
    print(f"ansible-core {core}:", *sorted(tests))


def units_controller(session: nox.Session, core: str) -> None:
    """Run the unit tests of modules and of the controller with one ansible-core; in the full run by ansible-test."""
    ansible_core(session, core)
    machine.acquire_root()
    with snapshot(session), tempfile.TemporaryDirectory(prefix="podwire-") as reports:
        if not FULL:
            session.env["PODWIRE_SAMPLE"] = "1"
            wanted = session.posargs or ["tests/unit", *(f"--ignore={path}" for path in HOST_UNITS)]
            pytest(session, *wanted, covered="plugins" if COVERAGE else "")
            return
        # ansible-test writes to the tree, so it gets a copy that root owns and that ends with the namespaces. It gets
        # one worker, because the tests share the host of these namespaces.
        script = (
            'mkdir -p ~/ansible_collections/podwire && cp -r . ~/ansible_collections/podwire/cni && '
            'cd ~/ansible_collections/podwire/cni && { ansible-test units "${@:2}"; status=$?; }; '
            'cp tests/output/junit/*.xml "$1"; exit $status'
        )  # fmt: skip
        options = ["--color", "no", "--python", str(session.python), "--num-workers", "1"]
        options += session.posargs or [word for path in HOST_UNITS for word in ("--exclude", f"{path}/")]
        try:
            session.run(PRIVATE, "bash", "-c", script, "bash", reports, *options, external=True)
        finally:
            for report in Path(reports).glob("*.xml"):
                count_junit(session, report)


def own_core() -> str:
    """Return the newest ansible-core that the Python of nox can run."""
    known = [core for core, pythons in CORES.items() if OWN_PYTHON in pythons]
    return next((core for core in reversed(known) if core != CANDIDATE), CANDIDATE)


def newest_core() -> str:
    """Return the newest released ansible-core that a Python of this machine can run."""
    known = [core for core, pythons in CORES.items() if any(map(machine.python, pythons))]
    return next((core for core in reversed(known) if core != CANDIDATE), CANDIDATE)


_gate_cores = {own_core(), newest_core()} if FULL else {newest_core()}
for _core, _pythons in CORES.items():
    _python = next(filter(machine.python, _pythons), None)
    for _function in (units_controller, sanity):

        def _session(session: nox.Session, function=_function, core=_core, wanted=_python) -> None:
            if not wanted:
                session.skip(f"ansible-core {core} needs one of Python {', '.join(CORES[core])}, and none is here")
            function(session, core)

        _session.__doc__ = f"{str(_function.__doc__).rstrip('.')}: {_core}."
        # The tags are the parts of `./run test`.
        _tags = [_function.__name__.partition("_")[0]] if _core in _gate_cores else []
        _decorate = nox.session(
            name=f"{_function.__name__}-{_core}", python=_python or False, default=bool(_tags), tags=_tags
        )
        _decorate(_session)


# --- lint


@nox.session
def texts(session: nox.Session) -> None:
    """Check changelog fragments, spelling, words, sizes, shell scripts and workflows."""
    session.install("antsibull-changelog", "codespell", "check-jsonschema")
    machine.install(["shellcheck"])
    session.run("antsibull-changelog", "lint")
    session.run("codespell")
    session.run("python", "tests/tools/prose.py")
    session.run("python", "tests/tools/budget.py")
    workflows = map(str, Path(".github", "workflows").glob("*.yml"))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    files = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True, text=True).stdout.split("\0")
    scripts = [name for name in filter(None, files) if re.match(r"#!.*\b(ba|da)?sh$", _first_line(Path(name)))]
    session.run("shellcheck", "--external-sources", *scripts, external=True)
    count(session, passed=6)


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
def conformance(session: nox.Session) -> None:
    """Judge our own plugins with the conformance suite; in the full run also others, and ones with planted faults."""
    run_on_host(session, "tests/real/conformance" if FULL else "tests/real/conformance/test_own_plugins.py")


@nox.session(default=FULL)
def hook(session: nox.Session) -> None:
    """Let pre-commit install the linter from this repository, and run it on another one."""
    requirements(session, "hook")
    with snapshot(session):
        pytest(session, *(session.posargs or ["tests/real/hook"]), private=False)


# --- what takes longer, or is rarely broken


@nox.session(default=FULL)
def examples(session: nox.Session) -> None:
    """Run the examples of the documentation, each page on a host of its own."""
    run_on_host(session, "tests/docs")


@nox.session(default=FULL)
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


@nox.session(default=FULL)
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


@nox.session(default=FULL)
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
def afternoon(session: nox.Session) -> None:
    """Show all that an engineer reads in an afternoon with five new hosts of Debian 13."""
    prepare_to_run(session)
    machine.install(machine.TO_TEST)
    plugins = [str(machine.plugins(suite)) for suite in ("forky", "bookworm")]
    report = str(machine.CACHE / "afternoon-report")
    session.run(PRIVATE, "tests/afternoon/afternoon.sh", str(machine.afternoon()), *plugins, report, external=True)


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
    session.env["PODWIRE_SAMPLE"] = "1"
    with snapshot(session):
        session.run("python", "tests/tools/mutation.py", *session.posargs)


@nox.session(default=False)
def pictures(session: nox.Session) -> None:
    """Take the pictures of the report and of a terminal for the documentation."""
    prepare_to_run(session)
    requirements(session, "browser")
    session.env["CHROMIUM"] = machine.chromium()
    session.run("python", "tests/real/browser/pictures.py", "docs/images")
    for number in (1, 20):
        session.run("python", "tests/real/browser/terminal.py", str(number), f"docs/images/terminal-{number}.svg")


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
