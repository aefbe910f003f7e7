# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The event source cni_changes and the filter cni_files, without ansible-rulebook."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[3] / "extensions" / "eda" / "plugins"


def load(kind, name):
    spec = importlib.util.spec_from_file_location(name, PLUGINS / kind / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


source, only_files = load("event_source", "cni_changes"), load("event_filter", "cni_files")


@pytest.fixture
def looks(monkeypatch):
    """Return a coroutine that ends when the source has looked twice more: once may have begun before."""
    number, identities_of = 0, source.identities_of

    def counted(paths):
        nonlocal number
        seen = identities_of(paths)
        number += 1
        return seen

    async def two_more():
        enough = number + 2
        while number < enough:
            await asyncio.sleep(0.01)

    monkeypatch.setattr(source, "identities_of", counted)
    return two_more


@pytest.fixture
def events(looks):
    """Return a function that makes changes one after another, each when the one before is an event; the events."""

    def make(changes, **args):
        async def watch():
            queue = asyncio.Queue()
            task = asyncio.create_task(source.main(queue, {"interval": 0.05, "host": "node1", **args}))
            await looks()
            found = []
            for change in changes:
                change()
                found.append(await asyncio.wait_for(queue.get(), 60))
                # What is one change for a person may be seen in two looks.
                await looks()
                while not queue.empty():
                    found[-1]["cni"]["paths"] += queue.get_nowait()["cni"]["paths"]
            task.cancel()
            return found

        return asyncio.run(watch())

    return make


def test_every_kind_of_change_is_an_event(tmp_path, events):
    net, bin_dir = tmp_path / "net.d", tmp_path / "bin"
    bin_dir.mkdir()
    file = net / "10-a.conflist"
    steps = [
        net.mkdir,
        lambda: file.write_text("{}"),
        lambda: file.write_text("{ }"),
        # The same size, and the old time of change.
        lambda: (file.write_text("[ ]"), os.utime(file, ns=(1, 1))),
        lambda: file.chmod(0o600),
        lambda: (bin_dir / "bridge").write_text(""),
        lambda: file.rename(net / "20-a.conflist"),
        lambda: shutil.rmtree(net),
        net.mkdir,
        lambda: file.write_text("{}"),
        lambda: (net / "b.conf").symlink_to(tmp_path / "b"),
        lambda: (tmp_path / "b").write_text("{}"),
        lambda: ((net / "pods").mkdir(), (net / "pods" / "c.conf").write_text("{}")),
    ]
    found = events(steps, paths=[str(net), str(bin_dir)])
    assert {event["cni"]["what"] for event in found} == {"files"}
    assert {event["cni"]["host"] for event in found} == {"node1"}
    changed = [set(event["cni"]["paths"]) for event in found]
    assert changed[0] == {str(net)} and changed[5] == {str(bin_dir / "bridge")}
    assert changed[6] == {str(file), str(net / "20-a.conflist")}
    for number in (1, 2, 3, 4, 9):
        assert changed[number] == {str(file)}, number
    assert changed[11:] == [{str(net / "b.conf")}, {str(net / "pods"), str(net / "pods" / "c.conf")}]


def test_what_only_looks_like_a_change_is_none(tmp_path, looks):
    (tmp_path / "a.conflist").write_text("{}")

    async def watch():
        queue = asyncio.Queue()
        task = asyncio.create_task(source.main(queue, {"interval": 0.05, "paths": [str(tmp_path)]}))
        await looks()
        (tmp_path / "a.conflist").read_text()
        (tmp_path / ".a.new").write_text("{}")
        (tmp_path / "folder").mkdir()
        await asyncio.wait_for(queue.get(), 60)
        (tmp_path / "folder" / ".deep").write_text("")
        await looks()
        task.cancel()
        return queue.empty()

    assert asyncio.run(watch())


def test_a_change_of_packet_filters(tmp_path, events):
    """However many rules one transaction has."""
    rules = "".join(f"add rule ip t c tcp dport {port} drop\n" for port in range(1, 3000))
    begin = "add table ip t\nadd chain ip t c\n"

    def nft(text):
        subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)

    steps = [lambda: nft(begin + rules), lambda: nft("flush ruleset"), lambda: nft(begin)]
    found = events(steps, paths=[str(tmp_path)], firewall=True)
    assert [(event["cni"]["what"], event["cni"]["paths"]) for event in found] == [("firewall", [])] * 3
    nft("delete table ip t")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"paths": "/etc"}, "paths"),
        ({"paths": ["etc"]}, "paths"),
        ({"paths": [7]}, "paths"),
        ({"interval": 0}, "interval"),
        ({"interval": "soon"}, "interval"),
        ({"interval": True}, "interval"),
        ({"interval": float("nan")}, "interval"),
        ({"host": ""}, "host"),
        ({"host": ["a"]}, "host"),
    ],
)
def test_bad_arguments(args, says):
    with pytest.raises(ValueError, match=f"cni_changes: {says}: "):
        asyncio.run(asyncio.wait_for(source.main(asyncio.Queue(), args), 10))


@pytest.mark.parametrize(
    ("name", "matters"),
    [
        *(("10-a.conflist", True), ("10-a.conf", True), ("a.json", True), ("bridge", True), ("net.d", True)),
        *(("10-a.conflist.bak", False), ("10-a.conflist~", False), ("README.md", False), ("a.swp", False)),
    ],
)
def test_the_filter(name, matters):
    given = {"cni": {"host": "a", "what": "files", "paths": [f"/etc/cni/net.d/{name}", "/x.txt"]}, "meta": {}}
    told = only_files.main(given)
    assert told["cni"]["what"] == ("files" if matters else "others")
    assert told["cni"]["paths"] == ([f"/etc/cni/net.d/{name}"] if matters else [])
    assert told["meta"] == {} and len(given["cni"]["paths"]) == 2


def test_the_filter_leaves_other_events_alone():
    for event in ({}, {"cni": 7}, {"cni": {"what": "firewall", "paths": []}}, {"other": {"paths": ["a.txt"]}}):
        assert only_files.main(event) == event
