# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's own CNI plugin, `multinet`, which runs other networks; `libcni.bundle` makes an executable of it."""
