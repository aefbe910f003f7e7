# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""Scripts as plugins."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

SCRIPT = """#!/usr/bin/python3 -IS
import json, os
print(json.dumps({"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}))
"""


@pytest.fixture
def source(work, new):
    """A directory with a good plugin, a script that is one, and an installer, which must not run."""
    folder = work / "vendor"
    folder.mkdir()
    (folder / "loopback").write_bytes(Path(new, "loopback").read_bytes())
    (folder / "debug").write_text(SCRIPT)
    (folder / "install").write_text(f"#!/bin/sh\ntouch {work}/ran\n")
    return folder


def packed(source):
    path = source.with_suffix(".tgz")
    with tarfile.open(path, "w:gz") as archive:
        for file in source.iterdir():
            archive.add(file, file.name)
    return path


@pytest.mark.parametrize("pack", [str, packed], ids=["directory", "archive"])
def test_a_script_is_installed_if_it_is_named(host, change, work, source, pack):
    names = ["debug", "loopback"]
    made = change(["make_directory"] + ["install"] * 2, ["installed"] * 2, names, src=str(pack(source)), plugins=names)
    script, elf = made.run["plugins"]
    assert (script["kind"], script["cni_versions"]) == ("script", ["0.4.0", "1.0.0"])
    assert (elf["kind"], elf["name"]) == ("elf", "loopback")
    (found,) = (row for row in host.run("cni_info")["plugins"] if row["name"] == "debug")
    assert (found["kind"], found["machine"], found["cni_versions"]) == ("script", "", ["0.4.0", "1.0.0"])
    removed = host.run("cni_plugins", state="absent", plugins=["debug"])
    assert [(plugin["kind"], plugin["action"]) for plugin in removed["plugins"]] == [("script", "removed")]
    assert not (work / "ran").exists()


def test_the_plugin_of_the_collection(host, change, bin_dir):
    made = change(["make_directory", "install"], ["installed"], ["podwire-multinet"], src="builtin")
    (plugin,) = made.run["plugins"]
    assert (plugin["kind"], plugin["cni_versions"][-1]) == ("script", "1.1.0")
    removed = host.run("cni_plugins", state="absent", plugins=["podwire-multinet"])
    assert [plugin["action"] for plugin in removed["plugins"]] == ["removed"]
    host.run("cni_plugins", src="builtin", plugins=["podwire-multinet"])
    assert [path.name for path in bin_dir.iterdir()] == ["podwire-multinet"]
    failed = host.fail("cni_plugins", src="builtin", plugins=["bridge"])
    assert (failed["code"], "podwire-multinet" in failed["msg"]) == ("missing_member", True)
    assert host.fail("cni_plugins", src="builtin", remote_src=True)["code"] == "bad_source"


@pytest.mark.parametrize("pack", [str, packed], ids=["directory", "archive"])
def test_without_names_no_script_is_installed_or_run(change, work, source, pack):
    change(["make_directory", "install"], ["installed"], ["loopback"], src=str(pack(source)))
    assert not (work / "ran").exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (SCRIPT.replace("#!/usr/bin/python3", "#!/usr/bin/env python3"), "bad_interpreter"),
        (SCRIPT.replace("#!/usr/bin/python3", "#!python3"), "bad_interpreter"),
        ("#!/bin/sh\nexit 3\n", "plugin_failed"),
    ],
)
def test_a_script_that_root_may_not_run_never_goes_live(host, bin_dir, source, text, code):
    (source / "debug").write_text(text)
    failed = host.fail("cni_plugins", src=str(source), plugins=["debug", "loopback"])
    assert failed["code"] == code and "debug" in failed["msg"], failed["msg"]
    assert not bin_dir.exists() or list(bin_dir.iterdir()) == []


def test_the_interpreter_of_a_script_belongs_to_root(host, work, source):
    interpreter = work / "python3"
    interpreter.write_bytes(Path("/usr/bin/python3").resolve().read_bytes())
    interpreter.chmod(0o777)
    (source / "debug").write_text(SCRIPT.replace("/usr/bin/python3", str(interpreter)))
    assert host.fail("cni_plugins", src=str(source), plugins=["debug"])["code"] == "bad_interpreter"
    interpreter.chmod(0o755)
    assert host.run("cni_plugins", src=str(source), plugins=["debug"])["plugins"][0]["kind"] == "script"


def test_a_script_that_nobody_installed_is_not_run_by_cni_info(host, bin_dir, work, source):
    bin_dir.mkdir(parents=True)
    script = bin_dir / "install"
    script.write_text((source / "install").read_text())
    script.chmod(0o755)
    info = host.run("cni_info")
    assert [(row["name"], row["kind"], row["cni_versions"]) for row in info["plugins"]] == [("install", "script", [])]
    assert not (work / "ran").exists()
