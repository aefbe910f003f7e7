# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from chromium import browser, opened, write
from fleet import fleet

from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "</noscript><img src=x onerror=alert(2)>",
    "{{ 7*7 }}",
    "javascript:alert(3)",
    '"><svg onload=alert(4)>',
    "&lt;img src=x onerror=alert(5)&gt;",
    "\u05e9\u05dc\u05d5\u05dd \u202egnp.exe",
)
NAMES = "[...document.querySelectorAll('#matrix tbody tr:not([hidden]) th')].map(cell => cell.textContent)"


def hostile(text):
    """Return the record of a host that would like to be more than text."""
    row = {"network": text, "path": text, "container_id": text, "ifname": text, "ips": [text], "runtime": text}
    row.update(
        message=text, code="known_vulnerability", reason=text, evidence=[text], id=text, file=text, ranges=[text]
    )
    info = {key: [row] for key in ("conf", "attachments", "pools", "garbage", "runtime", "problems")}
    head = {"before_header": text, "after_header": f"write: {text}"}
    step = {"kind": "write", "target": text, "class": "safe", "reason": text}
    networks = {"actions": [step], "diff": [{**head, "before": text, "after": "x"}], "warnings": [text]}
    return build(text, {"networks": networks}, info, [text])


@pytest.fixture(scope="module")
def started():
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return write(tmp_path_factory.mktemp("report") / "report.html", [*fleet(50), *map(hostile, HOSTILE)])


def click_header(page, name):
    page.locator("#matrix thead button", has_text=name).click()


def test_columns_are_sorted(started, address):
    with opened(started, address) as page:
        before = page.evaluate(NAMES)
        click_header(page, "Host")
        ascending = page.evaluate(NAMES)
        click_header(page, "Host")
        assert page.evaluate(NAMES) == ascending[::-1]
        assert page.locator("[aria-sort]").count() == 1
        assert page.locator("#matrix th[aria-sort=descending]").text_content() == "Host"
        click_header(page, "Address pools")
        fills = page.evaluate(
            "[...document.querySelectorAll('#matrix tbody td:nth-child(6)')].map(c => +c.dataset.sort)"
        )
        assert fills == sorted(fills) and len(set(fills)) > 3
        click_header(page, "Status")
        assert sorted(page.evaluate(NAMES)) == sorted(before) == sorted(ascending)
        states = page.evaluate("[...document.querySelectorAll('#matrix tbody tr')].map(row => row.dataset.status)")
        assert states == sorted(states, key=["error", "drift", "clean"].index)
        assert page.complaints == []


def test_columns_are_sorted_with_the_keyboard(started, address):
    with opened(started, address) as page:
        page.locator("#matrix thead button").first.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        assert page.locator("#matrix th[aria-sort]").text_content() == "Status"


def test_hosts_are_filtered(started, address):
    with opened(started, address) as page:
        every = page.evaluate(NAMES)
        page.locator("#filter [data-status=drift]").click()
        drifted = page.evaluate(NAMES)
        assert 0 < len(drifted) < len(every)
        assert page.locator("#matrix tbody tr:visible .chip.drift").count() == len(drifted)
        assert page.locator("details.host:not([hidden])").count() == len(drifted)
        assert page.locator("#showing").text_content() == "%d of %d" % (len(drifted), len(every))
        page.locator("#find").fill("no such host")
        assert page.evaluate(NAMES) == [] and page.locator("#nothing").is_visible()
        page.locator("#filter button").first.click()
        # What only the section of a host has, not its row.
        page.locator("#find").fill("CART-1 podnet")
        found = page.evaluate(NAMES)
        assert 0 < len(found) < len(every)
        page.locator("#find").fill("")
        assert page.evaluate(NAMES) == every
        assert page.complaints == []


def test_a_cell_leads_to_its_place(started, address):
    with opened(started, address) as page:
        row = page.locator("#matrix tbody tr[data-status=drift]").first
        name = row.locator("th").text_content()
        identifier = row.get_attribute("data-host")
        assert page.locator("#%s article" % identifier).count() == 0
        row.locator("td:nth-child(4) a").click()
        section = page.locator("#" + identifier)
        section.locator("article.step").first.wait_for()
        assert section.locator("h3").text_content() == name
        assert section.locator("pre.diff ins").first.is_visible()
        assert "podwire.cni." in section.locator(".command code").first.text_content()
        row.locator("td:nth-child(3) a").click()
        assert section.locator("svg[role=img] .box").first.is_visible()
        section.locator("summary").click()
        assert not section.locator("article.step").first.is_visible()
        assert page.complaints == []


def test_a_link_into_a_report_opens_the_host(started, address):
    with opened(started, address + "#h3-drift") as page:
        page.locator("#h3-drift").wait_for()
        assert [error for error in page.complaints if not error.startswith("request")] == []


def test_hostile_hosts_stay_text(started, address):
    with opened(started, address) as page:
        page.evaluate("document.querySelectorAll('details.host').forEach(host => { host.open = true })")
        page.wait_for_function("!document.querySelector('details.host > noscript')")
        assert page.locator("img, iframe, object, svg[onload], a[href^=javascript]").count() == 0
        assert page.locator("script").count() == 1
        shown = page.locator("body").inner_text()
        for text in HOSTILE:
            assert text.replace("\u202e", "\\u202e") in shown
        assert page.complaints == []


def test_light_and_dark(started, address):
    colours = {}
    for scheme in ("light", "dark"):
        with opened(started, address, color_scheme=scheme) as page:
            colour = "getComputedStyle(document.body).backgroundColor"
            colours[scheme] = page.evaluate(colour)
            page.locator("#theme").click()
            colours[scheme + " switched"] = page.evaluate(colour)
    assert colours["light"] == colours["dark switched"] != colours["dark"] == colours["light switched"]


def test_words_can_be_read_in_both(started, address):
    """Contrast of at least 4.5 to 1 (WCAG 2, AA) of whatever has words in it."""
    with open(__file__.replace("test_report.py", "contrast.js"), encoding="utf-8") as stream:
        measure = stream.read()
    for scheme in ("light", "dark"):
        with opened(started, address, color_scheme=scheme) as page:
            page.evaluate(
                "[...document.querySelectorAll('details.host')].slice(0, 12).forEach(host => { host.open = true })"
            )
            page.wait_for_function(
                "!document.querySelector('details.host > noscript') || document.querySelector('article')"
            )
            assert page.evaluate(measure) == []


def test_without_scripts_all_is_there(started, address):
    with opened(started, address, java_script_enabled=False) as page:
        assert page.locator("#matrix tbody tr").count() == 58
        assert not page.locator("#filter").is_visible()
        section = page.locator("details.host[data-status=drift]").first
        section.locator("summary").click()
        assert section.locator("article.step").first.is_visible()


def test_printed_are_the_hosts_that_need_something(started, address):
    with opened(started, address) as page:
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert (
            page.locator("details.host:visible").count()
            == page.locator("details.host:not([data-status=clean])").count()
        )
        assert not page.locator("#filter").is_visible()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details.host[open]").count() == 0


def test_a_thousand_hosts_open(started, tmp_path):
    with opened(started, write(tmp_path / "report.html", fleet(1000))) as page:
        page.locator("#find").fill("waw drift")
        assert 0 < len(page.evaluate(NAMES)) < 1000
        assert page.complaints == []
