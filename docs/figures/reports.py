"""Draw the pictures of the report, from the first example of README.md and of docs/index.md, with headless Chromium.

python docs/figures/reports.py        # writes docs/report.png and docs/particles.png
"""

import re
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
#: page, picture, width and height of the window
PICTURES = (
    ("README.md", "docs/report.png", 1100, 1500),
    ("docs/index.md", "docs/particles.png", 1200, 1416),
)


def draw(page: str, picture: str, width: int, height: int) -> None:
    """Run the page's first block of Python, and photograph the top of its report."""
    code = re.search(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    assert code, page
    names: dict = {}
    exec(code[1].replace('found.to_html("report.html")\n', ""), names)
    with tempfile.TemporaryDirectory() as folder:
        html, shot = Path(folder) / "report.html", Path(folder) / "report.png"
        names["found"].to_html(html)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        flags += [f"--window-size={width},{height}", f"--screenshot={shot}"]
        subprocess.run(["chromium", *flags, html.as_uri()], check=True, capture_output=True)
        with Image.open(shot) as image:
            image.convert("RGB").quantize(256).save(ROOT / picture, optimize=True)


if __name__ == "__main__":
    for row in PICTURES:
        draw(*row)
