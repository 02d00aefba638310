"""`gortho app` in a real browser, from upload to download: by mouse, by keyboard, on a phone, light and dark."""

import os
import re
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from app_samples import bad_files, law, long_search
from browser import CHROMIUM, CONTRAST, DRIVER, chromium

import gortho

pytest.importorskip("starlette")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"),
]
WAIT = 300  # seconds, at most, on a machine that is busy
NO_SCROLL = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
#: Text of the page that can be seen, for the contrast.
TEXTS = "h1, h2, h3, p:not(.error), legend, .facts, .note, small, dt, dd, summary, .badge, .card b, footer"
ROLES = """
const rows = [...document.querySelectorAll('.column')];
return Object.fromEntries(rows.map(r => [r.querySelector('legend').textContent, r.querySelector(':checked').value]));
"""
FOCUS = """
const e = document.activeElement;
const shown = e.nextElementSibling ?? e.parentElement;
return [e, e.parentElement, shown].some(one => getComputedStyle(one).outlineStyle !== 'none');
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    environment = os.environ | {"TMPDIR": str(tmp_path_factory.mktemp("session"))}
    command = [sys.executable, "-m", "gortho", "app", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield re.search(r"http://\S+", process.stdout.readline())[0]
        process.send_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(tmp_path_factory, downloads):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        behaviour = {"behavior": "allow", "downloadPath": str(downloads)}
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
        yield driver


@pytest.fixture
def page(browser, address):
    """The page as it is first seen, on a wide screen; nothing in it may fail."""
    screen(browser, 1200)
    browser.get(address)
    browser.execute_script("sessionStorage.clear()")
    browser.get(address)
    assert "token" not in browser.current_url
    yield browser
    unexpected = [
        entry for entry in browser.get_log("browser") if not re.search("40[49]|422", entry["message"])
    ]
    assert unexpected == []


def screen(browser, width, scheme="light"):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def element(page, identity):
    return page.find_element("id", identity)


def wait(page, until):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(page, WAIT, 0.1).until(until)


def shown(page, *identities):
    """Wait for the first of these that can be seen."""
    return wait(page, lambda page: next((i for i in identities if element(page, i).is_displayed()), None))


def give(page, path):
    element(page, "file").send_keys(str(path))
    return shown(page, "ask", "file-error")


def role(page, column, value):
    row = page.find_element("xpath", f"//fieldset[legend='{column}']")
    return row.find_element("css selector", f"input[value={value}]")


def roles(page):
    """What each column is, at one moment."""
    return page.execute_script(ROLES)


def downloaded(page, downloads, name):
    wait(page, lambda _: (downloads / name).is_file())
    return downloads / name


def looks_right(page):
    """No horizontal scrolling and enough contrast, wide and on a phone, light and dark."""
    for width, scheme in ((375, "light"), (375, "dark"), (1200, "dark"), (1200, "light")):
        screen(page, width, scheme)
        assert page.execute_script("return innerWidth") == width and page.execute_script(NO_SCROLL)
        paper = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(253, 253, 252)") == (scheme == "light")
        contrast = CONTRAST.replace("h1, .badge, p, dt, figcaption, figure svg", TEXTS)
        assert min(page.execute_script(contrast)) > 4.5


def test_from_upload_to_download(page, downloads, tmp_path):
    frame = law()
    frame.to_csv(tmp_path / "my law.csv", index=False)
    assert give(page, tmp_path / "my law.csv") == "ask"
    facts = element(page, "file-facts").text
    assert facts.startswith("my law.csv is a text file of ") and "200 rows and 5 columns" in facts
    columns = page.find_element("id", "columns").text
    assert "whole numbers · 0 to 199" in columns and "counts the rows" in columns and "text · " in columns
    assert roles(page) == {"t": "x", "s": "x", "event": "off", "colour": "off", "y": "y"}

    # Text is a label, and no coordinate.
    assert not role(page, "colour", "x").is_enabled()
    for column, value in (("y", "off"), ("colour", "y")):
        page.execute_script("arguments[0].scrollIntoView({block: 'center'})", role(page, column, value))
        role(page, column, value).click()
    assert element(page, "choice").text == "x = (t, s); y = colour."
    assert page.find_element("css selector", "[name=output][value=class]").is_selected()
    role(page, "colour", "off").click()
    role(page, "y", "y").click()
    assert page.find_element("css selector", "[name=output][value=scalar]").is_selected()

    element(page, "more").find_element("tag name", "summary").click()
    page.find_element("css selector", "[name=effort] [value=quick]").click()
    looks_right(page)
    element(page, "start").click()
    assert shown(page, "answer", "ask-error") == "answer"
    assert (
        element(page, "badge").text.split("\n") == ["✓", "Symmetry found", "(FOUND)"]
        and page.title == "FOUND · gortho"
    )
    assert element(page, "law").text.startswith("q(x) = ") and "O(1,1)" in element(page, "tiles").text
    assert element(page, "formula").text.startswith("y = ") and "⟨x,x⟩ is q(x)" in element(page, "inner").text
    assert page.switch_to.active_element == element(page, "answer-title")
    assert element(page, "answer-of").text == "my law.csv: x = (t, s), y = y"
    looks_right(page)

    page.switch_to.frame("report")
    assert page.find_element("tag name", "h1").text.startswith("The data respects a quadratic form")
    page.switch_to.default_content()
    whole = (
        "const r = document.getElementById('report'); return r.contentDocument.documentElement.scrollHeight"
    )
    wait(page, lambda page: page.execute_script(f"{whole} <= r.clientHeight + 1"))

    element(page, "get-run").click()
    zipfile.ZipFile(downloaded(page, downloads, "gortho-run.zip")).extractall(tmp_path / "run")
    found = gortho.Discovery.load(tmp_path / "run")
    assert found.group_name == "O(1,1)"
    element(page, "get-report").click()
    report = downloaded(page, downloads, "gortho-report.html").read_text(encoding="utf-8")
    assert found.headline() in report
    element(page, "predict").click()
    assert shown(page, "get-predictions", "predict-error") == "get-predictions"
    assert element(page, "predict-state").text == "200 predictions for my law.csv."
    element(page, "get-predictions").click()
    table = pd.read_csv(downloaded(page, downloads, "predictions.csv"))
    np.testing.assert_allclose(table["y"], found.predict(frame), rtol=1e-12)

    page.refresh()  # nothing is lost
    assert shown(page, "answer") and "O(1,1)" in element(page, "tiles").text
    assert page.find_element("name", "effort").get_attribute("value") == "quick"
    assert not element(page, "stale").is_displayed()
    for value, changed in (("off", True), ("y", False)):  # an answer to other choices says so
        page.execute_script("arguments[0].click()", role(page, "y", value))
        assert element(page, "stale").is_displayed() == changed
    page.execute_script("document.body.dataset.maxUpload = 1000")
    element(page, "other").send_keys(str(tmp_path / "my law.csv"))
    assert shown(page, "predict-error", "get-predictions") == "predict-error"
    assert "this page takes up to 1 kB" in element(page, "predict-error").text


def test_bad_files(page, tmp_path):
    words = bad_files(tmp_path)
    for name in ("ragged.csv", "model.pkl", "objects.npy", "cut.parquet"):
        assert give(page, tmp_path / name) == "file-error"
        wait(page, lambda page, name=name: words[name] in element(page, "file-error").text)
        assert not element(page, "ask").is_displayed()
    assert not (tmp_path / "loaded").exists()
    page.execute_script("document.body.dataset.maxUpload = 1000")
    law().to_csv(tmp_path / "large.csv", index=False)
    assert give(page, tmp_path / "large.csv") == "file-error"
    wait(page, lambda page: "this page takes up to 1 kB" in element(page, "file-error").text)
    page.execute_script("document.body.dataset.maxUpload = 1e9")
    assert give(page, tmp_path / "large.csv") == "ask" and not element(page, "file-error").is_displayed()

    role(page, "y", "off").click()
    element(page, "start").click()
    assert shown(page, "ask-error", "progress") == "ask-error"
    assert element(page, "ask-error").text == "no column is chosen for y: choose the target"


def test_by_keyboard_alone(page, tmp_path):
    from selenium.webdriver import ActionChains, Keys

    def press(*keys):
        ActionChains(page).send_keys(*keys).perform()

    def tab_to(selector):
        for _ in range(80):
            press(Keys.TAB)
            assert page.execute_script(FOCUS), page.switch_to.active_element.get_attribute("outerHTML")
            if page.execute_script("return document.activeElement.matches(arguments[0])", selector):
                return
        pytest.fail(f"{selector} is not reached by the tabulator")

    tab_to("#file")
    tab_to("#example")
    press(Keys.ENTER)
    assert shown(page, "ask", "file-error") == "ask" and "particles.csv" in element(page, "file-facts").text
    wait(page, lambda page: page.switch_to.active_element == element(page, "columns-title"))
    tab_to("[name=role-0]")
    press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert roles(page)["event"] == "y"
    press(Keys.ARROW_RIGHT)
    assert roles(page)["event"] == "scalar"

    long_search(tmp_path / "long.npz")
    assert give(page, tmp_path / "long.npz") == "ask"
    wait(page, lambda page: roles(page) == {"X": "x", "y": "y"})
    tab_to("#start")
    press(Keys.ENTER)
    assert shown(page, "progress", "ask-error") == "progress"
    wait(page, lambda page: element(page, "leading").text.startswith("q(x) ="))
    assert page.execute_script(NO_SCROLL) and element(page, "stage").text == "Searching for forms"
    tab_to("#stop")
    press(Keys.SPACE)
    assert shown(page, "answer", "ask-error") == "answer"
    assert "UNDERDETERMINED" in element(page, "badge").text
    assert "interrupted" in element(page, "reason").text
    assert element(page, "law").text.startswith("Best candidate, not accepted: q(x) = ")


VECTORS = [
    (["x_0", "y_0", "x_1", "y_1"], 2, ["x_0", "y_0", "x_1", "y_1"]),
    (["x1", "x2", "y1", "y2"], 2, ["x1", "y1", "x2", "y2"]),
    (["x1", "y2", "y1", "x2"], 2, ["x1", "y1", "x2", "y2"]),
    (["a", "b", "c", "d"], 2, ["a", "b", "c", "d"]),
    (["x0", "x1", "x2", "x3"], 2, ["x0", "x1", "x2", "x3"]),
    (["x_1", "x_2"], 1, ["x_1", "x_2"]),
]


def test_columns_go_vector_by_vector(page):
    script = "const [v, done] = arguments; import('/static/columns.js').then(c => done(v.map(a => c.byVector(...a))))"
    given = [[names, points] for names, points, _ in VECTORS]
    assert page.execute_async_script(script, given) == [expected for *_, expected in VECTORS]


def test_dropped_files_and_decimal_commas(page):
    page.execute_script(
        """
        const data = new DataTransfer();
        data.items.add(new File(["u;v;y\\n1,5;2,5;3\\n2,5;1,5;4\\n"], "dropped.csv"));
        document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        """
    )
    assert shown(page, "ask", "file-error") == "ask"
    assert "dropped.csv" in element(page, "file-facts").text and "2 rows" in element(page, "file-facts").text
    assert roles(page) == {"u": "off", "v": "off", "y": "y"}
    element(page, "commas").find_element("tag name", "button").click()
    wait(page, lambda page: roles(page) == {"u": "x", "v": "x", "y": "y"})
    assert "1.5 to 2.5" in element(page, "columns").text and not element(page, "commas").is_displayed()

    # What was said of this file is not said of the next.
    page.execute_script("document.querySelector('[name=names]').value = 'p,q'")
    page.execute_script("document.querySelector('[name=dropna]').checked = true")
    element(page, "example").click()
    wait(page, lambda page: "particles.csv" in element(page, "file-facts").text)
    assert page.find_element("name", "names").get_attribute("value") == ""
    assert not page.find_element("name", "dropna").is_selected()


def quick_search(page, path):
    give(page, path)
    wait(page, lambda page: element(page, "file-state").text.startswith(f"{path.name}, "))
    page.execute_script("document.querySelector('[name=effort]').value = 'quick'")


def test_an_answer_belongs_to_its_file(page, tmp_path):
    from selenium.webdriver import ActionChains

    law().to_csv(tmp_path / "law.csv", index=False)
    quick_search(page, tmp_path / "law.csv")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", element(page, "start"))
    ActionChains(page).double_click(element(page, "start")).perform()
    assert shown(page, "progress", "ask-error") == "progress"
    wait(page, lambda page: element(page, "progress-title").text == "Searching law.csv")
    element(page, "example").click()  # another file, while the first is searched
    wait(page, lambda page: element(page, "file-state").text == "particles.csv, 1,000 rows")
    assert not element(page, "ask-error").is_displayed()
    assert shown(page, "answer", "ask-error") == "answer"
    assert element(page, "answer-of").text.startswith("law.csv: x = (t, s)")
    assert element(page, "stale").text == "This is the answer for law.csv, and particles.csv is chosen above."
    assert element(page, "predict").text == "Predict for law.csv"
    page.refresh()
    wait(page, lambda page: element(page, "file-state").text == "particles.csv, 1,000 rows")
    assert not element(page, "answer").is_displayed()


def test_a_search_is_seen_in_every_tab_and_outlives_its_file(page, address, tmp_path):
    long_search(tmp_path / "long.npz")
    quick_search(page, tmp_path / "long.npz")
    element(page, "start").click()
    assert shown(page, "progress", "ask-error") == "progress"
    first = page.current_window_handle
    page.switch_to.new_window("tab")
    page.get(address)
    assert shown(page, "progress") and "long.npz" in element(page, "progress-title").text
    wait(page, lambda page: element(page, "leading").text.startswith("q(x) ="))
    element(page, "stop").click()
    assert shown(page, "answer") and element(page, "answer-of").text.startswith("long.npz: ")
    for rows in range(1, 6):  # more files than are kept
        (tmp_path / f"{rows}.csv").write_text("a,b,y\n" + "1,2,3\n" * rows)
        give(page, tmp_path / f"{rows}.csv")
        wait(page, lambda page, rows=rows: element(page, "file-state").text.startswith(f"{rows}.csv, "))
    page.close()
    page.switch_to.window(first)
    assert shown(page, "answer")
    page.refresh()
    assert shown(page, "answer") and element(page, "answer-of").text.startswith("long.npz: ")
    assert element(page, "file-error").text == "long.npz is no longer here: drop it again."
    assert not element(page, "ask").is_displayed()


def test_of_several_files_the_last_is_taken(page, tmp_path):
    page.execute_script(
        """
        const fetched = window.fetch;
        window.fetch = async (path, options) => {
          const answer = await fetched(path, options);
          if (path.includes("slow")) { await new Promise((go) => setTimeout(go, 1500)); document.title = "late"; }
          return answer;
        };
        """
    )
    for name in ("slow", "quick"):
        law().to_csv(tmp_path / f"{name}.csv", index=False)
        element(page, "file").send_keys(str(tmp_path / f"{name}.csv"))
    wait(page, lambda page: page.title == "late")
    wait(page, lambda page: element(page, "file-state").text == "quick.csv, 200 rows")
    assert element(page, "file-facts").text.startswith("quick.csv")


def test_arrays_suggest_their_output_and_vectors_are_counted(page, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones((9, 2, 3)), y=np.ones((9, 3)))
    quick_search(page, tmp_path / "a.npz")
    assert page.find_element("css selector", "[name=output][value=vector]").is_selected()
    (tmp_path / "units.csv").write_text("a,b,c,y\nm,m,m,J\n" + "1.5,2.5,3.5,4\n" * 3)
    quick_search(page, tmp_path / "units.csv")
    assert "holds no numbers (m, m, m): where the line has the units" in element(page, "file-facts").text
    (tmp_path / "b.csv").write_text("a,b,c,y\n1.5,2.5,3.5,4\n2.5,1.5,4.5,5\n")
    quick_search(page, tmp_path / "b.csv")
    for points, message in (
        ("0", "Vectors in each row: "),
        ("2", "3 columns of x cannot be shared out among 2"),
    ):
        page.execute_script("document.querySelector('[name=points]').value = arguments[0]", points)
        element(page, "start").click()
        wait(page, lambda page, message=message: element(page, "ask-error").text.startswith(message))
