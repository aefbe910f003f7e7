# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The command line (cnitool's environment; libcni.md 1.11)."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import cli

RESULT = {"cniVersion": "1.1.0", "ips": [{"address": "10.1.2.3/24"}]}
MODULE_UTILS = Path(cli.__file__).parents[1]


@pytest.fixture
def debug(world, monkeypatch):
    """A network `net` of one noop, and the environment for it."""
    debug = world.debug(ReportResult=json.dumps(RESULT))
    net_d = world.path / "net.d"
    net_d.mkdir()
    plugin = {
        "type": "noop",
        "debugFile": str(debug.path),
        "commandLog": str(world.log),
        "capabilities": {"portMappings": True},
    }
    (net_d / "10.conflist").write_text(json.dumps({"name": "net", "cniVersion": "1.1.0", "plugins": [plugin]}))
    monkeypatch.setenv("NETCONFPATH", str(net_d))
    monkeypatch.setenv("CNI_PATH", f"/nowhere:{world.bin}")
    monkeypatch.setenv("CNI_CACHE_DIR", str(world.cache))
    return debug


@pytest.fixture
def run(capfdbinary):
    def run(*argv):
        status = cli.main(argv)
        captured = capfdbinary.readouterr()
        return status, captured.out.decode(), captured.err.decode()

    return run


def test_add_check_del(debug, run, world):
    status, out, err = run("add", "net", "/var/run/netns/x")
    assert (status, err) == (0, "")
    assert out == json.dumps(RESULT, indent=4) + "\n"
    args = debug.args
    # echo -n /var/run/netns/x | sha512sum | cut -c-20
    assert args["CONTAINERID"] == "cnitool-4acf487154af9777be71"
    assert (args["NETNS"], args["IFNAME"], args["ARGS"]) == ("/var/run/netns/x", "eth0", "")
    assert run("check", "net", "/var/run/netns/x") == (0, "", "")
    assert debug.stdin["prevResult"] == RESULT
    assert run("del", "net", "/var/run/netns/x") == (0, "", "")
    assert run("del", "net", "/var/run/netns/x") == (0, "", "")
    assert [entry["Command"] for entry in world.commands()] == ["ADD", "CHECK", "DEL", "DEL"]


def test_environment(debug, run, monkeypatch, world):
    monkeypatch.setenv("CNI_CONTAINERID", "cid")
    monkeypatch.setenv("CNI_IFNAME", "net1")
    monkeypatch.setenv("CNI_ARGS", "A=b;C=d")
    monkeypatch.setenv("CAP_ARGS", '{"portMappings":[{"hostPort":80}],"other":1}')
    monkeypatch.chdir(world.path)
    assert run("add", "net", "relative/../ns")[0] == 0
    args = debug.args
    assert (args["CONTAINERID"], args["IFNAME"], args["ARGS"]) == ("cid", "net1", "A=b;C=d")
    assert args["NETNS"] == str(world.path / "ns")
    assert debug.stdin["runtimeConfig"] == {"portMappings": [{"hostPort": 80}]}
    assert run("list-attachments") == (
        0,
        json.dumps(
            [
                {
                    "network": "net",
                    "container_id": "cid",
                    "ifname": "net1",
                    "netns": str(world.path / "ns"),
                    "cni_args": [["A", "b"], ["C", "d"]],
                    "capability_args": {"other": 1, "portMappings": [{"hostPort": 80}]},
                }
            ],
            indent=4,
        )
        + "\n",
        "",
    )
    assert run("add", "net", "/ns", "--ifname", "net2")[0] == 0
    assert debug.args["IFNAME"] == "net2"
    assert run("add", "-i", "net3", "net", "/ns")[0] == 0
    assert debug.args["IFNAME"] == "net3"


def test_list_attachments_of_nothing(debug, run):
    assert run("list-attachments") == (0, "[]\n", "")


def test_gc(debug, run, world):
    for if_name in ("eth0", "eth1"):
        assert run("add", "net", "/ns", "-i", if_name)[0] == 0
    container_id = debug.args["CONTAINERID"]
    assert run("gc", "net", "--valid", f"{container_id}/eth1", "x/y") == (0, "", "")
    assert json.loads(run("list-attachments")[1])[0]["ifname"] == "eth1"
    assert run("gc", "net", "--none") == (0, "", "")
    assert run("list-attachments")[1] == "[]\n"
    assert [entry["Command"] for entry in world.commands()] == ["ADD", "ADD", "DEL", "GC", "DEL", "GC"]


@pytest.mark.parametrize(
    "valid",
    [
        ("--valid", "a/eth0", "--valid", "b/eth0"),
        ("--valid=a/eth0", "--valid", "b/eth0"),
        ("--valid", "a/eth0", "b/eth0", "--valid", "x/y"),
        ("--valid", "b/eth0", "a/eth0"),
    ],
)
def test_gc_keeps_all_of_repeated_valid(debug, run, monkeypatch, valid):
    for container_id in ("a", "b", "c"):
        monkeypatch.setenv("CNI_CONTAINERID", container_id)
        assert run("add", "net", "/ns")[0] == 0
    assert run("gc", "net", *valid) == (0, "", "")
    assert [found["container_id"] for found in json.loads(run("list-attachments")[1])] == ["a", "b"]


@pytest.mark.parametrize(
    "valid",
    [
        (),
        ("--valid",),
        ("--valid", "--valid"),
        ("--valid", "a/eth0", "--valid"),
        ("--valid", "a/eth0", "--none"),
        ("--valid", "--none"),
        ("--none", "a/eth0"),
        ("--valid", ""),
        ("--valid", "a"),
        ("--valid", "a/"),
        ("--valid", "/eth0"),
        # One word where a shell's variable was quoted; a separator that is none.
        ("--valid", "a/eth0 b/eth0"),
        ("--valid", "a/eth0\nb/eth0"),
        ("--valid", "a/eth0,b/eth0"),
        ("--valid", "../a/eth0"),
        ("--valid=a/eth0", "b/eth0"),
    ],
)
def test_gc_deletes_all_only_if_told_so(debug, run, world, valid):
    assert run("add", "net", "/ns")[0] == 0
    status, out, err = run("gc", "net", *valid)
    assert (status, out) == (1, "")
    assert err.startswith("libcni: ")
    assert [entry["Command"] for entry in world.commands()] == ["ADD"]
    assert len(json.loads(run("list-attachments")[1])) == 1
    if not valid:
        assert "--none to delete all" in err
    assert run("gc", "net", "--none") == (0, "", "")
    assert run("list-attachments")[1] == "[]\n"


def test_status_load_validate(debug, run):
    assert run("status", "net") == (0, "", "")
    assert run("validate", "net") == (0, '[\n    "portMappings"\n]\n', "")
    status, out, err = run("load", "net")
    assert (status, err) == (0, "")
    assert out == (
        '{\n    "name": "net",\n    "cniVersion": "1.1.0",\n    "disableCheck": false,\n    "disableGC": false,\n'
        '    "plugins": [\n        "noop"\n    ]\n}\n'
    )


def test_convert(run, monkeypatch):
    def convert(version, text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        return run("convert", version)

    status, out, err = convert("0.2.0", json.dumps(RESULT).encode())
    assert (status, err) == (0, "")
    assert out == '{\n    "cniVersion": "0.2.0",\n    "ip4": {\n        "ip": "10.1.2.3/24"\n    },\n    "dns": {}\n}\n'
    assert convert("0.2.0", b'{"cniVersion":"1.0.0"}') == (1, "", "libcni: cannot convert: no valid IP addresses\n")
    assert convert("1.0.0", b"\xff")[0] == 1


def test_failures(debug, run, world):
    debug.set(ReportError="banana", ReportErrorDetails="split")
    assert run("add", "net", "/ns") == (1, "", 'libcni: plugin type="noop" failed (add): banana; split\n')
    assert run("check", "net", "/ns") == (1, "", "libcni: banana; split\n")
    assert run("status", "net") == (1, "", "libcni: banana; split\n")
    net_d = world.path / "net.d"
    assert run("load", "other") == (1, "", f'libcni: no net configuration with name "other" in {net_d}\n')
    (net_d / "00.conflist").write_text('{\n"name": x}')
    status, out, err = run("load", "net")
    assert (status, out) == (1, "")
    assert err.startswith(f"libcni: {net_d}/00.conflist: error parsing configuration list: invalid JSON")
    assert err.endswith("(line 2, column 9)\n")


@pytest.mark.parametrize("name", ["", "../x", "a b"])
def test_bad_network_names(debug, run, name):
    for argv in (("add", name, "/ns"), ("del", name, "/ns"), ("gc", name, "--none")):
        status, out, err = run(*argv)
        assert (status, out) == (1, "")
        assert err.startswith("libcni: ")


def test_no_plugin_directory(debug, run, monkeypatch):
    monkeypatch.setenv("CNI_PATH", "")
    assert run("add", "net", "/ns") == (1, "", 'libcni: plugin type="noop" failed (add): no paths provided\n')
    monkeypatch.setenv("CNI_PATH", "/nowhere:")
    assert "is not an absolute path" in run("add", "net", "/ns")[2]


@pytest.mark.parametrize("value", ["A", "A=", "=b", "A=b=c", "A=b;", ";A=b"])
def test_bad_args(debug, run, monkeypatch, value):
    monkeypatch.setenv("CNI_ARGS", value)
    status, _out, err = run("add", "net", "/ns")
    assert status == 1
    assert err.startswith("libcni: invalid CNI_ARGS pair ")
    assert debug.command is None


@pytest.mark.parametrize("value", ["[]", "{", "x"])
def test_bad_capability_args(debug, run, monkeypatch, value):
    monkeypatch.setenv("CAP_ARGS", value)
    status, _out, err = run("add", "net", "/ns")
    assert status == 1
    assert err.startswith("libcni: CAP_ARGS: ")


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("unknown",),
        ("add",),
        ("add", "net"),
        ("add", "net", "/ns", "more"),
        ("add", "net", "/ns", "--if", "x"),
        ("gc", "net"),
        ("gc", "net", "--valid", "x"),
        ("gc", "net", "--valid", "x/"),
        ("convert",),
        ("--unknown",),
    ],
)
def test_usage_errors(debug, run, argv):
    status, out, err = run(*argv)
    assert (status, out) == (1, "")
    assert err.startswith("libcni: ")
    assert debug.command is None


def test_vanished_working_directory(debug, run, world, monkeypatch):
    (world.path / "gone").mkdir()
    monkeypatch.chdir(world.path / "gone")
    (world.path / "gone").rmdir()
    status, out, err = run("add", "net", "relative")
    assert (status, out) == (1, "")
    assert err.startswith("libcni: ")


def test_help():
    with pytest.raises(SystemExit) as caught:
        cli.main(["--help"])
    assert caught.value.code == 0


def test_stderr_of_plugins_is_shown(debug, run):
    debug.set(ReportStderr="a hint\n")
    assert run("status", "net") == (0, "", "a hint\n")


@pytest.mark.parametrize("module", ["libcni", "libcni.cli"])
def test_as_a_program(debug, module):
    environment = {**os.environ, "PYTHONPATH": str(MODULE_UTILS), "PYTHONDONTWRITEBYTECODE": "1"}
    for argv, status, stdout in ((("load", "net"), 0, b'"name": "net"'), (("load", "x"), 1, b"")):
        done = subprocess.run([sys.executable, "-m", module, *argv], env=environment, capture_output=True, check=False)
        assert done.returncode == status
        assert stdout in done.stdout
        assert (done.stderr != b"") == bool(status)


@pytest.mark.parametrize("verb", ["add", "check", "del"])
@pytest.mark.parametrize("path", ["/proc/1/ns/net", "/proc/self/ns/net", "link"])
def test_the_host_netns_is_refused_unless_the_environment_overrides_it(debug, run, world, monkeypatch, verb, path):
    if path == "link":
        path = str(world.path / "link")
        os.symlink("/proc/self/ns/net", path)
    for override in ("", "0", "yes"):
        monkeypatch.setenv("CNI_NETNS_OVERRIDE", override)
        status, out, err = run(verb, "net", path)
        assert (status, out) == (1, "")
        assert "host_netns" in err
        assert "CNI_NETNS_OVERRIDE=1" in err
    assert not world.log.exists()
    monkeypatch.setenv("CNI_NETNS_OVERRIDE", "TRUE")
    run("add", "net", path)
    monkeypatch.setenv("CNI_NETNS_OVERRIDE", "1")
    assert run(verb, "net", path)[0] == 0
    assert debug.args["NETNS"] == path


def shell(script, *argv):
    """Run a shell's text, in which "$@" is the command line of libcni."""
    environment = {**os.environ, "PYTHONPATH": str(MODULE_UTILS), "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["/bin/bash", "-c", script, "sh", sys.executable, "-m", "libcni", *argv]
    return subprocess.run(command, env=environment, capture_output=True, check=False)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(debug, world, closed):
    """As to Go, a closed stream is /dev/null: the verb does its work, and the exit status tells how it ended."""
    debug.set(ReportResult=json.dumps(RESULT), ReportStderr="a hint\n")
    done = shell(f'"$@" {closed}', "add", "net", "/ns")
    assert done.returncode == 0
    streams = closed.split()
    assert done.stdout == (b"" if ">&-" in streams else json.dumps(RESULT, indent=4).encode() + b"\n")
    assert done.stderr == (b"" if "2>&-" in streams else b"a hint\n")
    [entry] = (world.cache / "results").iterdir()
    assert json.loads(entry.read_bytes())["result"] == RESULT
    done = shell(f'"$@" {closed}', "convert", "1.0.0")
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    debug.set(ReportError="banana")
    assert shell(f'"$@" {closed}', "del", "net", "/ns").returncode == 1
    assert shell(f'"$@" {closed}', "unknown").returncode == 1


@pytest.mark.parametrize(
    ("script", "status", "stderr"),
    [
        ('"$@" > /dev/full', 1, b"a hint\nlibcni: write /dev/stdout: no space left on device\n"),
        ('exec 3> >(:); wait $!; "$@" >&3', 1, b"a hint\nlibcni: write /dev/stdout: broken pipe\n"),
        ('"$@" 2> /dev/full', 0, b""),
        ('exec 3> >(:); wait $!; "$@" 2>&3', 0, b""),
        ('"$@" > /dev/full 2> /dev/full', 1, b""),
    ],
)
def test_streams_that_cannot_be_written(debug, world, script, status, stderr):
    """What a plugin says is for information only; a result that nobody gets is a failure."""
    debug.set(ReportResult=json.dumps(RESULT), ReportStderr="a hint\n")
    done = shell(script, "add", "net", "/ns")
    assert (done.returncode, done.stderr) == (status, stderr)
    assert len(os.listdir(world.cache / "results")) == 1


def test_a_terminal_gets_escapes_where_a_program_gets_what_the_plugin_said(debug, world):
    """Control characters of a plugin's error, stderr and result reach no terminal."""
    evil = "\x1b[31m\u009b2J\x7f\u202e"
    environment = {**os.environ, "PYTHONPATH": str(MODULE_UTILS), "PYTHONDONTWRITEBYTECODE": "1"}

    def on_terminal(*argv):
        master, slave = os.openpty()
        streams = {"stdin": subprocess.DEVNULL, "stdout": slave, "stderr": slave}
        subprocess.run([sys.executable, "-m", "libcni", *argv], env=environment, check=False, **streams)
        os.close(slave)
        shown = b""
        # At the end of what was written Linux says EIO.
        with contextlib.suppress(OSError):
            while True:
                shown += os.read(master, 65536)
        os.close(master)
        return shown.decode()

    result = dict(RESULT, interfaces=[{"name": evil}])
    for settings, argv in (
        ({"ReportStderr": evil, "ReportResult": json.dumps(result)}, ("add", "net", "/ns")),
        ({"ReportError": evil}, ("check", "net", "/ns")),
    ):
        debug.set(**settings)
        shown = on_terminal(*argv)
        assert "\\u009b2J\\u007f\\u202e" in shown
        assert [c for c in shown if not c.isprintable() and c not in "\r\n\t"] == []
        assert "\u009b2J\u007f\u202e".encode() in b"".join(shell('"$@" 2>&1', *argv).stdout.splitlines())
