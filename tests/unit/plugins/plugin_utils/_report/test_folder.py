# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import fcntl
import functools
import json
import multiprocessing
import os
import stat

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report import folder
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build

NAMES = ["web1", "WEB1", "a.b-c_d", "../../etc/passwd", "/abs", "..", ".hidden", "", "a b", "a\0b", "\u05d0", "x" * 300]
NAMES += ["\ud800", "con\nverse", "-rf", "web_1", "web 1"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_name_stays_in_its_folder(name):
    made = folder.file_name(name)
    assert made == os.path.basename(made) and made.isascii() and made.isprintable() and len(made) < 110
    assert made.endswith(".json") and not made.startswith(".")


def test_no_two_hosts_share_a_file():
    assert len({folder.file_name(name).lower() for name in NAMES}) == len(NAMES)


def test_what_is_written_is_for_its_owner_only(tmp_path):
    path = folder.write_record(str(tmp_path / "new"), build("web1", {}, {}))
    folder.write_report(str(tmp_path / "new"))
    for parent, folders, files in os.walk(tmp_path / "new"):
        for name in [*folders, *files]:
            assert stat.S_IMODE(os.stat(os.path.join(parent, name)).st_mode) & 0o077 == 0
    assert path == str(tmp_path / "new" / "hosts" / "web1.json")


def test_a_report_is_of_all_files(tmp_path):
    for name in ("web2", "web1", "../up"):
        folder.write_record(str(tmp_path), build(name, {}, {}))
    report = folder.write_report(str(tmp_path)).report
    assert [host["host"] for host in report["hosts"]] == ["../up", "web1", "web2"]
    assert report["status"] == "clean"
    assert json.loads((tmp_path / "report.json").read_text()) == report
    assert "<title>" in (tmp_path / "report.html").read_text()
    assert not list((tmp_path / "hosts").glob(".*"))


def test_a_report_keeps_the_inventory_of_the_last_run_that_had_one(tmp_path):
    folder.write_record(str(tmp_path), build("web1", {}, {}))
    assert folder.write_report(str(tmp_path)).report["inventory"] == []
    folder.write_report(str(tmp_path), inventory=["/etc/fleet.yml", "a,"])
    assert folder.write_report(str(tmp_path)).report["inventory"] == ["/etc/fleet.yml", "a,"]
    assert folder.write_report(str(tmp_path), inventory=["/new"]).report["inventory"] == ["/new"]
    (tmp_path / "report.json").write_text("[" * 100000)
    assert folder.write_report(str(tmp_path)).report["inventory"] == []


@pytest.mark.parametrize(("day", "status", "codes"), [(8, "error", []), (9, "clean", ["gone"])])
def test_a_host_that_has_left_the_inventory_is_no_error_for_ever(tmp_path, day, status, codes):
    for name in ("web1", "web2"):
        path = folder.write_record(str(tmp_path), build(name, {}, None, ["unreachable"], "2026-01-01T12:00:00Z"))
    made = folder.write_report(str(tmp_path), f"2026-01-0{day}T00:00:00Z", 7.0, ["a,"], {"all": ["web1"]})
    assert [host["status"] for host in made.report["hosts"]] == ["error", status]
    reasons = made.report["hosts"][1]["attention"]
    assert [reason["code"] for reason in reasons] == codes and all(path in reason["message"] for reason in reasons)


def test_an_inventory_without_the_hosts_of_the_report_is_not_for_its_commands(tmp_path):
    folder.write_record(str(tmp_path), build("web1", {}, {}))
    ours = {"inventory": ["/fleet"], "groups": {"all": ["web1", "web2"]}}
    assert folder.write_report(str(tmp_path), **ours).report["inventory"] == ["/fleet"]
    other = {"inventory": ["/etc/ansible/hosts"], "groups": {"all": ["db1"], "web1": []}}
    assert folder.write_report(str(tmp_path), **other).report["inventory"] == ["/fleet"]
    # Nor do its groups matter.
    assert '--limit</i> <i class="limit">web1<' in (tmp_path / "report.html").read_text()


def test_a_report_of_nothing_is_an_error(tmp_path):
    report = folder.write_report(str(tmp_path)).report
    assert (report["status"], report["counts"]["hosts"]) == ("error", 0)


GOOD = build("good", {}, {})
BAD = {
    "empty": "",
    "text": "hello",
    "list": "[]",
    "nan": '{"format": NaN}',
    "deep": "[" * 100000,
    "future": json.dumps({**GOOD, "format": 2}),
    "status": json.dumps({**GOOD, "status": "fine"}),
    "steps": json.dumps({**GOOD, "steps": [{}]}),
    "missing": json.dumps({key: value for key, value in GOOD.items() if key != "info"}),
    "liar": json.dumps(GOOD),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_none_is_a_host_with_an_error(tmp_path, name):
    folder.write_record(str(tmp_path), build("web1", {}, {}))
    (tmp_path / "hosts" / (name + ".json")).write_text(BAD[name])
    report = folder.write_report(str(tmp_path)).report
    (bad,) = (host for host in report["hosts"] if host["host"] == name)
    assert bad["status"] == "error" and name + ".json" in bad["error"]
    assert report["counts"] == {"hosts": 2, "clean": 1, "drift": 0, "error": 1, "attention": 1}


def test_others_files_are_left_and_not_read(tmp_path):
    folder.write_record(str(tmp_path), build("web1", {}, {}))
    (tmp_path / "hosts" / ".new-x.json").write_text("half")
    (tmp_path / "hosts" / "README").write_text("hello")
    (tmp_path / "hosts" / "folder.json").mkdir()
    assert [host["host"] for host in folder.write_report(str(tmp_path)).report["hosts"]] == ["folder", "web1"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    folder.write_record(str(tmp_path), build("web1", {}, {}, time="2026-11-21T00:00:00Z"))

    def fail(*_arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="No space"):
            folder.write_record(str(tmp_path), build("web1", {}, {}))
    assert os.listdir(tmp_path / "hosts") == ["web1.json"]
    assert folder.write_report(str(tmp_path)).report["hosts"][0]["time"] == "2026-11-21T00:00:00Z"


def slice_of(path, number):
    for host in range(10):
        folder.write_record(path, build("s%d-%d" % (number, host), {}, {}))
    folder.write_report(path)


def test_slices_at_once_leave_a_report_of_all(tmp_path):
    context = multiprocessing.get_context("fork")
    slices = [context.Process(target=slice_of, args=(str(tmp_path), number)) for number in range(6)]
    for process in slices:
        process.start()
    for process in slices:
        process.join()
    assert [process.exitcode for process in slices] == [0] * 6
    assert json.loads((tmp_path / "report.json").read_text())["counts"]["hosts"] == 60


def test_nobody_else_renders_between_reading_and_writing(tmp_path, monkeypatch):
    tried = []

    def spy(function):
        def try_to_lock(*arguments):
            with open(tmp_path / ".lock", encoding="utf-8") as stream, pytest.raises(BlockingIOError):
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            tried.append(function.__name__)
            return function(*arguments)

        return try_to_lock

    monkeypatch.setattr(folder, "read_records", spy(folder.read_records))
    monkeypatch.setattr(folder, "_write", spy(folder._write))
    folder.write_report(str(tmp_path))
    assert tried == ["read_records", "_write", "_write", "_write"]


def test_a_large_fleet_has_pages_and_a_smaller_one_loses_them(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "pages", functools.partial(folder.pages, most=2))
    for number in range(5):
        folder.write_record(str(tmp_path), build(f"web{number}", {}, {}, ["no"] if number == 4 else []))
    (tmp_path / "report-notes.html").write_text("of somebody else")
    folder.write_report(str(tmp_path))
    made = ["report.html", "report-2.html", "report-3.html"]
    # The worst host is on the first page, and every host on one of them.
    for name, hosts in zip(made, (["web4", "web0"], ["web1", "web2"], ["web3"])):
        text = (tmp_path / name).read_text()
        assert [f"web{number}" for number in range(5) if f"web{number}" in rows_of(text)] == sorted(hosts)
        assert "1 of 5 hosts needs attention" in text
        assert [other for other in made if f'href="{other}"' in text] == [other for other in made if other != name]
    for number in (1, 2, 3):
        (tmp_path / "hosts" / f"web{number}.json").unlink()
    folder.write_report(str(tmp_path))
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["report-notes.html", "report.html"]
    assert "Pages of hosts" not in (tmp_path / "report.html").read_text()


def rows_of(text):
    return text.partition("<tbody>")[2].partition("</tbody>")[0]
