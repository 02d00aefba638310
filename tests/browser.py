"""Chromium, where it is installed, and how well a page can be read in it."""

import shutil
from contextlib import contextmanager

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
#: Contrasts of the texts of a page with its paper.
CONTRAST = """
const channel = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = rgb => rgb.map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const paper = light(channel(getComputedStyle(document.body).backgroundColor));
return [...document.querySelectorAll('h1, .badge, p, dt, figcaption, figure svg')].map(e => {
  const ink = light(channel(getComputedStyle(e).color));
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
});
"""


@contextmanager
def chromium(profile):
    """A browser without a window, with a profile of its own."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()
