# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.podwire.cni.plugins.plugin_utils.options import no_options


def test_an_unknown_option_gets_did_you_mean_or_the_list():
    assert no_options(["src", "mode"], ("src", "mode")) == []
    assert no_options(["sorce"], ("src", "source")) == ["there is no option 'sorce'; did you mean 'source'?"]
    assert no_options(["zzz", 1], ("src", "mode")) == [
        "there is no option 'zzz'; the options are mode, src",
        "there is no option '1'; the options are mode, src",
    ]
