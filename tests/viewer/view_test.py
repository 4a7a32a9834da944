"""iket view in Chromium: the page that it serves, and the trace that it hands to Perfetto."""
import hashlib
import os
import re
import subprocess
import tempfile
import unittest

from playwright.sync_api import sync_playwright

CAPTURE = os.path.join(os.environ["IKET_SOURCE_DIR"], "tests/data/h200/gemm_wgmma_marked.iketcap")
UI = "https://ui.perfetto.dev"

# What Perfetto's page does with messages, but that it is slow to begin: the first pings are lost.
FAKE_UI = """<!doctype html><script>
let pings = 0;
addEventListener('message', async (message) => {
  if (message.data === 'PING') {
    if (++pings >= 3) message.source.postMessage('PONG', '*');
    return;
  }
  const {buffer, title, fileName} = message.data.perfetto;
  const hash = await crypto.subtle.digest('SHA-256', buffer);
  window.got = {title, fileName, origin: message.origin,
                hash: [...new Uint8Array(hash)].map(byte => byte.toString(16).padStart(2, '0')).join('')};
});
</script>"""


class View(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=os.environ["IKET_CHROMIUM"], args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()

    def view(self, *arguments):
        """A page at the address that `iket view` prints."""
        process = subprocess.Popen([os.environ["IKET"], "view", "--no-browser", *arguments], stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.address = re.search(r"http://\S+", process.stdout.readline())[0]
        self.context = self.browser.new_context()
        self.addCleanup(self.context.close)
        self.faults, self.requests = [], []
        self.context.on("request", lambda request: self.requests.append(request.url))
        page = self.context.new_page()
        # A ping to a window that is still empty is not delivered, which Chromium says.
        page.on("console", lambda message: "target origin" in message.text or self.faults.append(message.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.goto(self.address)
        return page

    @staticmethod
    def wait_for_status(page, text):
        page.locator("#status", has_text=text).wait_for()

    def test_page(self):
        page = self.view(CAPTURE)
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        self.assertEqual(page.evaluate("window.iket.app.trace.sliceCount"), 9472)
        self.assertEqual([url for url in self.requests if not url.startswith("data:")], [self.address])
        self.assertEqual(self.faults, [])

    def test_perfetto_gets_the_very_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pftrace")
            subprocess.run([os.environ["IKET"], "export", CAPTURE, "-o", path], check=True, capture_output=True)
            with open(path, "rb") as file:
                wanted = hashlib.sha256(file.read()).hexdigest()
        page = self.view("--perfetto", CAPTURE)
        self.context.route(re.compile(r"^https?://(?!127\.0\.0\.1)"), lambda route: route.abort())
        self.context.route(UI + "/**", lambda route: route.fulfill(content_type="text/html", body=FAKE_UI))
        for _ in range(2):  # and again
            with page.expect_popup() as opened:
                page.click("#open")
            ui = opened.value
            ui.wait_for_function("window.got")
            got = ui.evaluate("window.got")
            self.assertEqual(got, {"title": "gemm_wgmma_marked.pftrace", "fileName": "gemm_wgmma_marked.pftrace",
                                   "origin": self.address[: self.address.index("/", 7)], "hash": wanted})
            self.wait_for_status(page, "in the other window")
            ui.close()
        outside = [url for url in self.requests if not url.startswith((self.address, "data:"))]
        self.assertEqual(outside, [UI + "/"] * 2)  # the page alone: nothing is sent there
        self.assertEqual(self.faults, [])

    def test_perfetto_cannot_be_reached(self):
        page = self.view("--perfetto", CAPTURE)
        self.context.route(UI + "/**", lambda route: route.fulfill(content_type="text/html", body="<p>no listener"))
        with page.expect_popup() as opened:
            page.click("#open")
        self.wait_for_status(page, "Waiting for")
        opened.value.close()
        self.wait_for_status(page, "Not opened: the window was closed")

    def test_perfetto_answers_of_others_count_for_nothing(self):
        page = self.view("--perfetto", CAPTURE)
        self.context.route(UI + "/**", lambda route: route.fulfill(content_type="text/html", body="<p>no listener"))
        with page.expect_popup():
            page.click("#open")
        self.wait_for_status(page, "Waiting for")
        page.evaluate("postMessage('PONG', '*')")
        page.evaluate("new Promise(done => setTimeout(done))")
        self.assertTrue(page.text_content("#status").startswith("Waiting for"))


if __name__ == "__main__":
    unittest.main()
