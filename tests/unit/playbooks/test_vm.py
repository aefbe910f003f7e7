# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the virtual machines' machinery that need no virtual machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "playbooks" / "vm"))

import vm
from podwire_vm import cloud, common, images, machines, progress, qemu, states

CHECKSUM = "sha256:" + "0" * 64


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    umask = os.umask(0o022)
    yield tmp_path / "cache" / "podwire-cni" / "vm"
    # vm.main sets it for its process, which here is that of all tests.
    os.umask(umask)


@pytest.fixture
def pretended_qemu(tmp_path):
    """Start processes that look like QEMU with a pid file; end them."""
    started = []

    def start(pid_file, name=qemu.QEMU):
        command = [name, "-c", "import time; print(flush=True); time.sleep(600)", "-pidfile", str(pid_file)]
        process = subprocess.Popen(command, executable=sys.executable, stdout=subprocess.PIPE)
        process.stdout.readline()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize(
    ("machine", "complaint"),
    [
        ("debian-12", "not a mapping"),
        ({}, "not a host name"),
        ({"name": "Debian"}, "not a host name"),
        ({"name": "a/b"}, "not a host name"),
        ({"name": "../x"}, "not a host name"),
        ({"name": "a" * 64}, "not a host name"),
        ({"name": "a", "restrict": "no"}, "not true or false"),
        ({"name": "a", "forward": [80]}, "not a mapping"),
        ({"name": "a", "forward": {"http": 0}}, "not a TCP port"),
        ({"name": "a", "forward": {0: 0}}, "not a TCP port"),
        ({"name": "a", "forward": {80: 65536}}, "not a TCP port"),
        ({"name": "a", "forward": {80: True}}, "not a TCP port"),
    ],
)
def test_a_wrong_machine_is_refused(machine, complaint):
    with pytest.raises(common.VmError, match=complaint):
        machines.Wish.parse(machine)


def test_a_machine_is_understood():
    wish = machines.Wish.parse({"name": "web", "image": "debian-13", "forward": {"8080": 0, 53: "5353"}})
    assert (wish.name, wish.image, wish.restrict, wish.ports) == ("web", "debian-13", True, {22: 0, 8080: 0, 53: 5353})
    assert machines.Wish.parse({"name": "debian-12"}).image == "debian-12"
    described = {"name": "debian-13", "packages": ["podman"]}
    assert machines.Wish.parse({"name": "debian-12", "vm_image": described}).image == described


WEB = {"name": "web", "image": "debian-12"}


@pytest.mark.parametrize(
    ("described", "complaint"),
    [
        *((nothing, "no machines") for nothing in ([], {}, None, "debian-12")),
        ([WEB, {**WEB, "image": "debian-13"}], "web: two machines have this name"),
    ],
)
def test_no_machine_or_one_twice_is_refused(described, complaint):
    with pytest.raises(common.VmError, match=complaint):
        vm.check(described, "tcg")


def test_an_image_is_kept_by_the_digest_of_its_recipe(cache, tmp_path, monkeypatch):
    before = images.find("debian-12").directory
    assert before.parent == cache / "images"
    assert images.find("debian-12").directory == before
    recipe = tmp_path / "recipe"
    recipe.write_text("another")
    monkeypatch.setattr(images, "RECIPE", recipe)
    assert images.find("debian-12").directory != before


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ({"name": "debian-11"}, r"'debian-11': unknown\. Known are"),
        ({"name": ["debian-12"]}, "unknown"),
        ({"name": "debian-12", "package": ["podman"]}, "'debian-12': unknown key package"),
        ({"name": "debian-12", "packages": "podman"}, "not a list"),
        ({"name": "debian-12", "packages": ["--force"]}, "'--force' is not the name of a Debian package"),
        ({"name": "debian-12", "packages": ["podman,apt"]}, "'podman,apt' is not the name"),
        ({"name": "debian-12", "packages": [1]}, "1 is not the name"),
        ({"url": "http://example.org/i.qcow2", "checksum": CHECKSUM}, "not an https"),
        ({"checksum": CHECKSUM}, "not an https"),
        ({"url": "https://example.org/i.qcow2"}, "checksum is ''"),
        ({"url": "https://example.org/i.qcow2", "checksum": "md5:0"}, "checksum is 'md5:0'"),
        ({"url": "https://example.org/i.qcow2", "checksum": CHECKSUM, "user": "a b"}, "not a user name"),
        ({"url": "https://example.org/i.qcow2", "checksum": CHECKSUM, "format": "qcow2"}, "unknown key format"),
    ],
)
def test_a_wrong_image_is_refused(wanted, complaint):
    with pytest.raises(common.VmError, match=complaint):
        images.find(wanted)


def test_other_packages_make_another_image_whatever_their_order(tmp_path, monkeypatch):
    plain, dnsmasq, both = (
        images.find({"name": "debian-12", "packages": packages})
        for packages in ([], ["dnsmasq-base"], ["podman", "dnsmasq-base", "podman"])
    )
    assert plain.directory == images.find("debian-12").directory
    assert len({plain.directory, dnsmasq.directory, both.directory}) == 3
    assert both == images.find({"name": "debian-12", "packages": ["dnsmasq-base", "podman"]})
    monkeypatch.setattr(images, "RECIPE", tmp_path / "recipe")
    images.RECIPE.write_text('echo "$1" "${@:3}" >"$2/arguments"')
    image = images.find({"name": "debian-13", "packages": ["podman", "g++"]})
    assert images.build(image)
    assert (image.directory / "arguments").read_text() == "trixie g++ podman\n"


def test_a_cloud_image_that_is_missing_or_has_another_checksum_is_not_kept(tmp_path, cache):
    disk = tmp_path / "disk.img"
    image = images.find({"url": disk.as_uri(), "checksum": CHECKSUM})
    with pytest.raises(common.VmError, match=disk.as_uri()):
        images.build(image)
    disk.write_bytes(b"somebody else's")
    with pytest.raises(common.VmError, match=f"its sha256 is {hashlib.sha256(disk.read_bytes()).hexdigest()}, not 000"):
        images.build(image)
    assert not [path for path in (cache / "images").iterdir() if path.is_dir()]


def test_cloud_init_is_told_whom_to_let_in(tmp_path):
    (tmp_path / "ssh_key.pub").write_text("ssh-ed25519 AAAA podwire-vm\n")
    cloud._write_seed(cloud.parse({"url": "https://example.org/i", "checksum": CHECKSUM, "user": "admin"}), tmp_path)
    first, rest = (tmp_path / "seed" / "user-data").read_text().split("\n", 1)
    (user,) = json.loads(rest)["users"]
    assert (first, user["name"]) == ("#cloud-config", "admin")
    assert user["ssh_authorized_keys"] == ["ssh-ed25519 AAAA podwire-vm"]


@pytest.mark.parametrize(
    ("need", "complaint"),
    [
        (lambda: common.need_space(Path("/"), 10**11), "MiB of disk are free, 100000000000 MiB are needed"),
        (lambda: common.need_memory(10**11), "memory are available, a virtual machine needs 100000000000 MiB"),
        (lambda: common.need_program("sh", "no-such-program"), r"^no-such-program: not found\. On Debian: apt-get"),
        (lambda: states.choose_accelerator(images.find("debian-12"), "xen"), "not one of auto, tcg, kvm"),
    ],
)
def test_what_the_host_lacks_is_told(need, complaint):
    with pytest.raises(common.VmError, match=complaint):
        need()


def test_whether_kvm_works_is_found_out_once_for_each_host_and_not_waited_for(monkeypatch, cache):
    image, probed = images.find("debian-12"), []
    monkeypatch.setattr(states, "_machine", lambda: "this one")
    monkeypatch.setattr(states, "_probe", lambda asked: probed.append(asked) or ("kvm", "it works"))
    assert states.choose_accelerator(image, "auto") == "kvm"
    with common.locked(cache / ".accelerator.lock", None):
        assert states.choose_accelerator(image, "auto") == "kvm"
    assert len(probed) == 1
    monkeypatch.setattr(states, "_machine", lambda: "another one")
    states.choose_accelerator(image, "auto")
    assert len(probed) == 2


def test_what_the_system_refuses_is_told_without_a_traceback(monkeypatch, capsys, tmp_path):
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr(sys, "argv", ["vm.py", "build", "debian-12"])
    assert vm.main() == 1
    told = capsys.readouterr().err
    assert told.startswith(f"{common.FAILED}[Errno") and str(tmp_path / "cache") in told


def pretend_to_bootstrap(monkeypatch, fail=None):
    built = []

    def bootstrap(image, directory, lock):
        built.append(image.name)
        (directory / "disk.raw").write_bytes(b"disk")
        if fail:
            raise fail

    monkeypatch.setattr(images, "_bootstrap", bootstrap)
    monkeypatch.setattr(images, "need_space", lambda *arguments: None)
    return built


def test_an_image_is_built_once(monkeypatch):
    built = pretend_to_bootstrap(monkeypatch)
    image = images.find("debian-12")
    assert images.build(image)
    assert not images.build(image)
    assert built == ["debian-12"]


@pytest.mark.parametrize("fail", [common.VmError("no network"), KeyboardInterrupt()])
def test_a_failed_build_leaves_nothing(monkeypatch, fail):
    pretend_to_bootstrap(monkeypatch, fail)
    image = images.find("debian-12")
    with pytest.raises(type(fail)):
        images.build(image)
    assert not [path for path in image.directory.parent.iterdir() if path.is_dir()]


def test_what_a_killed_build_has_left_is_removed(monkeypatch):
    pretend_to_bootstrap(monkeypatch)
    image = images.find("debian-12")
    leftover = image.directory.with_name(f".{image.directory.name}.tmp-x")
    leftover.mkdir()
    images.build(image)
    assert not leftover.exists()


@pytest.mark.parametrize("damage", [b"", b"disk and more", None])
def test_a_damaged_image_is_built_again(monkeypatch, damage):
    built = pretend_to_bootstrap(monkeypatch)
    image = images.find("debian-12")
    images.build(image)
    disk = image.directory / "disk.raw"
    if damage is None:
        disk.unlink()
    else:
        disk.write_bytes(damage)
    assert images.build(image)
    assert image.ready
    assert len(built) == 2


def test_an_image_is_not_removed_under_a_machine(monkeypatch):
    pretend_to_bootstrap(monkeypatch)
    image = images.find("debian-12")
    images.build(image)
    with common.lock_shared(image.lock), pytest.raises(common.VmError, match="in use"):
        images.remove_unused(image)
    images.remove_unused(image)
    assert not image.directory.exists()


def test_images_that_nobody_uses_are_removed_when_another_is_built(monkeypatch):
    pretend_to_bootstrap(monkeypatch)
    old, used = images.find("debian-12"), images.find("debian-13")
    images.build(old)
    images.build(used)
    with common.lock_shared(old.lock), common.lock_shared(used.lock):
        pass
    os.utime(old.lock, (0, 0))
    images.build(images.find("debian-forky"))
    assert (old.ready, used.ready) == (False, True)


def test_the_sweep_leaves_a_build_alone_that_goes_on(monkeypatch):
    pretend_to_bootstrap(monkeypatch)
    image = images.find("debian-12")
    images.build(image)
    partial = image.directory.with_name(f".{image.directory.name}.tmp-x")
    booting = image.directory / "tmp-x"
    partial.mkdir()
    booting.mkdir()
    with common.locked(image.build_lock, None), common.locked(image.save_lock, None):
        states.sweep()
        assert partial.exists() and booting.exists()
    image.save_lock.touch()
    states.sweep()
    assert not partial.exists() and not booting.exists()


def test_only_the_processes_of_a_directory_are_ended(tmp_path, pretended_qemu):
    ours, deeper = pretended_qemu(tmp_path / "run/a/pid"), pretended_qemu(tmp_path / "run/a/b/pid")
    theirs, other_program = pretended_qemu(tmp_path / "run2/pid"), pretended_qemu(tmp_path / "run/a/pid", name="sleep")
    # A pid file whose process has ended, and whose number is another's by now.
    (tmp_path / "run/a").mkdir(parents=True)
    (tmp_path / "run/a/pid").write_text(str(theirs.pid))
    assert sorted(qemu.end_processes(tmp_path / "run")) == sorted([ours.pid, deeper.pid])
    assert ours.wait(10) == deeper.wait(10) == -15
    assert theirs.poll() is None and other_program.poll() is None


def test_all_machines_of_a_run_are_destroyed_and_nothing_else(tmp_path, pretended_qemu):
    run = tmp_path / "run"
    assert machines.destroy_all(run) == []
    (run / "web").mkdir(parents=True)
    (run / ".web.lock").touch()
    (run / "notes").touch()
    process, lost = pretended_qemu(run / "web/pid"), pretended_qemu(run / "gone/pid")
    assert machines.destroy_all(run) == ["web", f"process {lost.pid}"]
    assert process.wait(10) == lost.wait(10) == -15
    assert [path.name for path in run.iterdir()] == ["notes"]
    assert machines.destroy_all(run) == []


@pytest.mark.parametrize(("restrict", "word"), [(True, "on"), (False, "off")])
def test_the_network_is_closed_unless_wished_otherwise(restrict, word):
    disk, memory = Path("/a,b/disk"), Path("/a,b/memory")
    options = qemu.Hardware("tcg", disk, memory, [], restrict=restrict, forward={22: 0, 80: 8080}).options()
    # A comma would begin another setting.
    assert [any(text in option for option in options) for text in ("=/a,,b/disk,", "=/a,,b/memory,")] == [True] * 2
    (network,) = (option for option in options if option.startswith("user,"))
    assert network == f"user,id=net,restrict={word},hostfwd=tcp:127.0.0.1:0-:22,hostfwd=tcp:127.0.0.1:8080-:80"


def turns(directory, script):
    """Return what each call says about a script of Python, until it is finished."""
    found = []
    while not found or not found[-1]["finished"]:
        found.append(progress.follow([sys.executable, "-c", script], directory, len(found) + 1))
    return found


# It waits for a file, which appears only after a line was told; for a while, so that it ends if none is told.
WAITING = """\
import os, sys, time
for n in range(3):
    print("part", n, file=sys.stderr, flush=True)
    end = time.monotonic() + 20
    while not os.path.exists(sys.argv[1]) and time.monotonic() < end:
        time.sleep(0.05)
print("[1]")
"""


def test_each_call_says_one_more_line_until_the_command_has_ended(tmp_path):
    directory, go = tmp_path / "run" / "build", tmp_path / "go"
    directory.mkdir(parents=True)
    # Of an earlier command, which nobody has followed.
    (directory / "said").write_text("old\n")
    command = [sys.executable, "-c", WAITING, go]
    assert progress.follow(command, directory, 1) == {"line": "part 0", "finished": False}
    assert progress._is_running(directory)
    go.touch()
    found = [progress.follow(command, directory, number) for number in (2, 3, 4)]
    assert [turn["line"] for turn in found] == ["part 1", "part 2", "done"]
    assert [turn.get("result") for turn in found] == [None, None, [1]]
    assert list(directory.parent.iterdir()) == []
    assert [turn["line"] for turn in turns(directory, "print('[]')")] == ["done"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"import sys; print('a', file=sys.stderr); sys.exit({common.FAILED!r} 'no disk')", "no disk"),
        ("import os; os.kill(os.getpid(), 9)", "the build was killed"),
    ],
)
def test_a_command_that_fails_is_told_with_its_reason(tmp_path, script, reason):
    with pytest.raises(common.VmError, match=f"^{reason}$"):
        turns(tmp_path / "build", script)
    assert not (tmp_path / "build").exists()


def test_the_build_of_a_wrong_image_is_followed_to_its_error(tmp_path, capsys, monkeypatch):
    # Its error is a line like others until the build has ended.
    for number in (1, 2):
        monkeypatch.setattr(sys, "argv", ["vm.py", "follow", str(tmp_path), "web", "debian-1", str(number)])
        if vm.main():
            break
    else:
        pytest.fail("the build of an unknown image goes on")
    assert "image 'debian-1': unknown" in capsys.readouterr().err
