"""The timeline page looks as in docs/images: pictures of a kept capture, in Chromium.

Fonts differ among machines, so what is compared are means of blocks of the raster and of the strip on top, but where
text stands or may. After a change that is meant to be seen,

  IKET_PICTURES=write ctest -R viewer/picture

writes the pictures anew: look at them, since they are what docs/timeline.md shows.
"""
import base64
import os
import subprocess
import tempfile
import unittest

from playwright.sync_api import sync_playwright

ROOT = os.environ["IKET_SOURCE_DIR"]
CAPTURE = f"{ROOT}/tests/data/h200/gemm_wgmma_marked.iketcap"
BLOCK = 8
FAR = 6          # a block whose mean is further off, in one of 255 steps of a colour, is another
FEW = 0.002      # so many of them may be
# Heights that follow from fonts, and a title that names a folder of another machine, are set.
FIXED = """() => {
  for (const [id, height] of [['summary', 46], ['overview', 58]]) document.getElementById(id).style.cssText += `height: ${height}px; overflow: hidden`;
  for (const bar of ['header', 'footer']) document.querySelector(bar).style.height = bar === 'header' ? '37px' : '20px';
  document.getElementById('title').textContent = 'gemm_wgmma_marked';
}"""
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))"
# Which blocks are compared: those of the strip and of the lanes right of their names, on which nothing is written near by.
BLOCKS = """(size) => {
  const overlay = document.getElementById('overlay'), strip = document.getElementById('overview').getBoundingClientRect();
  const box = overlay.getBoundingClientRect();
  const alpha = overlay.getContext('2d').getImageData(0, 0, overlay.width, overlay.height).data;
  const written = (x0, y0, x1, y1) => {
    for (let y = Math.max(0, y0); y < Math.min(overlay.height, y1); ++y) {
      for (let x = Math.max(0, x0); x < Math.min(overlay.width, x1); ++x) if (alpha[4 * (y * overlay.width + x) + 3] > 0) return true;
    }
    return false;
  };
  const found = [];
  for (let y = Math.ceil(strip.top); y + size <= strip.bottom; y += size) for (let x = 0; x + size <= strip.right; x += size) found.push([x, y]);
  for (let y = 22; y + size <= overlay.height; y += size) {
    for (let x = iket.app.gutter; x + size <= overlay.width; x += size) {
      if (!written(x - 24, y, x + size + 24, y + size)) found.push([Math.round(box.left) + x, Math.round(box.top) + y]);
    }
  }
  return found;
}"""
# The largest difference of each of these blocks' means, in two pictures of one size.
COMPARE = """async ([one, other, blocks, size]) => {
  const pixels = [];
  for (const picture of [one, other]) {
    const image = new Image();
    image.src = 'data:image/png;base64,' + picture;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext('2d').drawImage(image, 0, 0);
    pixels.push(canvas.getContext('2d').getImageData(0, 0, image.width, image.height));
  }
  if (pixels[0].width !== pixels[1].width || pixels[0].height !== pixels[1].height) return null;
  return blocks.map(([x0, y0]) => {
    const sum = [0, 0, 0];
    for (let y = y0; y < y0 + size; ++y) for (let x = x0; x < x0 + size; ++x) for (let c = 0; c < 3; ++c) {
      const at = 4 * (y * pixels[0].width + x) + c;
      sum[c] += pixels[0].data[at] - pixels[1].data[at];
    }
    return Math.max(...sum.map(Math.abs)) / size / size;
  });
}"""


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=os.environ["IKET_CHROMIUM"],
                                                     args=["--no-sandbox", "--force-color-profile=srgb"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.folder.cleanup()

    def check(self, name, options=(), scheme="light", actions="() => {}"):
        file = os.path.join(self.folder.name, name + ".html")
        subprocess.run([os.environ["IKET"], "export", CAPTURE, "-o", file, *options], check=True, capture_output=True)
        page = self.browser.new_page(viewport={"width": 1400, "height": 800}, color_scheme=scheme)
        self.addCleanup(page.close)
        page.goto("file://" + file)
        page.wait_for_selector("html[data-complete]", state="attached")
        page.evaluate(FIXED)
        page.evaluate(SETTLED)
        page.evaluate(actions)
        page.evaluate(SETTLED)
        shot = page.screenshot()
        picture = f"{ROOT}/docs/images/{name}.png"
        if os.environ.get("IKET_PICTURES") == "write":
            with open(picture, "wb") as out:
                out.write(shot)
        with open(picture, "rb") as kept:
            reference = kept.read()
        blocks = page.evaluate(BLOCKS, BLOCK)
        self.assertGreater(len(blocks), 2000)
        blank = self.browser.new_page()
        self.addCleanup(blank.close)
        pair = [base64.b64encode(it).decode() for it in (shot, reference)]
        away = blank.evaluate(COMPARE, [*pair, blocks, BLOCK])
        self.assertIsNotNone(away, "another size")
        wrong = [block for block, by in zip(blocks, away) if by > FAR]
        self.assertLessEqual(len(wrong), len(blocks) * FEW, f"blocks of {BLOCK} pixels that differ, of {len(blocks)}: {wrong[:20]}")

    def test_light(self):
        self.check("timeline", actions="""() => {
          const t = iket.app.trace;
          for (let s = 5; ; ++s) if (t.name(s) === 'full-wait' && t.payload(s) === 2n) { iket.app.select(s); break; }
        }""")

    def test_roles_in_the_dark(self):
        self.check("timeline-roles", scheme="dark", actions="() => { iket.app.setLaneHeight(4); document.getElementById('roles').click(); }")

    def test_summary(self):
        self.check("timeline-summary", options=["--summarize-rest", "--cta", "3,0,0", "--window", "2us..9us"], actions="""() => {
          const app = iket.app;
          for (const tree of app.trees) (function open(node) {
            if (node.warps.length === 0) return;
            app.open.add(node.key);
            node.children.forEach(open);
          })(tree);
          app.relayout();
          app.scrollBy(app.lanes.find(lane => lane.label === 'CTA (3, 0, 0)').y - 90);
          const t = app.trace, lane = t.firstLane;
          app.frame();
          const cell = app.lanes.find(l => l.row >= 0 && l.y > app.scroll + 330 && t.isLane(l.warp));
          app.select(t.rowFirst[cell.row] + 1, false);
        }""")


if __name__ == "__main__":
    unittest.main()
