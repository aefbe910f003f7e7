# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an ADD changed on a host and in a container: recorded, compared with the present, and put back in place.

Public face: attribution, note, object_kinds, recorder, repair, state.
"""
