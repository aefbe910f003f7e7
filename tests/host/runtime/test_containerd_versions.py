# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The containerds of other Debians. They are configured, and read their configuration, but do not run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

FOLDER = Path("/etc/containerd")


@pytest.fixture
def containerd(settings, sbin, debian, configuration):
    """A containerd as if it was installed, with a configuration."""
    packages = {Path(path).name: Path(path) for path in settings["cni_test_containerds"]}
    assert set(packages) == {"trixie", "forky"}, "the parameters of the test are not all of the containerds"
    shutil.copy(packages[debian] / "usr/bin/containerd", sbin)
    source = {
        "none": None,
        "rich.toml": Path(__file__).parent / "files" / "rich.toml",
        "package.toml": packages[debian] / "etc/containerd/config.toml",
    }[configuration]
    FOLDER.mkdir()
    if source:
        shutil.copy(source, FOLDER / "config.toml")
    yield
    shutil.rmtree(FOLDER)


@pytest.mark.parametrize("debian, configuration", [("forky", "none")])
@pytest.mark.parametrize(
    "name, words",
    [
        ("99-z.toml", "conf.d/99-z.toml, line 3, sets bin_dir: it is read after"),
        # What Python's glob does not match. containerd's own command tells it afterwards.
        (".99-z.toml", "would start no container; its CRI plugin does not start, because bin_dir"),
    ],
)
def test_a_bin_dir_that_containerd_reads_later_is_refused(host, containerd, name, words, configurations):
    (FOLDER / "conf.d").mkdir()
    (FOLDER / "config.toml").write_text('version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n')
    section = '[plugins."io.containerd.cri.v1.runtime".cni]'
    (FOLDER / "conf.d" / name).write_text(f'version = 3\n{section}\nbin_dir = "/x"\n')
    before = configurations()
    refused = host.fail("cni_conf", networks=[], runtime=["containerd"], configure={})
    assert refused["code"] == "overridden" and words in refused["msg"]
    assert configurations() == before


@pytest.mark.parametrize(
    "debian, configuration",
    [("trixie", "rich.toml"), ("trixie", "none"), ("forky", "rich.toml"), ("forky", "none"), ("forky", "package.toml")],
)
def test_containerd_gets_its_options_loses_nothing_and_gets_its_file_back(
    host, containerd, configuration, configurations, nets, bins
):
    before = configurations()
    host.change(
        "cni_conf",
        configurations,
        networks=[],
        runtime=["containerd"],
        configure={"max_conf_num": 3, "setup_serially": True},
    )
    # The newer one has single quotes.
    lines = [line.strip().replace("'", '"') for line in sh("containerd config dump").splitlines()]
    assert f'conf_dir = "{nets}"' in lines
    assert f'bin_dir = "{bins}"' in lines or f'bin_dirs = ["{bins}"]' in lines
    assert "max_conf_num = 3" in lines
    assert "setup_serially = true" in lines
    if configuration == "rich.toml":
        assert {"SystemdCgroup = true", 'ip_pref = "ipv6"', 'level = "warn"'} <= set(lines)

    host.run("cni_conf", networks=[], runtime=["containerd"], configure={"state": "absent"})
    drop_ins = FOLDER / "conf.d"
    if drop_ins.exists() and str(drop_ins) not in before:
        drop_ins.rmdir()
    assert configurations() == before
