"""The offline timeline page in Debian's Chromium and Firefox ESR: one test for each interaction."""
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest

from playwright.sync_api import sync_playwright

# What the page promises; test_the_list_is_tested holds this file to it.
INTERACTIONS = """collapse reorder role_view search_by_name search_by_payload wasd_and_arrows wheel drag
box_statistics measure next_and_previous details arrows_of_the_selection headings_by_keyboard histogram statistics_panel legend
permalink light_and_dark small_window touch keyboard_alone overview""".split()
ROOT = os.environ["IKET_SOURCE_DIR"]


class Firefox:
    """Firefox without a window, over Marionette: messages are LENGTH:JSON."""

    def __init__(self, program, folder):
        profile = os.path.join(folder, "profile")
        os.makedirs(profile, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        with open(os.path.join(profile, "user.js"), "w", encoding="utf-8") as prefs:
            prefs.write(f'user_pref("marionette.port", {self.port});\n')
        self.process = subprocess.Popen([program, "--headless", "--no-remote", "--marionette", "--profile", profile],
                                        env={**os.environ, "HOME": folder}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        for _ in range(600):
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
                break
            except OSError:
                time.sleep(0.1)
        self.stream = self.socket.makefile("rb")
        self.receive()
        self.ask("WebDriver:NewSession", {})
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=30)

    def receive(self):
        size = b""
        while (digit := self.stream.read(1)) != b":":
            size += digit
        return json.loads(self.stream.read(int(size)))

    def ask(self, command, words):
        text = json.dumps([0, 1, command, words]).encode()
        self.socket.sendall(str(len(text)).encode() + b":" + text)
        _, _, error, value = self.receive()
        if error:
            raise RuntimeError(error["message"])
        return value

    def script(self, text):
        return self.ask("WebDriver:ExecuteScript", {"script": text, "args": []})["value"]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.files = {}
        for name in ("gemm_wgmma_marked", "saxpy_marked"):
            path = cls.files[name] = os.path.join(cls.folder.name, name + ".html")
            subprocess.run([os.environ["IKET"], "export", f"{ROOT}/tests/data/h200/{name}.iketcap", "-o", path],
                           check=True, capture_output=True)
        for name, options in (("few", ["--page-slices", "1000"]), ("cta", ["--summarize-rest", "--cta", "3,0,0", "--window", "2us..9us"])):
            path = cls.files[name] = os.path.join(cls.folder.name, name + ".html")
            said = subprocess.run([os.environ["IKET"], "export", f"{ROOT}/tests/data/h200/gemm_wgmma_marked.iketcap", "-o", path, *options],
                                  check=True, capture_output=True, text=True).stderr
            assert "the rest is a summary" in said, said
        for kind in ("hostile", "4000", "2000000"):
            path = cls.files[kind] = os.path.join(cls.folder.name, kind + ".html")
            subprocess.run([os.environ["IKET_MAKE_PAGE"], path, kind, "64"], check=True, capture_output=True)
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=os.environ["IKET_CHROMIUM"], args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.folder.cleanup()

    def open(self, name="gemm_wgmma_marked", hash="", **options):
        options.setdefault("viewport", {"width": 1200, "height": 700})
        context = self.browser.new_context(**options)
        self.addCleanup(context.close)
        self.page = page = context.new_page()
        self.faults, self.requests = [], []
        # Of reading pixels, which only these tests do.
        page.on("console", lambda message: "Multiple readback" in message.text or self.faults.append(message.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto("file://" + self.files[name] + hash)
        page.wait_for_selector("html[data-ready]", state="attached")
        page.wait_for_selector("html[data-complete], html[data-ready=failed]", state="attached")  # payloads are there, too
        self.assertEqual(page.get_attribute("html", "data-ready"), "yes", page.text_content("#notice"))
        return page

    def tearDown(self):
        if getattr(self, "page", None):
            self.assertEqual(self.faults, [])
            self.assertEqual([url for url in self.requests if not url.startswith(("file:", "data:"))], [])

    def app(self, expression):
        return self.page.evaluate(f"(() => {{ const app = window.iket.app; return {expression}; }})()")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def window(self):
        return self.app("[app.t0, app.t1]")

    def center_of(self, name="mma"):
        """Screen position of a wide slice of that name that is in view."""
        return self.app(f"""(() => {{
          const t = app.trace, box = document.getElementById('lanes').getBoundingClientRect();
          for (const lane of app.lanes) {{
            if (lane.row < 0 || app.yOf(lane) > app.height) continue;
            for (let s = t.rowFirst[lane.row]; s < t.rowFirst[lane.row + 1]; ++s) {{
              const x0 = app.xOf(t.beginNs(s) - lane.offsetNs), x1 = app.xOf(t.endNs(s) - lane.offsetNs);
              if (t.name(s) === '{name}' && x1 - x0 > 12) return [(x0 + x1) / 2 + box.left, app.yOf(lane) + lane.height / 2 + box.top, s];
            }} }} }})()""")

    def click_slice(self, name="mma"):
        x, y, slice_ = self.center_of(name)
        self.page.mouse.click(x, y)
        self.press("Shift")
        return slice_

    def test_the_list_is_tested(self):
        here = [name[len("test_does_"):] for name in dir(self) if name.startswith("test_does_")]
        self.assertEqual(sorted(here), sorted(INTERACTIONS))

    def test_draws_every_slice_in_its_colour(self):
        self.open()
        for name in ("mma", "full-wait", "epilogue"):
            x, y, _ = self.center_of(name)
            wrong = self.app(f"""(() => {{
              const c = document.getElementById('raster'), box = c.getBoundingClientRect();
              const p = c.getContext('2d').getImageData({x} - box.left, {y} - box.top, 1, 1).data;
              const colour = app.colours[app.trace.head.declarations.findIndex(d => d.name === '{name}')];
              return [(p[0] << 16 | p[1] << 8 | p[2]) - colour];
            }})()""")
            self.assertEqual(wrong, [0], name)

    def test_pixels_are_those_of_a_slow_reference(self):
        """Where one slice alone covers a whole pixel, and where none does, at several zooms."""
        self.open("4000")
        for _ in range(5):
            wrong = self.app("""(() => {
              const t = app.trace, c = document.getElementById('raster'), n = c.width - app.gutter;
              let wrong = 0, looked = 0;
              for (const lane of app.lanes) {
                if (lane.row < 0 || app.yOf(lane) < 30 || app.yOf(lane) + 8 > app.height) continue;
                const p = c.getContext('2d').getImageData(app.gutter, app.yOf(lane) + 2, n, 1).data;
                const over = new Array(n).fill(0), full = new Array(n).fill(-1);
                for (let s = t.rowFirst[lane.row]; s < t.rowFirst[lane.row + 1]; ++s) {
                  const x0 = app.xOf(t.beginNs(s)) - app.gutter, x1 = app.xOf(t.endNs(s)) - app.gutter;
                  for (let x = Math.max(0, Math.floor(x0 - 0.01)); x < n && x <= x1 + 0.01; ++x) {
                    ++over[x];
                    if (x0 < x - 1.01 && x1 > x + 1.01) full[x] = t.decl[s];
                  }
                }
                for (let x = 0; x < n; ++x) {
                  const rgb = p[4 * x] << 16 | p[4 * x + 1] << 8 | p[4 * x + 2];
                  const none = rgb === 0xebeef2 || rgb === 0xffffff;
                  ++looked;
                  if (full[x] >= 0 ? rgb !== app.colours[full[x]] : none !== (over[x] === 0) && (over[x] === 0 || none)) ++wrong;
                }
              }
              return [wrong, looked];
            })()""")
            # Where a slice ends exactly on a pixel's edge either side may be right.
            self.assertLess(wrong[0], wrong[1] * 0.002 + 1, wrong)
            self.assertGreater(wrong[1], 1000)
            self.press("w", "w", "w", "w")

    def test_groups_add_up(self):
        """Groups of slices have the sum of their times, and of eight the name that takes most of it."""
        self.open("4000")
        wrong = self.app("""(() => {
          const t = app.trace, time = (s) => t.end[s] - t.begin[s] + 1;
          let wrong = 0, looked = 0;
          app.raster.levels.forEach((level, i) => level.busy.forEach((busy, at) => {
            const size = 8 ** (i + 1), sums = {};
            let all = 0;
            for (let s = at * size; s < (at + 1) * size; ++s) { all += time(s); sums[t.decl[s]] = (sums[t.decl[s]] ?? 0) + time(s); }
            ++looked;
            if (Math.abs(busy - all) > all * 1e-6) ++wrong;
            if (i === 0 && sums[level.decl[at]] !== Math.max(...Object.values(sums))) ++wrong;
          }));
          return [wrong, looked > 500];
        })()""")
        self.assertEqual(wrong, [0, True])

    def test_pixels_of_groups_are_as_pale_as_a_slow_reference(self):
        """Dozens of slices a pixel: how much of it is taken, and by what name most, asked of each slice."""
        self.open("2000000")
        found = self.app("""(() => {
          const t = app.trace, width = 600, line = new Uint32Array(width), shades = app.shades;
          shades.of.set(Array.from(shades.of, (_, i) => 100 + i));
          const groups = app.raster.levels;
          let wrong = 0, looked = 0, grouped = 0, misnamed = 0, named = 0;
          for (let row = 0; row < t.rowKind.length && looked < 30000; row += 7) {
            if (t.rowHead(row).marks) continue;
            const warp = t.rowWarp[row], t0 = t.warpBegin[warp], perNs = width / (t.warpEnd[warp] - t0);
            const slices = t.rowFirst[row + 1] - t.rowFirst[row];
            if (slices < 4 * width) continue;
            if (app.raster.row(line, row, t0, perNs, shades) < slices / 2) ++grouped;
            const cover = new Float64Array(width + 2), names = Array.from(cover, () => ({}));
            for (let s = t.rowFirst[row]; s < t.rowFirst[row + 1]; ++s) {
              const x0 = (t.nsOf(warp, t.begin[s]) - t0) * perNs, x1 = (t.nsOf(warp, t.end[s]) - t0) * perNs;
              for (let x = Math.floor(x0); x < x1; ++x) {
                const share = Math.min(x1, x + 1) - Math.max(x0, x);
                cover[x] += share;
                names[x][t.decl[s]] = (names[x][t.decl[s]] ?? 0) + share;
              }
            }
            for (let x = 1; x + 1 < width; ++x) {
              ++looked;
              // A group counts where it begins, or half here and half there: a step of seven more or less.
              const near = [x - 1, x, x + 1].map(at => cover[at] * 7);
              const shade = (line[x] - 100) % 8;
              if (line[x] < 100 ? cover[x] > 0 : shade < Math.min(...near) - 1 || shade > Math.max(...near) + 1) ++wrong;
            }
            // Without groups, the name is the one that takes most, where it is clear which.
            app.raster.levels = [];
            app.raster.row(line, row, t0, perNs, shades);
            app.raster.levels = groups;
            for (let x = 1; x + 1 < width; ++x) {
              const [most, next] = Object.entries(names[x]).sort((a, b) => b[1] - a[1]);
              if (!next || most[1] < 0.05 || most[1] < 1.2 * next[1]) continue;
              ++named;
              if (Math.floor((line[x] - 100) / 8) !== Number(most[0])) ++misnamed;
            }
          }
          return [wrong, looked, grouped, misnamed, named];
        })()""")
        self.assertGreater(found[1], 5000)
        self.assertGreater(found[2], 5)
        self.assertLess(found[0], found[1] * 0.01, found)
        self.assertGreater(found[4], 1000)
        self.assertLess(found[3], found[4] * 0.02, found)

    LEGEND = "[...document.querySelectorAll('#legend .entry')].map(e => e.textContent).sort()"

    def test_a_summary_counts_what_it_stands_for(self):
        everything = self.open().evaluate(self.LEGEND)
        self.page.click("#tab-statistics")
        rows = "[...document.querySelectorAll('#statistics tr')].map(r => [...r.cells].map(c => c.textContent).filter((_, i) => i < 2).join(' ')).sort()"
        table = self.page.evaluate(rows)
        self.search("mma")
        found = self.page.text_content("#found")
        for name, slices in (("few", "987"), ("cta", None)):
            page = self.open(name)
            self.assertEqual(page.evaluate(self.LEGEND), everything)
            self.assertIn("384 warps  ·  9,472 slices", page.text_content("#title"))
            page.click("#tab-statistics")
            self.assertEqual(page.evaluate(rows), table)
            if slices:
                self.assertIn(f"{slices} of 9,472 ranges and marks are shown one by one", page.text_content("#summarized"))
            self.search("mma")
            self.assertEqual(page.text_content("#found"), found)

    def test_a_summary_says_what_it_is(self):
        self.assertFalse(self.open().is_visible("#summary"))
        page = self.open("few")
        self.assertTrue(page.is_visible("#summary"))
        self.app("app.select(app.trace.firstCell)")
        self.press("Shift")
        text = page.text_content("#details")
        self.assertIn("A summary, not a range", text)
        counts = self.app("app.trace.cells.partsOf(0).map(part => [app.trace.head.declarations[part.decl].name, part.n, part.cycles])")
        for name, n, cycles in counts:
            self.assertIn(f"{name}{n:,}{cycles:,}", text)
        # Striped, in the colour of the first of them: a quarter of the pixels is left.
        painted = self.app("""(() => {
          const at = app.rectangle(app.selected), c = document.getElementById('raster');
          const p = c.getContext('2d').getImageData(at.x + 4, at.y + 4, Math.floor(at.w / 4) * 4 - 8, 1).data;
          let left = 0;
          for (let i = 0; i < p.length; i += 4) if ((p[i] << 16 | p[i + 1] << 8 | p[i + 2]) === 0xebeef2) ++left;
          return [left, p.length / 4];
        })()""")
        self.assertEqual(painted[0] * 4, painted[1])

    def test_a_window_is_open_where_it_has_no_edge(self):
        for window, striped in (("2us..9us", [True, False, True]), ("2us..", [True, False, False]), ("..9us", [False, False, True])):
            path = self.files["window"] = os.path.join(self.folder.name, "window.html")
            subprocess.run([os.environ["IKET"], "export", f"{ROOT}/tests/data/h200/gemm_wgmma_marked.iketcap", "-o", path,
                            "--summarize-rest", "--cta", "3,0,0", "--window", window], check=True, capture_output=True)
            self.open("window")
            self.assertEqual(self.app("""(() => {
              const {trace, raster, shades} = app, [begin, end] = [trace.warpBegin[0], trace.warpEnd[0]];
              const line = new Uint32Array(1000), perNs = line.length / (end - begin);
              raster.life(line, 0, begin, perNs, shades);
              const [from, to] = [2000, 9000].map(ns => Math.round((ns - begin) * perNs));
              return [[0, from - 1], [from + 1, to - 1], [to + 1, 1000]].map(part => line.slice(...part).includes(shades.background));
            })()"""), striped, window)

    def test_roles_beside_a_summary_are_of_the_rest(self):
        page = self.open("few")
        self.press("r")
        self.assertIn("Roles are of what is shown one by one", page.text_content("#summarized"))
        self.assertEqual(self.app("app.trees.reduce((sum, tree) => sum + tree.count, 0)"), 39)
        self.assertLess(self.app("app.bounds()[1]"), 20000)

    def test_a_part_says_what_it_is_a_part_of(self):
        self.assertNotIn("A part", self.open().text_content("#notice"))
        path = self.files["part"] = os.path.join(self.folder.name, "part.html")
        subprocess.run([os.environ["IKET"], "export", f"{ROOT}/tests/data/h200/gemm_wgmma_marked.iketcap", "-o", path, "--cta", "3,0,0"],
                       check=True, capture_output=True)
        page = self.open("part")
        for where in ("#notice", "#trace"):
            self.assertIn("only --cta 3,0,0: 1 of 1 launches, 12 of 384 warps", page.text_content(where))
        self.assertFalse(page.is_visible("#summary"))

    def test_a_summary_says_how_to_get_the_rest(self):
        """The command on the page, as it stands there, makes a page in which that is one by one."""
        page = self.open("few")
        self.app("app.select(app.trace.firstCell)")
        self.press("f")
        words = page.text_content("#details code").split()
        self.assertEqual(words[:2], ["iket", "export"])
        path = self.files["more"] = os.path.join(self.folder.name, "more.html")
        subprocess.run([os.environ["IKET"], *words[1:], "-o", path], check=True, capture_output=True, cwd=f"{ROOT}/tests/data/h200")
        sm, begin, end = self.app("[app.trace.sm[app.trace.rowWarp[app.trace.rowOf(app.selected)]], app.trace.beginNs(app.selected), app.trace.endNs(app.selected)]")
        self.open("more")
        left = self.app(f"""(() => {{
          const t = app.trace;
          let left = 0;
          for (let s = t.firstCell; s < t.sliceCount; ++s) {{
            const warp = t.rowWarp[t.rowOf(s)];
            if (t.sm[warp] !== {sm}) continue;
            // Cells may reach over the window's edge; none lies within.
            if (t.beginNs(s) > {begin} + 1 && t.endNs(s) < {end} - 1) ++left;
          }}
          return left;
        }})()""")
        self.assertEqual(left, 0)
        self.assertGreater(self.app("app.trace.firstCell"), 10)

    def test_hostile_names_stay_text(self):
        page = self.open("hostile")
        self.press(".", "]", "j", ".")
        for tab in ("statistics", "legend", "trace", "details"):
            page.click(f"#tab-{tab}")
        self.assertIsNone(page.evaluate("window.hurt ?? null"))
        self.assertIsNone(page.query_selector("#hurt"))
        self.assertEqual(page.locator("img").count(), 0)
        self.assertIn("</script><script>window.hurt", page.text_content("#legend") + page.text_content("#trace"))

    def test_firefox(self):
        """Debian's Firefox does not speak playwright's protocol, so it is driven by its own, Marionette."""
        with Firefox(os.environ["IKET_FIREFOX"], self.folder.name) as firefox:
            firefox.ask("WebDriver:Navigate", {"url": "file://" + self.files["gemm_wgmma_marked"]})
            for _ in range(300):
                if firefox.script("return document.documentElement.dataset.ready ?? ''"):
                    break
                time.sleep(0.1)
            self.assertEqual(firefox.script("return document.documentElement.dataset.ready"), "yes")
            painted = firefox.script("""
              const app = (window.wrappedJSObject ?? window).iket.app, c = document.getElementById('raster');
              app.frame();
              const wanted = app.colours[app.trace.head.declarations.findIndex(d => d.name === 'mma')];
              const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
              let n = 0;
              for (let i = 0; i < p.length; i += 4) if ((p[i] << 16 | p[i + 1] << 8 | p[i + 2]) === wanted) ++n;
              return n""")
            self.assertGreater(painted, 5000)

    def test_does_collapse(self):
        self.open()
        lanes = self.app("app.lanes.length")
        self.page.mouse.click(60, self.app("app.yOf(app.lanes[1]) + 10 + document.getElementById('lanes').getBoundingClientRect().top"))
        self.press("Shift")
        self.assertLess(self.app("app.lanes.length"), lanes)
        self.assertTrue(self.app("app.lanes[1].folded"))

    def test_does_reorder(self):
        page = self.open()
        page.select_option("#order", "time")
        times = self.app("""app.trees.filter(l => l.warps.length)[0].children.map(c => Math.max(...c.warps.map(w => app.trace.warpEnd[w] - app.trace.warpBegin[w])))""")
        self.assertEqual(times, sorted(times, reverse=True))
        page.select_option("#order", "start")
        starts = self.app("app.trees.filter(l => l.warps.length)[0].children.map(c => Math.min(...c.warps.map(w => app.trace.warpBegin[w])))")
        self.assertEqual(starts, sorted(starts))

    def test_does_role_view(self):
        self.open()
        self.press("r")
        self.assertEqual(self.app("[...new Set(app.lanes.filter(l => l.row >= 0 && l.node === app.lanes[1].node).map(l => app.trace.index[l.warp]))].length"), 1)
        first = self.app("Math.min(...app.lanes.filter(l => l.row >= 0).map(l => app.trace.warpBegin[l.warp] - l.offsetNs))")
        self.assertLess(first, 1000)
        self.assertEqual(self.page.get_attribute("#roles", "aria-pressed"), "true")

    def search(self, text):
        self.press("/")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        self.press("Shift")

    def test_does_search_by_name(self):
        self.open()
        self.search("epilog")
        self.assertEqual(self.app("app.trace.name(app.selected)"), "epilogue")
        self.assertEqual(self.page.text_content("#found"), f"{self.app('app.query.count()')} matches")

    def test_does_search_by_payload(self):
        self.open()
        self.search("mma payload=3")
        for _ in range(3):
            self.assertEqual(self.app("[app.trace.name(app.selected), Number(app.trace.payload(app.selected))]"), ["mma", 3])
            self.page.keyboard.press("Enter")

    def test_does_wasd_and_arrows(self):
        self.open()
        whole = self.window()
        self.press("w")
        self.assertLess(self.window()[1] - self.window()[0], whole[1] - whole[0])
        before = self.window()
        self.press("d")
        self.assertGreater(self.window()[0], before[0])
        self.press("a", "ArrowLeft")
        self.assertLess(self.window()[0], before[0])
        self.press("s")
        self.assertGreater(self.window()[1] - self.window()[0], before[1] - before[0])
        self.press("ArrowDown")
        self.assertGreater(self.app("app.scroll"), 0)

    def test_does_wheel(self):
        page = self.open()
        page.mouse.move(700, 400)
        page.mouse.wheel(0, 200)
        self.press("Shift")
        self.assertEqual(self.app("app.scroll"), 200)
        page.keyboard.down("Control")
        at = self.app("app.timeAt(700)")
        page.mouse.wheel(0, -300)
        page.keyboard.up("Control")
        self.press("Shift")
        self.assertLess(self.window()[1] - self.window()[0], 15000)
        self.assertAlmostEqual(self.app("app.timeAt(700)"), at, delta=1)

    def drag(self, x0, y0, x1, y1):
        self.page.mouse.move(x0, y0)
        self.page.mouse.down()
        self.page.mouse.move((x0 + x1) / 2, (y0 + y1) / 2)
        self.page.mouse.move(x1, y1)
        self.page.mouse.up()
        self.press("Shift")

    def test_does_drag(self):
        self.open()
        self.press("w", "w")
        before = self.window()
        self.drag(700, 400, 600, 300)
        self.assertGreater(self.window()[0], before[0])
        self.assertAlmostEqual(self.app("app.scroll"), 100, delta=5)

    def test_does_box_statistics(self):
        page = self.open()
        page.keyboard.down("Shift")
        self.drag(400, 210, 800, 300)
        page.keyboard.up("Shift")
        text = page.text_content("#statistics")
        self.assertRegex(text, r"\d+ slices in the box")
        self.assertIn("mma", text)

    def test_does_measure(self):
        page = self.open()
        self.press("m")
        self.drag(400, 150, 700, 150)
        span = self.app("[app.span.t0, app.span.t1]")
        self.assertAlmostEqual(span[1] - span[0], 300 / self.app("app.perNs"), delta=600)
        self.assertIn("measured", page.text_content("#announce"))

    def test_does_next_and_previous(self):
        self.open()
        first = self.click_slice()
        self.press("]")
        second = self.app("app.selected")
        self.assertGreater(second, first)
        self.assertEqual(self.app("app.trace.name(app.selected)"), "mma")
        self.press("[")
        self.assertEqual(self.app("app.selected"), first)

    def test_does_details(self):
        page = self.open()
        slice_ = self.click_slice()
        self.assertEqual(self.app("app.selected"), slice_)
        text = page.text_content("#details")
        cycles = f"{self.app('app.trace.cyclesOf(app.selected)'):,}"
        for part in ("mma", f"{cycles} cycles", "payload", "CTA (", "GemmWgmma"):
            self.assertIn(part, text)

    def test_does_arrows_of_the_selection(self):
        page = self.open("hostile")
        link = self.app("app.trace.links[0]")
        self.app(f"app.select({link['to']})")
        self.press("Shift")
        self.assertIn("Waited for", page.text_content("#details"))
        page.locator("#details p .link").filter(has_text="CTA").first.click()
        self.press("Shift")
        self.assertIn("Lets go on", page.text_content("#details"))

    def test_does_histogram(self):
        page = self.open()
        self.click_slice()
        titles = page.eval_on_selector_all("#histogram div", "all => all.map(bar => bar.title)")
        total = sum(int(title.split(": ")[1].replace(",", "")) for title in titles)
        self.assertIn(f"{total:,} instances", page.text_content("#details"))
        self.assertEqual(page.locator("#histogram .here").count(), 1)

    def test_does_statistics_panel(self):
        page = self.open()
        page.click("#tab-statistics")
        report = subprocess.run([os.environ["IKET"], "report", f"{ROOT}/tests/data/h200/gemm_wgmma_marked.iketcap", "--json"],
                                capture_output=True, text=True, check=True).stdout
        self.assertIn('"mma"', report)
        row = page.locator("#statistics tr").filter(has_text="mma").first.text_content()
        self.assertIn(f"{self.app('''app.trace.decl.filter(d => app.trace.head.declarations[d].name === 'mma').length'''):,}", row)

    def test_does_legend(self):
        page = self.open()
        page.click("#tab-legend")
        entry = page.locator("#legend .entry").filter(has_text="mma")
        entry.click()
        self.press("Shift")
        self.assertEqual(entry.get_attribute("aria-pressed"), "false")
        self.assertTrue(self.app("app.hidden.has('mma')"))

    def test_does_permalink(self):
        page = self.open()
        slice_ = self.click_slice()
        self.press("f")
        page.wait_for_timeout(400)
        window, link = self.window(), page.evaluate("location.hash")
        self.assertIn(f"s={slice_}", link)
        self.open(hash=link)
        self.assertEqual(self.app("app.selected"), slice_)
        self.assertAlmostEqual(self.window()[0], window[0], delta=1)
        self.assertAlmostEqual(self.window()[1], window[1], delta=1)

    def test_does_light_and_dark(self):
        page = self.open(color_scheme="dark")
        self.assertEqual(page.get_attribute("html", "data-theme"), "dark")
        self.press("t")
        self.assertEqual(page.get_attribute("html", "data-theme"), "light")
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")

    def test_does_small_window(self):
        page = self.open(viewport={"width": 380, "height": 640})
        self.assertFalse(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
        self.assertGreater(self.app("app.width"), 200)
        self.assertGreater(self.app("app.height"), 120)

    def test_does_touch(self):
        self.open(has_touch=True, viewport={"width": 800, "height": 600})
        x, y, slice_ = self.center_of("epilogue")
        self.page.touchscreen.tap(x, y)
        self.press("Shift")
        self.assertEqual(self.app("app.selected"), slice_)
        session = self.page.context.new_cdp_session(self.page)
        before = self.window()
        for kind, spread in (("touchStart", 20), ("touchMove", 60), ("touchMove", 120), ("touchEnd", 0)):
            points = [{"x": 350 - spread, "y": 300, "id": 0}, {"x": 350 + spread, "y": 300, "id": 1}]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [] if kind == "touchEnd" else points})
        self.press("Shift")
        self.assertLess(self.window()[1] - self.window()[0], (before[1] - before[0]) / 2)

    def test_does_keyboard_alone(self):
        page = self.open()
        self.press(".", ".")
        first = self.app("app.selected")
        self.press("j")
        self.assertNotEqual(self.app("app.selected"), first)
        self.press("Enter")
        self.assertLess(self.window()[1] - self.window()[0], 10000)
        self.press("?")
        self.assertTrue(page.is_visible("#keys"))
        self.press("Escape")
        lanes = self.app("app.lanes.length")
        self.press(" ")
        self.assertLess(self.app("app.lanes.length"), lanes)

    def test_does_headings_by_keyboard(self):
        page = self.open()
        focused = "(() => { const e = document.activeElement; return [e.dataset.key ?? e.id, e.getAttribute('aria-expanded'), e.getAttribute('aria-label')]; })()"
        page.focus("#lanes")
        self.press("Tab")
        self.assertEqual(page.evaluate(focused), ["l0", "true", page.evaluate(focused)[2]])
        self.assertIn("384 warps", page.evaluate(focused)[2])
        self.press("ArrowDown")
        self.assertEqual(page.evaluate(focused), ["l0s0", "true", "SM 0, 12 warps"])
        lanes = self.app("app.lanes.length")
        self.press("Enter")
        self.assertEqual(page.evaluate(focused)[:2], ["l0s0", "false"])
        self.assertLess(self.app("app.lanes.length"), lanes)
        self.press(" ")
        self.assertEqual(self.app("app.lanes.length"), lanes)
        self.press("ArrowRight")
        self.assertEqual(page.evaluate(focused)[2], "CTA (16, 0, 0), 12 warps")
        self.press("ArrowLeft", "ArrowLeft")
        self.assertEqual(page.evaluate(focused)[:2], ["l0s0", "true"])
        # The last is out of sight: it comes, and has the focus where it is drawn.
        self.press("End")
        key = page.evaluate(focused)[0]
        self.assertEqual(key, self.app("app.lanes.filter(l => l.row < 0 && l.warp < 0).pop().node.key"))
        self.assertGreater(self.app("app.scroll"), 0)
        box, lane = page.evaluate("document.activeElement.getBoundingClientRect().top"), self.app(f"app.yOf(app.lanes.find(l => l.node.key === '{key}'))")
        self.assertAlmostEqual(box, lane + page.evaluate("document.getElementById('lanes').getBoundingClientRect().top"), delta=1)
        # Wheeled away it keeps the focus, and one Tab leaves the tree.
        page.mouse.move(700, 400)
        page.mouse.wheel(0, -5000)
        self.press("Shift")
        self.assertEqual(page.evaluate(focused)[0], key)
        self.press("Tab")
        self.assertEqual(page.evaluate(focused)[0], "tab-details")
        self.assertEqual(page.locator("#headings [tabindex='0']").count(), 1)

    def test_does_overview(self):
        page = self.open()
        self.press("w", "w", "w")
        page.click("#overview", position={"x": 1000, "y": 20})
        self.press("Shift")
        window = self.window()
        low, high = self.app("app.bounds()")
        self.assertAlmostEqual(((window[0] + window[1]) / 2 - low) / (high - low), 1000 / 1200, delta=0.02)


if __name__ == "__main__":
    unittest.main()
