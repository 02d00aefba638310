"""Draw the picture of `gortho app`, with its example, in headless Chromium.

python docs/figures/app.py        # writes docs/app.png
"""

import base64
import io
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

PICTURE = Path(__file__).parents[1] / "app.png"
WIDTH, GAP = 760, 24
#: What is shown beside one another: from which element down to which other.
PARTS = (("columns-title", "start"), ("badge", "same"))


def photograph(driver: webdriver.Chrome, first: str, last: str) -> Image.Image:
    """The page from one element down to another."""
    ends = (
        "return [arguments[0], arguments[1]].map(id => document.getElementById(id).getBoundingClientRect())"
    )
    top, bottom = driver.execute_script(ends, first, last)
    offset = driver.execute_script("return scrollY")
    height = bottom["bottom"] - top["top"] + 2 * GAP
    clip = {"x": 0, "y": offset + top["top"] - GAP, "width": WIDTH, "height": height, "scale": 1}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")


def main() -> None:
    """Start the app, search in its example, and photograph choice and answer."""
    command = [sys.executable, "-m", "gortho", "app", "--no-browser"]
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None
        driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            metrics = {"width": WIDTH, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            driver.get(address[0])
            driver.find_element("id", "example").click()
            WebDriverWait(driver, 300).until(lambda d: d.find_element("id", "ask").is_displayed())
            parts = [photograph(driver, *PARTS[0])]
            driver.find_element("id", "start").click()
            WebDriverWait(driver, 300).until(lambda d: d.find_element("id", "answer").is_displayed())
            parts.append(photograph(driver, *PARTS[1]))
        finally:
            driver.quit()
            server.send_signal(signal.SIGINT)
    whole = Image.new("RGB", (2 * WIDTH, max(part.height for part in parts)), parts[0].getpixel((0, 0)))
    for k, part in enumerate(parts):
        whole.paste(part, (k * WIDTH, 0))
    whole.quantize(256).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
