# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Errors that a test expects, and errors that it lets happen."""

from __future__ import annotations

import contextlib

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError


@contextlib.contextmanager
def fails_with(code, match=None):
    """Expect a HostError with this code, in whose message the pattern *match* is found."""
    with pytest.raises(HostError, match=match) as caught:
        yield caught
    assert caught.value.code == code


def raising(error):
    """Return a function that raises *error*, whatever it is called with."""

    def fail(*_arguments, **_keywords):
        raise error

    return fail
