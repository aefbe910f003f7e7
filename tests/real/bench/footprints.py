# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Measures footprints without Ansible, and appends JSON to $BENCH_DIR/footprints.

footprints.py look CACHE_DIR
    {"seconds", "kilobytes"} of comparing all attachments of a cache with the host, beyond a process that has read
    the cache
footprints.py record WORKERS NETWORK CONTAINER...
    the seconds that attaching all containers takes {"with", "without"} recording: medians of alternating repeats
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[3] / "plugins"))

from module_utils._host import netns
from module_utils._host.attachments import recording
from module_utils._host.attachments.caches import read_cache
from module_utils._host.attachments.drift import Drifts, present_in
from module_utils._host.attachments.outcome import AttachSettings
from module_utils._host.attachments.planner import AttachPlanner
from module_utils._host.attachments.request import parse_attachments
from module_utils._host.attachments.store import AttachmentStore
from module_utils._host.attachments.verbs import Verbs
from module_utils._host.footprints.state import RECORDED
from module_utils._host.lock import run_locked

TURNS = 7
BIN_DIRS = ["/opt/cni/bin"]


def kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def look(cache_dir: str) -> dict[str, float]:
    entries = [entry.attached for entry in read_cache(cache_dir).entries if entry.attached is not None]
    used, begun = kilobytes(), time.perf_counter()
    seen = netns.inspect_paths({attached.netns: () for attached in entries})
    present = present_in(cache_dir, entries, {path: there.identity for path, there in seen.items()})
    drifts = Drifts(present, AttachmentStore(cache_dir).read_shared())
    seconds = time.perf_counter() - begun
    sources = [drift.source for drift in drifts.attachments]
    assert sources == [RECORDED] * len(entries), "not every attachment has a footprint"
    assert not drifts.problems, drifts.problems
    return {"seconds": seconds, "kilobytes": kilobytes() - used}


def record(workers: str, network: str, *containers: str) -> dict[str, float]:
    took: dict[str, list[float]] = {"with": [], "without": []}
    begin = recording.Recording.begin
    for _turn in range(TURNS):
        for name, method in (("with", begin), ("without", lambda self: None)):
            # Without a reading from before the ADDs, nothing is recorded.
            recording.Recording.begin = method
            took[name].append(attach("present", int(workers), network, containers))
            attach("absent", int(workers), network, containers)
    # The first turn fills caches.
    return {name: median(times[1:]) for name, times in took.items()}


def attach(state: str, workers: int, network: str, containers: tuple[str, ...]) -> float:
    """Attach or detach all containers, and return the seconds that it took."""
    settings = AttachSettings("/etc/cni/net.d", BIN_DIRS, "/var/lib/podwire/cni", workers=workers)
    entry = {"network": network, "ifname": "eth0", "args": None, "capability_args": None, "state": state}
    request = parse_attachments([{**entry, "container_id": name, "netns": name} for name in containers])
    verbs = Verbs(BIN_DIRS, settings.cache_dir, 60)
    begun = time.perf_counter()
    plan = run_locked(lambda: AttachPlanner(settings, verbs).make(request), "bench", 60, False, workers)
    seconds = time.perf_counter() - begun
    assert len(plan.steps) == len(containers), plan.progress()
    assert {step.state for step in plan.steps} == {"done"}, plan.progress()
    return seconds


if __name__ == "__main__":
    found = {"look": look, "record": record}[sys.argv[1]](*sys.argv[2:])
    with open(os.path.join(os.environ["BENCH_DIR"], "footprints"), "a", encoding="utf-8") as stream:
        stream.write(json.dumps({"name": sys.argv[1], **found}) + "\n")
