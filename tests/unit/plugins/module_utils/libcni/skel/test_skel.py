# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""libcni.skel where it is not Go's skel: results of callbacks, what else is printed, mistakes, streams, delegates."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils import libcni
from ansible_collections.podwire.cni.plugins.module_utils.libcni import skel

UTILS = Path(libcni.__file__).parent.parent
ENV = {"CNI_CONTAINERID": "c1", "CNI_NETNS": "/nowhere", "CNI_IFNAME": "eth0", "CNI_PATH": "/opt/cni/bin"}
CONF = {"cniVersion": "1.0.0", "name": "net", "type": "example"}


class Done:
    def __init__(self, done):
        self.exit = done.returncode
        self.stdout = done.stdout.decode()
        self.stderr = done.stderr.decode()

    @property
    def json(self):
        return json.loads(self.stdout)


@pytest.fixture
def run(tmp_path):
    """Runs a plugin, given as code, as a runtime does."""

    def run(code, command="ADD", conf=None, shell="", **env):
        path = tmp_path / "plugin.py"
        path.write_text(f"import os, subprocess, sys\nsys.path.insert(0, {str(UTILS)!r})\nimport libcni\n{code}\n")
        stdin = json.dumps(CONF if conf is None else conf).encode()
        argv = [sys.executable, "-I", "-S", "-B", str(path)]
        if shell:
            argv = ["sh", "-c", f'exec "$@" {shell}', "sh", *argv]
        environment = {**os.environ, **ENV, "CNI_COMMAND": command, **env}
        return Done(subprocess.run(argv, input=stdin, env=environment, capture_output=True, timeout=60, check=False))

    return run


RETURNS = """
def add(args):
    %s
    return libcni.Result.build(
        interfaces=[libcni.Interface(args.ifname, sandbox=args.netns)],
        ips=[libcni.IPConfig("10.1.0.2/24", gateway="10.1.0.1", interface=0)],
        routes=[libcni.Route("0.0.0.0/0")], dns=libcni.DNS(["10.1.0.53"]))
libcni.plugin_main(add=add)
"""


@pytest.mark.parametrize("version", ["0.2.0", "0.4.0", "1.0.0", "1.1.0"])
def test_a_returned_result_has_the_version_of_the_configuration(run, version):
    done = run(RETURNS % "pass", conf={**CONF, "cniVersion": version})
    assert (done.exit, done.stderr, done.json["cniVersion"]) == (0, "", version)
    assert libcni.create_from_bytes(done.stdout.encode()).addresses == ["10.1.0.2/24"]
    assert done.stdout.startswith("{\n    ")


def test_what_is_printed_beside_the_result_goes_to_stderr(run):
    done = run(RETURNS % "print('stray'); subprocess.run(['echo', 'child']); os.write(1, b'raw')")
    assert (done.exit, done.json["cniVersion"]) == (0, "1.0.0")
    assert sorted(done.stderr.replace("raw", "raw\n").split()) == ["child", "raw", "stray"]


def test_what_a_callback_prints_is_the_result(run):
    done = run('libcni.plugin_main(add=lambda args: print(\'{"cniVersion": "1.0.0", "ä": 1}\'))', LC_ALL="C")
    assert (done.exit, done.json) == (0, {"cniVersion": "1.0.0", "ä": 1})


def test_an_error_is_the_only_document(run):
    done = run("def add(args):\n  print('{}')\n  raise libcni.PluginError(11, 'later')\nlibcni.plugin_main(add=add)")
    assert (done.exit, done.json) == (1, {"code": 11, "msg": "later"})


def test_an_error_may_have_the_version(run):
    code = "def add(args):\n  raise libcni.PluginError(11, 'later')\nlibcni.plugin_main(add=add, error_version=True)"
    assert list(run(code).json.items()) == [("cniVersion", "1.0.0"), ("code", 11), ("msg", "later")]
    assert run(code, conf=[]).json["cniVersion"] == "1.1.0"
    assert run(code, conf={**CONF, "cniVersion": "9.0.0"}).json["cniVersion"] == "1.1.0"


def test_a_mistake_says_where_it_is(run):
    done = run("def add(args):\n  return args.config['mtu']\nlibcni.plugin_main(add=add)")
    assert (done.exit, done.json["code"], done.json["msg"]) == (1, 999, "KeyError: 'mtu'")
    assert done.json["details"].endswith("plugin.py, line 5, in add")
    assert "Traceback" not in done.stderr
    done = run("libcni.plugin_main(add=lambda args: {})")
    assert done.json["msg"] == "TypeError: the callback of ADD returned dict; it must return a Result or None"
    done = run("def add(args):\n  raise TimeoutError\nlibcni.plugin_main(add=add)")
    assert done.json["msg"] == "TimeoutError: "


def test_other_callbacks_may_return_anything(run):
    done = run("libcni.plugin_main(delete=lambda args: 1)", command="DEL")
    assert (done.exit, done.stdout) == (0, "")


def test_without_a_version_a_plugin_does_not_start(run):
    done = run("libcni.plugin_main(versions=[])", command="VERSION")
    assert (done.exit, done.stdout) == (1, "")
    assert "you must support at least one version" in done.stderr


def test_the_message_of_a_system_error_names_the_file(run):
    done = run("libcni.plugin_main(add=lambda args: open('/nonexistent/file'))")
    assert done.json == {"code": 999, "msg": "/nonexistent/file: No such file or directory"}


def test_causes_do_not_go_round():
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__cause__ = second, first
    assert skel._plugin_error(first) is None


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(run, closed, tmp_path):
    code = f"libcni.plugin_main(add=lambda args: open({str(tmp_path / 'ran')!r}, 'w').close(), about='x')"
    done = run(code, shell=closed)
    assert done.stderr == ""
    if "<" in closed:
        assert done.exit == 1
    else:
        assert (done.exit, done.stdout, (tmp_path / "ran").exists()) == (0, "", True)
    assert run(code, shell=closed, CNI_COMMAND="").exit == 0


def test_unreadable_stdin(run):
    # Python itself does not start with a directory there.
    done = run("os.dup2(os.open('/', os.O_RDONLY), 0)\nlibcni.plugin_main(add=lambda args: None)")
    assert (done.exit, done.json) == (
        1,
        {"code": 5, "msg": "error reading from stdin: read /dev/stdin: is a directory"},
    )


def test_an_answer_that_cannot_be_written_is_a_failure(run):
    done = run(RETURNS % "pass", shell=">/dev/full")
    assert (done.exit, done.stderr) == (1, "cannot write the answer to stdout: No space left on device\n")


def test_a_child_left_behind_does_not_hold_stdout(run):
    # The runtime reads stdout to its end.
    code = RETURNS % "subprocess.Popen(['sleep', '50'], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)"
    assert run(code + "\n").exit == 0


def test_stdin_is_not_read_where_it_does_not_matter():
    code = f"import sys; sys.path.insert(0, {str(UTILS)!r}); import libcni; libcni.plugin_main()"
    reader, writer = os.pipe()
    try:
        for env, status in (({"CNI_COMMAND": "VERSION"}, 0), ({"CNI_COMMAND": "ADD"}, 1), ({}, 1)):
            argv = [sys.executable, "-I", "-S", "-B", "-c", code]
            done = subprocess.run(argv, env=env, stdin=reader, capture_output=True, timeout=60, check=False)
            assert done.returncode == status
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize(("depth", "status"), [(9999, 0), (10000, 1)])
def test_nesting_up_to_the_limit_of_go(run, depth, status):
    stdin = '{"name":"net","x":' + "[" * depth + "]" * depth + "}"
    code = f"import io\nos.dup2(os.memfd_create('x'), 0)\nos.write(0, {stdin!r}.encode())\nos.lseek(0, 0, 0)\n"
    done = run(code + "libcni.plugin_main(add=lambda args: args.config['name'])" + "\n")
    assert done.exit == 1
    assert ("TypeError" in done.stdout) == (status == 0), done.stdout
    if status:
        assert "nested too deeply (more than 10000 levels)" in done.json["msg"]


def test_command_args():
    conf = {"cniVersion": "0.4.0", "name": "n", "PrevResult": {"ips": [{"version": "4", "address": "10.0.0.1/8"}]}}
    args = libcni.CmdArgs("c1", "/n", "eth0", "IP=fd00:0::1;Flag=TRUE", "/b", stdin_data=json.dumps(conf).encode())
    assert (args.cni_version, args.prev_result.addresses) == ("0.4.0", ["10.0.0.1/8"])
    assert libcni.CmdArgs().prev_result is None

    class Wanted(libcni.CommonArgs):
        Flag = False
        IP = libcni.IPAddress()
        Count = 0

    loaded = args.load_args(Wanted)
    assert (loaded.Flag, loaded.IP, loaded.IgnoreUnknown) == (True, "fd00::1", False)
    for text, message in (
        ("Count=x", 'ARGS: error parsing value of pair "Count=x": invalid literal'),
        ("IP=x", 'ARGS: error parsing value of pair "IP=x": invalid IP address: x'),
        ("CommonArgs=1", "ARGS: cannot unmarshal into field 'CommonArgs'"),
    ):
        with pytest.raises(libcni.CNIError, match="ARGS") as caught:
            libcni.load_args(text, Wanted)
        assert str(caught.value).startswith(message)


def test_results_are_built_read_and_changed():
    interfaces = [libcni.Interface("br0"), libcni.Interface("eth0", "02:00:00:00:00:01", "/n", 1400, "/s", "p")]
    ips = [libcni.IPConfig("10.1.0.2/24", "10.1.0.1", 1), libcni.IPConfig("FD00::2/64")]
    routes = [libcni.Route("0.0.0.0/0", "10.1.0.1", 1400, 1360, 5, 0, 0)]
    result = libcni.Result.build(interfaces, ips, routes, libcni.DNS(["10.1.0.53"], "x", ["a"], ["ndots:1"]))
    assert (result.version, result.interfaces, result.routes) == ("1.1.0", interfaces, routes)
    assert [str(ip.address) for ip in result.ips] == result.addresses == ["10.1.0.2/24", "fd00::2/64"]
    assert result.dns == libcni.DNS(["10.1.0.53"], "x", ["a"], ["ndots:1"])
    for version in ("0.2.0", "0.4.0", "1.0.0"):
        assert result.as_version(version).addresses == result.addresses
    old = result.as_version("0.4.0")
    changed = old.replace(routes=[*old.routes, libcni.Route("10.2.0.0/16")], dns=None)
    assert [route.dst for route in changed.routes] == ["0.0.0.0/0", "10.2.0.0/16"]
    assert (changed.version, changed.dns, old.dns.domain) == ("1.1.0", libcni.DNS(), "x")
    assert repr(ips[0]) == "IPConfig(interface=1, address='10.1.0.2/24', gateway='10.1.0.1')"
    assert routes[0] != libcni.Route("0.0.0.0/0") != interfaces[0]
    with pytest.raises(libcni.ResultError, match=r"the address 10.0.0.1/8 is on interface 0 of 0"):
        libcni.Result.build(ips=[libcni.IPConfig("10.0.0.1/8", interface=0)])
    with pytest.raises(libcni.JSONError, match=r"ips/0/address: invalid CIDR address: x") as caught:
        libcni.Result.build(ips=[libcni.IPConfig("x")])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.where) == (str(caught.value), "ips/0/address")
