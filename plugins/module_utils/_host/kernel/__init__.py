# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a network namespace as data, and putting single objects of it back.

Public face: links, objects, sysctls, writer.
"""
