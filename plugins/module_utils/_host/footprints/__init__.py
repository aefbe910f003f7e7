# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What an ADD changed on a host and in a container: recorded, compared with the present, and put back in place.

Public face: attribution, footprint, object_kinds, recorder, rehearsed, repair, state.
"""
