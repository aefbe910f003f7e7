# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import threading

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.plan import each_of


def test_everything_is_done_once_and_side_by_side():
    barrier = threading.Barrier(3, timeout=10)
    done = []

    def work(number):
        # Would never be passed by fewer than three workers.
        barrier.wait()
        done.append(number)

    each_of(work, range(9), 3)
    assert sorted(done) == list(range(9))


def test_one_worker_keeps_the_order():
    done = []
    each_of(done.append, [3, 1, 2], 1)
    assert done == [3, 1, 2]


def test_an_exception_reaches_the_caller():
    def work(number):
        raise ValueError(number)

    with pytest.raises(ValueError, match="1"):
        each_of(work, [1], 4)
    with pytest.raises(ValueError):
        each_of(work, [1, 2, 3], 2)
