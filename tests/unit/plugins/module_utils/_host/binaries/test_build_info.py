# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import io
import random
import struct

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.build_info import build_info

START = bytes.fromhex("3077af0c9274080241e1c107e6d618e6")
END = bytes.fromhex("f932433186182072008242104116d8f2")
RECORD = (
    "path\tgithub.com/a/plugins/main/bridge\n"
    "mod\tgithub.com/a/plugins\tv1.9.1\th1:x=\n"
    "dep\tgithub.com/b/netlink\tv1.3.1\th1:y=\n"
    "dep\tgolang.org/x/sys\tv0.30.0\n"
    "=>\tgithub.com/c/sys\tv0.31.0\th1:z=\n"
    "build\t-compiler=gc\n"
    "build\tGOARCH=amd64\n"
    "build\tvcs.revision=0123456789abcdef\n"
)
FOUND = {
    "version": "go1.26.5",
    "path": "github.com/a/plugins/main/bridge",
    "module": "github.com/a/plugins@v1.9.1",
    "modules": ["github.com/b/netlink@v1.3.1", "golang.org/x/sys@v0.30.0 => github.com/c/sys@v0.31.0"],
    "settings": {"GOARCH": "amd64", "vcs.revision": "0123456789abcdef"},
}
BASE = 0x400000


def varint(number):
    encoded = b""
    while number > 127:
        encoded += bytes([number & 127 | 128])
        number >>= 7
    return encoded + bytes([number])


def fenced(record):
    return START + record.encode("utf-8") + END if record else b""


def inline(version, record, width=8):
    texts = [version.encode(), fenced(record)]
    return (b"\xff Go buildinf:" + bytes([width, 2])).ljust(32, b"\0") + b"".join(varint(len(t)) + t for t in texts)


def elf(section, wide=True, order="<", more=b""):
    """Return an ELF file with the section at 0x200, *more* behind it, and a segment that maps the file at BASE."""
    names = b"\0.shstrtab\0.go.buildinfo\0"
    at = 0x200
    data = section + more
    names_at = at + len(data)
    table_at = names_at + len(names)
    flag = bytes([2 if wide else 1, 1 if order == "<" else 2])
    head = (b"\x7fELF" + flag).ljust(16, b"\0")
    form = "HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"
    sizes = (64, 56, 1, 64, 3, 1) if wide else (52, 32, 1, 40, 3, 1)
    head += struct.pack(order + form, 2, 62, 1, BASE, len(head) + (48 if wide else 36), table_at, 0, *sizes)
    if wide:
        head += struct.pack(order + "IIQQQQQQ", 1, 4, 0, BASE, BASE, table_at, table_at, 4096)
        row = "IIQQQQIIQQ"
    else:
        head += struct.pack(order + "IIIIIIII", 1, 0, BASE, BASE, table_at, table_at, 4, 4096)
        row = "IIIIIIIIII"
    table = b"".join(
        struct.pack(order + row, name, 1, 0, BASE + offset, offset, size, 0, 0, 1, 0)
        for name, offset, size in ((0, 0, 0), (1, names_at, len(names)), (11, at, len(section)))
    )
    return head.ljust(at, b"\0") + data + names + table


def pointed(version, record, width, order):
    """Return a section as it was before Go 1.18, and what its pointers lead to."""
    form = order + ("Q" if width == 8 else "I")
    texts = [version.encode(), fenced(record)]
    at = BASE + 0x200 + 64
    pointers = [at, at + 2 * width]
    section = b"\xff Go buildinf:" + bytes([width, 1 if order == ">" else 0])
    section = (section + b"".join(struct.pack(form, pointer) for pointer in pointers)).ljust(64, b"\0")
    behind, place = b"", at + 4 * width
    for text in texts:
        behind += struct.pack(form[0] + form[1] * 2, place, len(text))
        place += len(text)
    return section, behind + b"".join(texts)


def read(data):
    return build_info(io.BytesIO(data))


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
def test_the_record_is_read_on_every_kind_of_machine(wide, order):
    assert read(elf(inline("go1.26.5", RECORD), wide, order)) == FOUND
    section, behind = pointed("go1.26.5", RECORD, 8 if wide else 4, order)
    assert read(elf(section, wide, order, behind)) == FOUND


def test_a_program_without_modules_names_its_go():
    nothing = {"path": "", "module": "", "modules": [], "settings": {}}
    assert read(elf(inline("go1.19.8", ""))) == {"version": "go1.19.8", **nothing}
    # The fence without its line end, and texts that no linker writes.
    for record in (
        "path\tx",
        "dep\ta\n",
        "dep\t\x1b[31m\tv1\n",
        "=>\ta\tv1\n",
        "mod\ta" * 200 + "\n",
        "\n\n",
        "dep\tä\tv1\n",
    ):
        assert read(elf(inline("go1.19.8", record)))["modules"] == []


def test_the_number_of_modules_is_bounded():
    record = "".join(f"dep\tm{index}\tv1.0.0\n" for index in range(3000))
    assert len(read(elf(inline("go1.26.5", record)))["modules"]) == 1000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"#!/bin/sh\n",
        b"\x7fELF",
        b"\x7fELF" + bytes(60),
        elf(b"\xff Go buildinf:"),
        elf(b"another section".ljust(64, b"\0")),
        elf(inline("", "")),
        elf(inline("go1.26.5", RECORD)[:40]),
        elf((b"\xff Go buildinf:" + bytes([8, 2])).ljust(32, b"\0") + b"\xff" * 20),
        elf(pointed("go1.26.5", RECORD, 8, "<")[0]),
    ],
)
def test_what_is_no_program_of_go_has_none(data):
    assert read(data) is None


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_file_is_never_a_traceback(seed):
    dice = random.Random(seed)
    section, behind = pointed("go1.26.5", RECORD, 8, "<")
    whole = [elf(inline("go1.26.5", RECORD)), elf(section, more=behind)]
    for _round in range(500):
        data = bytearray(dice.choice(whole))
        for _byte in range(dice.randrange(1, 12)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        found = read(bytes(data[: dice.randrange(len(data))] if dice.random() < 0.3 else data))
        assert found is None or set(found) == set(FOUND)
