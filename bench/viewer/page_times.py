#!/usr/bin/env python3
"""How long the offline page takes in headless Chromium: until it is ready, and for a frame.

  build/toolchain/bin/python3 bench/viewer/page_times.py build/release/bin/make_page [CHROMIUM]

Pages of a random model with about 10^6 and 10^7 slices. Ready is when all that is on the screen is
drawn and answers; payloads come after it. Each page is opened five times: the least counts, since others
use the machine, and the most is said. A frame is what the page's own code does, the median of 20; the
browser's compositing comes on top.
"""
import os
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

FRAME = """(height) => { const app = iket.app;
  app.trees.forEach(function open(node) { app.open.add(node.key); node.children.forEach(open); });
  app.laneHeight = height; app.relayout(); app.frame();
  const out = [];
  for (const zoom of [1, 10]) {
    app.fit(); app.zoom(1 / zoom);
    const times = [];
    for (let i = 0; i < 20; ++i) { app.pan(i % 2 ? 0.01 : -0.01); app.frame(); times.push(app.drawnIn); }
    out.push(times.sort((a, b) => a - b)[10]);
  }
  return [app.lanes.filter(l => l.row >= 0 && app.yOf(l) > 0 && app.yOf(l) < app.height).length, ...out]; }"""


def main():
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=(sys.argv[2:] or ["/usr/bin/chromium"])[0], args=["--no-sandbox"])
        for slices, lanes in ((1_000_000, 1056), (10_000_000, 2112)):
            path = os.path.join(folder, "page.html")
            said = subprocess.run([sys.argv[1], path, str(slices), str(lanes)], check=True, capture_output=True, text=True).stdout
            print(said.strip())
            all_times = []
            for _ in range(5):
                page = browser.new_page(viewport={"width": 1800, "height": 1100})
                page.goto("file://" + path, timeout=120000)
                page.wait_for_selector("html[data-complete]", state="attached", timeout=120000)
                all_times.append(page.evaluate("[iket.readyMs, iket.took]"))
                page.close()
            all_times.sort(key=lambda it: it[0])
            steps = ", ".join(f"{what} {ms:.0f}" for what, ms in all_times[0][1].items())
            print(f"  ready after {all_times[0][0]:.0f} ms ({steps}); the slowest of five {all_times[-1][0]:.0f} ms")
            for height, screen in ((19, 1100), (1, 1100), (1, 2300)):
                page = browser.new_page(viewport={"width": 1800, "height": screen})
                page.goto("file://" + path, timeout=120000)
                page.wait_for_selector("html[data-complete]", state="attached", timeout=120000)
                visible, whole, near = page.evaluate(FRAME, height)
                print(f"  {visible} lanes: {whole:.1f} ms a frame of everything, {near:.1f} ms at ten times the zoom")
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
