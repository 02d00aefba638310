"""The report page, opened in a real browser."""

import pytest
from browser import CHROMIUM, CONTRAST, DRIVER, chromium
from report_samples import SAMPLES

from gortho.report import render

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"),
]
SIZES = """
const boxes = [...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect());
return boxes.map(box => [box.width, box.height]);
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, sample in SAMPLES.items():
        (folder / f"{name}.html").write_text(render(sample()), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in SAMPLES}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", SAMPLES)
def test_page_fits_and_reads(browser, addresses, name, width, scheme):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(addresses[name])
    assert browser.get_log("browser") == []
    root = "document.documentElement"
    assert browser.execute_script("return innerWidth") == width
    assert browser.execute_script(f"return {root}.scrollWidth <= {root}.clientWidth")
    sizes = browser.execute_script(SIZES)
    assert bool(sizes) == (name != "underdetermined")
    assert all(w > 60 and h > 60 for w, h in sizes)
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(253, 253, 252)") == (scheme == "light")
    assert min(browser.execute_script(CONTRAST)) > 4.5


@pytest.mark.parametrize("name", SAMPLES)
def test_numbers_of_tables_are_seen_on_a_phone(browser, addresses, name):
    metrics = {"width": 375, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(addresses[name])
    ends = browser.execute_script(
        "return [...document.querySelectorAll('th')].filter(th => th.textContent.startsWith('Like with like'))"
        ".map(th => Math.max(...[...th.closest('table').querySelectorAll('.n')]"
        ".map(cell => cell.getBoundingClientRect().right)))"
    )
    assert all(end <= 375 for end in ends), ends


def test_page_prints_in_light_colours(browser, addresses):
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [feature]})
    browser.get(addresses["found"])
    assert browser.execute_script("return getComputedStyle(document.body).color") == "rgb(29, 33, 39)"
    assert len(browser.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000
