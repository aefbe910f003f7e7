# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.struct import field, struct


@struct
class Point:
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list)

    @property
    def sum(self):
        return self.x + self.y


def test_a_value_for_each_name_in_order():
    assert vars(Point(1)) == {"x": 1, "y": 2, "names": []}
    assert (Point(1, 5).sum, Point(x=3, names=["a"]).names) == (5 + 1, ["a"])


def test_each_object_has_its_own_default():
    Point(1).names.append("a")
    assert Point(1).names == []


@pytest.mark.parametrize(("values", "members"), [((), {}), ((1, 2, [], 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1})])
def test_wrong_values_are_refused(values, members):
    with pytest.raises(TypeError):
        Point(*values, **members)
