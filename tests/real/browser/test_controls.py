# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The rest of what can be operated on the page, and that there is nothing else."""

from __future__ import annotations

from pathlib import Path

from chromium import opened, write

from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build


def test_a_cell_leads_to_its_part_of_the_host(started, address):
    with opened(started, address) as page:
        row = page.locator("#matrix tbody tr[data-tags~=leaks]").first
        identifier = row.get_attribute("data-host")
        for cell, part in ((7, "leaks"), (6, "pools"), (3, "drift")):
            row.locator(f"td:nth-child({cell}) a").click()
            place = page.locator(f"#{identifier}-{part}")
            place.wait_for()
            assert place.bounding_box()["y"] < 800
            assert page.locator("#" + identifier).get_attribute("open") == ""
        assert "host=" in page.url
        assert page.complaints == []


def test_long_differences_open(started, tmp_path):
    step = {"kind": "write", "target": "/etc/cni/net.d/1.conflist", "class": "safe", "reason": "differs"}
    after = "\n".join(f"line {number}" for number in range(30))
    diff = [{"step": 0, "before": "", "after": after}]
    record = build("web", {"networks": {"actions": [step], "diff": diff}}, {})
    with opened(started, write(tmp_path / "report.html", [record])) as page:
        fold = page.locator("details.fold")
        assert not fold.locator("ins").first.is_visible()
        fold.locator("summary").click()
        assert fold.locator("ins").first.is_visible()
        assert page.complaints == []


# ---- the rest of the page


def test_the_first_stop_skips_to_the_hosts(started, address):
    with opened(started, address) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.locator(".skip").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "hosts"


def test_the_data_for_programs_is_beside_the_page(started, address):
    with opened(started, address) as page:
        assert page.locator("footer a").get_attribute("href") == "report.json"


# What can be operated, and the tests that do it.
CONTROLS = {
    ".skip": "test_the_first_stop_skips_to_the_hosts",
    ".command button": "test_a_command_is_copied_in_full",
    ".tile > a": "test_a_tile_shows_its_hosts",
    ".on > a": "test_a_cause_shows_its_hosts",
    "details.others > summary": "test_more_causes_and_changes_open",
    "#find": "test_words_are_searched_in_rows_and_sections",
    "#runtime, #group, #clear": "test_filters_narrow_each_other_and_survive_a_reload",
    "#matrix thead button": "test_every_column_is_sorted_in_both_directions",
    "#matrix tbody a": "test_a_cell_leads_to_its_part_of_the_host",
    "details.host > summary": "test_a_row_leads_to_its_host_and_has_one_tab_stop",
    "details.fold > summary": "test_long_differences_open",
    ".foot a": "test_a_link_to_a_host_opens_it_also_if_the_page_is_open",
    "footer a": "test_the_data_for_programs_is_beside_the_page",
}
OPERABLE = (
    "a, button, input, select, textarea, summary, [tabindex]:not([tabindex='-1']), [contenteditable], [role=button]"
)


def test_every_control_has_a_test(started, address):
    with opened(started, address) as page:
        page.evaluate("document.querySelectorAll('details.host').forEach(host => { host.open = true })")
        page.wait_for_function("!document.querySelector('details.host > noscript')")
        others = "(all, known) => all.filter(one => !one.matches(known)).map(one => one.outerHTML)"
        assert page.eval_on_selector_all(OPERABLE, others, ", ".join(CONTROLS)) == []
        # Only long differences are folded.
        assert [one for one in CONTROLS if not page.locator(one).count()] == ["details.fold > summary"]
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for name in CONTROLS.values() if f"def {name}(" not in tests] == []
