# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What stands between now and a container with a working network.

Public face: confirm, report.
"""
