# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The example plugins, each as its executable. tests/host/skel runs them in real chains."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils import libcni
from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle, netns

EXAMPLES = Path(libcni.__file__).parents[3] / "examples" / "plugins"
PREV = {"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.2/24"}], "unknown": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bin")
    for example in EXAMPLES.glob("*.py"):
        bundle.write(bundle.bundle(str(example), sys.executable), str(folder / example.stem))
    return folder


@pytest.fixture
def call(folder):
    """Calls a plugin, and returns its exit status, stdout and stderr."""

    def call(name, command="ADD", prev=..., env=(), **conf):
        environment = {"CNI_COMMAND": command, "CNI_CONTAINERID": "c1", "CNI_NETNS": "/nowhere", "CNI_IFNAME": "eth0"}
        environment.update({"CNI_PATH": str(folder), **dict(env)})
        prev = PREV if prev is ... else prev
        version = {"cniVersion": "1.1.0" if command in ("STATUS", "GC") else "1.0.0"}
        stdin = {**version, "name": "net", "type": name, **({"prevResult": prev} if prev else {}), **conf}
        done = subprocess.run(
            [folder / name],
            input=json.dumps(stdin).encode(),
            env=environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return call


def error(outcome):
    status, stdout, _stderr = outcome
    assert status == 1
    found = json.loads(stdout)
    assert found.pop("cniVersion") in ("1.0.0", "1.1.0")
    return found


@pytest.mark.parametrize("name", ["podwire-debug", "podwire-route", "podwire-hooks"])
def test_a_chained_plugin(call, tmp_path, name):
    conf = {"file": str(tmp_path / "log")}
    status, stdout, _stderr = call(name, **conf)
    assert (status, json.loads(stdout)) == (0, PREV)
    assert "there is no prevResult" in error(call(name, prev=None, **conf))["msg"]
    assert call(name, "DEL", prev=None, **conf)[:2] == (0, "")
    assert call(name, "STATUS", **conf)[:2] == (0, "")
    status, _stdout, stderr = call(name, env={"CNI_COMMAND": ""})
    assert (status, stderr.splitlines()[0].partition(":")[0]) == (0, name)


def test_debug_writes_and_rotates(call, tmp_path):
    log = tmp_path / "new" / "log"
    for _time in range(12):
        call("podwire-debug", file=str(log), maxSize=4096, padding="x" * 900, password="sesame")
    names = sorted(path.name for path in log.parent.iterdir())
    assert names == ["log", "log.1"]
    lines = [json.loads(line) for name in ("log.1", "log") for line in (log.parent / name).read_text().splitlines()]
    assert {line["command"] for line in lines} == {"ADD"}
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    assert all((log.parent / name).stat().st_size <= 4096 for name in names)
    assert "sesame" not in "".join((log.parent / name).read_text() for name in names)
    assert log.parent.stat().st_mode & 0o777 == 0o700


def test_debug_never_breaks_a_pod(call, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.chmod(tmp_path, 0o777)
    for path in (tmp_path / "log", "/proc/none/log"):
        status, stdout, stderr = call("podwire-debug", file=str(path))
        assert (status, json.loads(stdout)) == (0, PREV)
        assert "podwire-debug: cannot write" in stderr
    os.chmod(tmp_path, 0o755)
    assert "Too many levels" in call("podwire-debug", file=str(tmp_path / "link"))[2]
    assert not (tmp_path / "target").exists()
    for conf in ({"file": "log"}, {"file": 1}, {"maxSize": 1}):
        assert error(call("podwire-debug", **conf))["code"] == 7
        assert call("podwire-debug", "DEL", **conf)[0] == 0


def hook(path, text, mode=0o755):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return {"command": [str(path)]}


def test_hooks_run_with_the_result(call, tmp_path):
    first = hook(tmp_path / "first", f'echo "$1 $CNI_COMMAND $(cat)" >> {tmp_path}/out; echo noise')
    first["command"].append("word")
    assert json.loads(call("podwire-hooks", add=[first, first], delete=[first])[1]) == PREV
    assert call("podwire-hooks", "DEL", add=[first], delete=[first])[:2] == (0, "")
    lines = (tmp_path / "out").read_text().splitlines()
    assert [line.split(" ", 2)[:2] for line in lines] == [["word", "ADD"], ["word", "ADD"], ["word", "DEL"]]
    assert all(json.loads(line.split(" ", 2)[2]) == PREV for line in lines)
    assert call("podwire-hooks", "CHECK", add=[first])[0] == 0


def test_hooks_that_fail(call, tmp_path):
    bad = hook(tmp_path / "bad", "echo because >&2; exit 3")
    slow = {**hook(tmp_path / "slow", "sleep 50"), "timeout": 1}
    found = error(call("podwire-hooks", add=[bad]))
    assert (found["code"], found["details"]) == (100, "because")
    assert found["msg"] == f"add/0: {tmp_path}/bad: exit status 3"
    assert error(call("podwire-hooks", add=[slow]))["msg"] == f"add/0: {tmp_path}/slow: did not end within 1 s"
    status, stdout, stderr = call("podwire-hooks", add=[{**bad, "required": False}])
    assert (status, json.loads(stdout), "exit status 3; because" in stderr) == (0, PREV, True)
    good = hook(tmp_path / "good", f"touch {tmp_path}/ran")
    assert call("podwire-hooks", "DEL", delete=[bad])[0] == 0
    assert error(call("podwire-hooks", "DEL", delete=[{**bad, "required": True}, good]))["code"] == 100
    assert (tmp_path / "ran").exists()


def test_only_hooks_of_root_run(call, tmp_path):
    loose = hook(tmp_path / "loose", f"touch {tmp_path}/ran", 0o777)
    found = error(call("podwire-hooks", add=[loose]))
    assert (found["code"], "is not run" in found["msg"], "chmod go-w" in found["details"]) == (100, True, True)
    assert not (tmp_path / "ran").exists()
    assert error(call("podwire-hooks", "CHECK", add=[loose]))["code"] == 100
    assert error(call("podwire-hooks", "STATUS", add=[loose]))["code"] == 50
    missing = {"command": [str(tmp_path / "missing")]}
    assert "is not an executable file" in error(call("podwire-hooks", add=[missing]))["msg"]
    for bad in (
        {},
        {"command": "x"},
        {"command": ["x"]},
        {"command": [1]},
        {**loose, "timeout": 0},
        "x",
        {"command": []},
    ):
        assert error(call("podwire-hooks", add=[bad]))["code"] == 7
        assert call("podwire-hooks", "DEL", delete=[bad])[0] == 0


@pytest.fixture
def blue(tmp_path):
    """A namespace with eth0, 10.1.0.2/24, and a default route."""
    paths = []
    for name in ("blue", "host"):
        path = tmp_path / name
        path.touch()
        subprocess.run(["unshare", f"--net={path}", "true"], check=True)
        paths.append(str(path))
    with netns.inside(paths[0]):
        netns.make_veth("eth0", paths[1])
        netns.add_address("eth0", "10.1.0.2/24")
        for route in (libcni.Route("0.0.0.0/0", "10.1.0.1"), libcni.Route("10.5.0.0/16", "10.1.0.1")):
            netns.add_route(route, "eth0")
    yield paths[0]
    subprocess.run(["umount", *paths], check=True)


def destinations(blue):
    with netns.inside(blue):
        return sorted(route.dst for route in netns.routes("eth0") if "." in route.dst)


ROUTES = [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}, {"dst": "10.5.0.0/16", "gw": "10.1.0.1"}]


@pytest.mark.parametrize(
    ("conf", "there", "told"),
    [
        ({"flushgateway": True}, ["10.1.0.0/24", "10.5.0.0/16"], ["10.5.0.0/16"]),
        ({"flushroutes": True}, ["10.1.0.0/24"], []),
        ({"delroutes": [{"dst": "10.5.0.0/16"}]}, ["0.0.0.0/0", "10.1.0.0/24"], ["0.0.0.0/0"]),
        (
            {"flushroutes": True, "addroutes": [{"dst": "10.6.0.0/16", "gw": "10.1.0.1"}, {"dst": "0.0.0.0/0"}]},
            ["0.0.0.0/0", "10.1.0.0/24", "10.6.0.0/16"],
            ["10.6.0.0/16", "0.0.0.0/0"],
        ),
    ],
)
def test_routes(call, blue, conf, there, told):
    env, prev = {"CNI_NETNS": blue}, {**PREV, "routes": ROUTES}
    status, stdout, _stderr = call("podwire-route", prev=prev, env=env, **conf)
    assert (status, [route["dst"] for route in json.loads(stdout)["routes"]]) == (0, told)
    assert destinations(blue) == there
    assert call("podwire-route", "CHECK", prev=prev, env=env, **conf) == (0, "", "")
    for _time in range(2):
        assert call("podwire-route", "DEL", prev=prev, env=env, **conf) == (0, "", "")
    added = {route["dst"] for route in conf.get("addroutes", ())}
    assert destinations(blue) == [dst for dst in there if dst not in added]
    if added:
        assert "is missing" in error(call("podwire-route", "CHECK", prev=prev, env=env, **conf))["msg"]
        assert call("podwire-route", "CHECK", prev=prev, env=env, **conf, skipcheck=True)[0] == 0


def test_routes_of_an_old_result(call, blue):
    prev = {"cniVersion": "0.2.0", "ip4": {"ip": "10.1.0.2/24", "routes": ROUTES}}
    conf = {"flushgateway": True, "addroutes": [{"dst": "10.6.0.0/16", "gw": "10.1.0.1"}], "cniVersion": "0.2.0"}
    status, stdout, _stderr = call("podwire-route", prev=prev, env={"CNI_NETNS": blue}, **conf)
    told = [route["dst"] for route in json.loads(stdout)["ip4"]["routes"]]
    assert (status, told) == (0, ["10.5.0.0/16", "10.6.0.0/16"])


def test_routes_without_a_namespace(call, blue):
    conf = {"addroutes": [{"dst": "10.6.0.0/16"}]}
    assert "failed to open netns" in error(call("podwire-route", **conf))["msg"]
    for env in ({"CNI_NETNS": ""}, {"CNI_NETNS": "/nowhere"}, {"CNI_NETNS": blue, "CNI_IFNAME": "eth9"}):
        assert call("podwire-route", "DEL", env=env, **conf) == (0, "", "")
    for bad in ({"addroutes": [{}]}, {"delroutes": [{"dst": "x"}]}, {"flushroutes": "yes"}, {"addroutes": {}}):
        assert error(call("podwire-route", env={"CNI_NETNS": blue}, **bad))["code"] == 7
        assert call("podwire-route", "DEL", env={"CNI_NETNS": blue}, **bad)[0] == 0
