# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dns of a result in the namespace's resolv.conf: written, compared and removed, and never another's file."""

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import planner, resolv_conf
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import parse_attachments
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.plan import SAFE
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    actions,
    codes,
    kinds,
    web,
)

DNS = {"nameservers": ["10.0.0.10", "fd00::10"], "domain": "example.net", "search": ["a.net", "b"], "options": ["x:5"]}
LINES = "domain example.net\nnameserver 10.0.0.10\nnameserver fd00::10\nsearch a.net b\noptions x:5\n"


@pytest.fixture
def etc(host, tmp_path, monkeypatch):
    path = tmp_path / "etc"
    for module in (planner, resolv_conf):
        monkeypatch.setattr(module, "NETNS_ETC", str(path))
    monkeypatch.setattr(resolv_conf, "check_trusted", lambda _path: None)
    host.dns = DNS
    return path


@pytest.fixture
def file(etc):
    return etc / "web" / "resolv.conf"


def wanted(**changed):
    return web(resolv_conf=True, **changed)


def lines(file):
    return file.read_text().partition("\n")[2]


def change(host, *entries, **settings):
    """Check, run, check and run again; return the plan of the run."""
    predicted = host.check(*entries, **settings)
    plan = host.run(*entries, **settings)
    assert predicted.actions() == plan.actions()
    assert predicted.diff() == plan.diff()
    assert actions(predicted) == actions(plan)
    assert not host.check(*entries, **settings).changed
    assert not host.run(*entries, **settings).changed
    return plan


def test_it_is_written_after_the_add_and_removed_after_the_del(host, file, etc):
    plan = change(host, wanted())
    assert kinds(plan) == [("add", "demo/web/eth0"), ("resolv_conf", str(file))]
    assert lines(file) == LINES
    assert file.read_text().startswith("# Written by podwire.cni for demo/web/eth0, sha256 ")
    assert (file.stat().st_mode & 0o7777, file.parent.stat().st_mode & 0o7777) == (0o644, 0o755)
    plan = change(host, web(state="absent"))
    assert [(step.kind, step.step_class) for step in plan.steps] == [
        ("del", "disruptive"),
        ("resolv_conf", "disruptive"),
    ]
    assert os.listdir(etc) == []


def test_a_check_writes_nothing(host, etc):
    assert host.check(wanted()).changed
    assert not etc.exists()


def test_the_option_of_an_attachment_that_exists(host, file):
    change(host, web())
    plan = change(host, wanted())
    assert (actions(plan), plan.outcomes[0].reason) == (["updated"], "resolv_conf")
    assert plan.diff()[0]["after"].endswith(LINES)
    assert host.verbs("ADD") == []
    file.unlink()
    assert actions(change(host, wanted())) == ["updated"]
    assert lines(file) == LINES
    assert actions(change(host, web())) == ["updated"]
    # Once the file is gone, nothing tells whose the directory was.
    assert os.listdir(file.parent) == []


def test_without_the_option_it_is_removed(host, file, etc):
    change(host, wanted())
    assert kinds(change(host, web())) == [("resolv_conf", str(file))]
    assert os.listdir(etc) == []


def test_a_directory_that_was_there_stays(host, file):
    file.parent.mkdir(parents=True)
    (file.parent / "hosts").write_text("127.0.0.1 localhost\n")
    change(host, wanted())
    change(host, web(state="absent"))
    assert os.listdir(file.parent) == ["hosts"]


def test_a_directory_with_files_of_others_stays(host, file):
    change(host, wanted())
    (file.parent / "hosts").write_text("127.0.0.1 localhost\n")
    change(host, web(state="absent"))
    assert os.listdir(file.parent) == ["hosts"]


@pytest.mark.parametrize("entry", [web(), web(state="absent"), wanted(), wanted(state="absent")])
def test_a_file_of_another_origin_is_not_touched(host, file, entry):
    file.parent.mkdir(parents=True)
    file.write_text("nameserver 1.1.1.1\n")
    before = os.stat(file)
    plan = host.run(entry)
    assert host.check(entry).steps == []
    assert os.stat(file) == before or os.stat(file).st_mtime_ns == before.st_mtime_ns
    assert file.read_text() == "nameserver 1.1.1.1\n"
    asked = entry.get("resolv_conf") and entry.get("state") != "absent"
    assert codes(plan) == (["resolv_conf_foreign"] if asked else [])


@pytest.mark.parametrize("entry", [web(), web(state="absent"), wanted()])
def test_an_edited_file_is_not_touched(host, file, entry):
    change(host, wanted())
    with open(file, "a") as stream:
        stream.write("nameserver 9.9.9.9\n")
    before = file.read_text()
    plan = host.run(entry)
    assert codes(plan) == ["resolv_conf_foreign"]
    assert str(file) in plan.warnings[0][1]
    assert file.read_text() == before


def test_links_and_pipes_are_not_followed(host, file, tmp_path):
    file.parent.mkdir(parents=True)
    target = tmp_path / "target"
    target.write_text("x\n")
    file.symlink_to(target)
    assert codes(host.run(wanted())) == ["resolv_conf_foreign"]
    assert (file.is_symlink(), target.read_text()) == (True, "x\n")
    file.unlink()
    os.mkfifo(file)
    assert codes(host.run(wanted())) == ["resolv_conf_foreign"]


def test_two_attachments_of_a_namespace_do_not_take_the_file_from_each_other(host, file):
    other = wanted(ifname="eth1")
    plan = host.run(wanted(), other)
    assert codes(plan) == ["resolv_conf_foreign"]
    assert "for demo/web/eth0," in file.read_text()
    assert not host.run(wanted(), other).changed
    # The second gets it as soon as the first no longer wants it.
    plan = host.run(web(), other)
    assert kinds(plan) == [("resolv_conf", str(file))] * 2
    assert "for demo/web/eth1," in file.read_text()
    assert not host.run(web(), other).changed
    host.run(web(state="absent"))
    assert lines(file) == LINES


def test_a_repair_writes_it_again(host, file):
    change(host, wanted())
    host.namespaces["/run/netns/web"][1].discard("eth0")
    host.dns = {"nameservers": ["10.0.0.11"]}
    plan = host.run(wanted())
    assert [kind for kind, _target in kinds(plan)] == ["repair", "resolv_conf"]
    assert lines(file) == "nameserver 10.0.0.11\n"
    assert not host.run(wanted()).changed


def test_it_follows_the_attachment_to_another_namespace(host, file, etc):
    change(host, wanted())
    host.namespace("new", inode=9)
    change(host, wanted(netns="new"))
    assert sorted(os.listdir(etc)) == ["new"]
    assert lines(etc / "new" / "resolv.conf") == LINES


def test_a_result_without_dns_needs_no_file(host, etc):
    host.dns = None
    change(host, wanted())
    assert not etc.exists()


def test_an_add_that_fails_writes_nothing(host, etc):
    host.broken["ADD", "main"] = "no"
    assert actions(host.run(wanted())) == ["failed"]
    assert not etc.exists()


def test_a_del_that_fails_keeps_it(host, file):
    change(host, wanted())
    host.broken["DEL", "main"] = "no"
    assert actions(host.run(web(state="absent"))) == ["failed"]
    assert lines(file) == LINES


def test_it_cannot_be_written(host, etc):
    etc.write_text("a file\n")
    plan = host.run(wanted())
    assert actions(plan) == ["failed"]
    assert plan.outcomes[0].error["code"] in ("no_directory", "write_failed")
    assert host.cached() == ["demo-web-eth0"]


def test_users_other_than_root_can_write_to_the_directory(host, etc, monkeypatch):
    def refuse(path):
        raise HostError(f"{path} is writable", code="unsafe_permissions")

    monkeypatch.setattr(resolv_conf, "check_trusted", refuse)
    plan = host.run(wanted())
    assert plan.outcomes[0].error["code"] == "unsafe_permissions"
    assert host.cached() == []
    assert actions(host.run(web())) == ["added"]


@pytest.mark.parametrize("netns", ["/proc/1/ns/net", "/run/netns/a/b", "/var/run/docker/netns/x"])
def test_a_namespace_without_a_name_is_refused(netns):
    with pytest.raises(HostError, match="needs a namespace that has a name") as caught:
        parse_attachments([wanted(netns=netns)])
    assert caught.value.code == "bad_netns"
    [absent] = parse_attachments([wanted(netns=netns, state="absent")])
    assert not absent.resolv_conf


@pytest.mark.parametrize("netns", ["web", "/run/netns/web", "/var/run/netns/web"])
def test_a_namespace_with_a_name(netns):
    assert parse_attachments([wanted(netns=netns)])[0].resolv_conf


@pytest.mark.parametrize(
    ("dns", "expected"),
    [
        (None, ""),
        ([], ""),
        ({"nameservers": None, "domain": 5, "search": {"a": 1}}, ""),
        ({"nameservers": ["1.1.1.1\nnameserver 6.6.6.6", "", "2.2.2.2", 7]}, "nameserver 2.2.2.2\n"),
        ({"search": ["a b", "c", "d\u00e9"], "domain": "x y"}, "search c\n"),
        ({"nameservers": "9.9.9.9"}, "nameserver 9.9.9.9\n"),
    ],
)
def test_what_a_line_cannot_carry_is_left_out(dns, expected):
    assert resolv_conf.content(dns).decode() == expected


def test_it_is_left_with_the_detachment_that_the_classes_do_not_allow(host, file):
    change(host, wanted())
    plan = host.check(web(state="absent"))
    plan.restrict([SAFE])
    assert (plan.changed, actions(plan)) == (False, ["left"])
    assert [step.kind for step in plan.left] == ["del", "resolv_conf"]
