# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Footprints, cache entries and records with any of their values exchanged: no module ends in a traceback.

PODWIRE_MUTATIONS of each file, 0 for all of them.
"""

from __future__ import annotations

import base64
import json
import random

import pytest

from ansible_collections.podwire.cni.tests.host.records import records, shared_file
from ansible_collections.podwire.cni.tests.tools import sample

NUMBER = sample.number("MUTATIONS", 2, 1)
VALUES = [None, True, -1, 2**70, "", "x", "..", "\0", "\udcff", [], [None], [[]], {}, {"x": None}, [1] * 3]


def places_in(part, path=()):
    if path:
        yield path
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        yield from places_in(value, (*path, key))


def exchanged(data, path, value):
    """Return a copy of *data* with another value at *path*; without it if *value* is ``...``."""
    copy = json.loads(json.dumps(data))
    part = copy
    for key in path[:-1]:
        part = part[key]
    if value is ...:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return copy


def as_text(data):
    return json.dumps(data).encode()


def files_of(site):
    """Yield (path, its content or a part of it as data, what returns the content with that part)."""
    for path in (*records(site.cache), *sorted((site.cache / "results").iterdir()), shared_file(site.cache)):
        data = json.loads(path.read_bytes())
        yield path, data, as_text
        if "config" in data:

            def with_config(content, data=data):
                return as_text({**data, "config": base64.b64encode(as_text(content)).decode()})

            yield path, json.loads(base64.b64decode(data["config"])), with_config


def mutations(data):
    found = [(place, value) for place in places_in(data) for value in (..., *VALUES)]
    if NUMBER:
        chance = random.Random(len(found))
        found = chance.sample(found, min(NUMBER, len(found)))
    for place, value in found:
        yield place, value, exchanged(data, place, value)


@pytest.mark.parametrize("chain", ["full", "portmap-nft", "sbr"])
def test_no_value_ends_a_module_in_a_traceback(attached, chain):
    site = attached(chain)
    wanted = [container.wanted for container in site.containers]
    failures = []
    paths = [path for path in site.cache.rglob("*") if path.is_file()]
    good = {path: path.read_bytes() for path in [*paths, shared_file(site.cache)]}
    for path, data, write in list(files_of(site)):
        for place, value, content in mutations(data):
            path.write_bytes(write(content))
            for module, arguments in (
                ("cni_attach", {"attachments": wanted, "on_drift": "repair"}),
                ("cni_host", {"attachments": wanted}),
                ("cni_info", {"gather": ["attachments", "kernel", "leases", "garbage"]}),
                ("cni_gc", {}),
            ):
                check = {} if module == "cni_info" else {"check_mode": True}
                result = site.host.attempt(module, **check, **arguments)
                text = json.dumps(result)
                told = not result.get("failed") or result.get("code") or "attachments" in result
                if "Traceback" in text or not told:
                    failures.append((path.name, place, value, module, text[-600:]))
            path.write_bytes(good[path])
    assert failures == []
    assert not site.run(on_drift="fail")["changed"]
