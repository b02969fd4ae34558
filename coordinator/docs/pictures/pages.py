#!/usr/bin/env python3
"""Takes pictures of the pages that --report writes, and combines them into the sheets of measuring.md.

    python3 pages.py FLITCAST [FOLDER]

runs each operation with 8, 32 and 64 PEs and takes pictures of its page in windows that are 1400 and 400 pixels wide,
on a light and on a dark background. For each operation it writes a sheet pages-OPERATION.png beside this file: a row
for each number of PEs, with the upper part of the page, down to the diagram, in these four forms. FOLDER keeps the
whole pictures. It needs chromium on the PATH, and Pillow (`pip install pillow`).
"""

import base64
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

FAST, SLOW = "--link rate=200mbit,latency=1ms", "--link rate=50mbit,latency=2ms"
OPERATIONS = {
    "scatter": f"--tree kary:2:{{n}} --lengths ramp:256KiB {FAST}",
    "gather": f"--tree kary:2:{{n}} --lengths ramp:256KiB {FAST}",
    "broadcast": f"--tree kary:2:{{n}} --size 2MiB {FAST}",
    "gossip": f"--network complete:{{n}} --size 64KiB {SLOW}",
    "exchange": f"--network complete:{{n}} --size 64KiB {SLOW}",
}
PES = [8, 32, 64]
# The widths of the window, and the scales of its pictures on a sheet.
SCALES = {1400: 0.45, 400: 0.4}
HEIGHT = 900
MARGIN = 8
# Colours of a sheet: more of them make its file larger.
COLOURS = 80


class Browser:
    """A chromium without a window, which is controlled over its pipe."""

    def __init__(self, profile):
        to_browser, self.to = os.pipe()
        self.back, from_browser = os.pipe()
        # The browser reads from descriptor 3 and writes to descriptor 4.
        line = f'exec chromium "$@" 3<&{to_browser} 4>&{from_browser}'
        options = "--headless=new --no-sandbox --disable-gpu --no-first-run --hide-scrollbars --remote-debugging-pipe"
        self.process = subprocess.Popen(
            ["bash", "-c", line, "chromium", *options.split(), f"--user-data-dir={profile}"],
            pass_fds=[to_browser, from_browser],
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.read = os.fdopen(self.back, "rb")
        self.rest, self.number, self.session = b"", 0, None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def ask(self, method, **params):
        """Sends a request, and returns its result."""
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                part = self.read.read1(1 << 20)
                if not part:
                    sys.exit("chromium ended")
                self.rest += part
            message, self.rest = self.rest.split(b"\0", 1)
            message = json.loads(message)
            if message.get("id") == self.number:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]

    def value(self, script):
        """Evaluates a script in the page, and waits for what it promises."""
        result = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        return result["result"].get("value")

    def picture(self, page, width, colours):
        """Returns a picture of a page in its full height, and where its diagram and the text below that end."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
        self.ask("Page.navigate", url=f"file://{page}")
        while self.value("document.readyState + document.body?.dataset.state") != "completedrawn":
            time.sleep(0.05)
        # After two frames all is visible that was drawn before.
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        wide, high = self.value("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        if wide > width:
            print(f"{page.name} is {wide} pixels wide in a window of {width}", file=sys.stderr)
        clip = {"x": 0, "y": 0, "width": width, "height": high, "scale": 1}
        shot = self.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        end = self.value("document.getElementById('path-about').getBoundingClientRect().bottom + scrollY")
        return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB"), end


def scaled(picture, end):
    """Returns the upper part of a picture in the size that it has on a sheet."""
    scale = SCALES[picture.width]
    upper = picture.crop((0, 0, picture.width, round(end) + MARGIN))
    return upper.resize((round(upper.width * scale), round(upper.height * scale)), Image.Resampling.LANCZOS)


def sheet(rows):
    """Returns one picture of rows of pictures, in few colours."""
    width = sum(part.width + MARGIN for part in rows[0]) + MARGIN
    heights = [max(part.height for part in row) + MARGIN for row in rows]
    whole = Image.new("RGB", (width, sum(heights) + MARGIN), "#808080")
    top = MARGIN
    for row, height in zip(rows, heights):
        left = MARGIN
        for part in row:
            whole.paste(part, (left, top))
            left += part.width + MARGIN
        top += height
    return whole.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    binary, *rest = sys.argv[1:]
    binary = Path(binary).resolve()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(rest[0] if rest else scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        browser = Browser(f"{scratch}/profile")
        for operation, words in OPERATIONS.items():
            rows = []
            for pes in PES:
                page = f"{operation}-{pes}.html"
                command = [binary, operation, *words.format(n=pes).split(), "--rounds", "5", "--report", page]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
                row = []
                for width in SCALES:
                    for colours in ["light", "dark"]:
                        picture, end = browser.picture(folder / page, width, colours)
                        picture.save(folder / f"{operation}-{pes}-{width}-{colours}.png")
                        row.append(scaled(picture, end))
                rows.append(row)
            sheet(rows).save(Path(__file__).parent / f"pages-{operation}.png", optimize=True)
        browser.ask("Browser.close")
        browser.process.wait()


if __name__ == "__main__":
    main()
