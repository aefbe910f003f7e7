# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.interrupt import Interrupted, interruptible


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_first_signal_is_raised_and_later_ones_do_not_disturb_the_tidying(number):
    before = signal.getsignal(number)
    tidied = []
    with pytest.raises(Interrupted, match=signal.Signals(number).name), interruptible():
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            tidied.append(True)
    assert tidied == [True]
    assert signal.getsignal(number) == before
