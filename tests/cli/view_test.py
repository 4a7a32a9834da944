"""iket view: what its server gives to whom, over raw sockets. No browser is here (tests/viewer has one)."""

import os
import re
import signal
import socket
import stat
import subprocess
import unittest

import harness

LINE = r"(\S+) is at (http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/)\n"
LAST_LINE = "The address is a secret. Ctrl-C ends it.\n"
MOST_CONNECTIONS = 64


class View:
    """A running `iket view`, whose first lines were read."""

    def __init__(self, test, *arguments, **options):
        variables = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        variables |= options.pop("variables", {})
        self.process = subprocess.Popen([harness.IKET, "view", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=variables, cwd=test.folder, **options)
        test.addCleanup(self.stop)
        self.lines = []
        while not self.lines or self.lines[-1] not in ("", LAST_LINE):
            self.lines.append(self.process.stdout.readline().decode())
        self.match = re.search(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/", self.lines[0])
        test.assertIsNotNone(self.match, self.lines)
        self.port, self.token = int(self.match[1]), self.match[2]

    def stop(self, number=signal.SIGKILL):
        if self.process.returncode is None:
            self.process.send_signal(number)
        self.rest = self.process.communicate(timeout=60)
        return self.process.returncode

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def ask(self, path=None, method="GET", host=None, fields=(), raw=None):
        """Status, fields and contents of the answer."""
        path = f"/{self.token}/" if path is None else path
        host = host or f"127.0.0.1:{self.port}"
        head = "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *fields]) + "\r\n\r\n"
        with self.connect() as connection:
            connection.sendall(head.encode() if raw is None else raw)
            return read_answer(connection)


def read_answer(connection):
    answer = b""
    while block := connection.recv(1 << 20):
        answer += block
    head, _, contents = answer.partition(b"\r\n\r\n")
    status, *fields = head.decode().split("\r\n")
    pairs = dict(field.lower().split(": ", 1) for field in fields)
    return int(status.split()[1]), pairs, contents


class ViewTest(harness.CliTest):
    def page(self):
        path = self.path("page.html")
        self.assertEqual(self.iket("export", self.capture("complete"), "-o", path).code, 0)
        return path

    def test_a_capture_is_shown_as_its_page(self):
        page = self.read(self.page())
        before = sorted(os.listdir(self.folder))
        view = View(self, "complete.iketcap")
        status, fields, contents = view.ask()
        self.assertEqual((status, contents), (200, page))
        self.assertEqual(fields["content-type"], "text/html; charset=utf-8")
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_what_it_says(self):
        view = View(self, self.page())
        self.assertRegex("".join(view.lines), LINE +
                         rf"From another machine: ssh -L {view.port}:127\.0\.0\.1:{view.port} \S+, then the same address there\.\n"
                         rf"{LAST_LINE}$")
        self.assertNotEqual(View(self, self.page()).token, view.token)

    def test_strict_fields(self):
        view = View(self, self.page())
        for path in (None, "/", "/favicon.ico"):
            _, fields, _ = view.ask(path)
            policy = fields["content-security-policy"]
            self.assertTrue(policy.startswith("default-src 'none'"), policy)
            self.assertTrue(policy.endswith("; frame-ancestors 'none'"), policy)
            self.assertNotIn("unsafe", policy)
            for name, value in (("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"),
                                ("cache-control", "no-store"), ("cross-origin-resource-policy", "same-origin"),
                                ("connection", "close")):
                self.assertEqual(fields[name], value)
            self.assertNotIn("access-control-allow-origin", fields)

    def test_without_the_token_there_is_nothing(self):
        view = View(self, self.page())
        wrong = view.token[:-1] + ("0" if view.token[-1] != "0" else "1")
        for path in ("/", f"/{wrong}/", f"/{view.token}", f"/{view.token}x/", f"/{view.token[:-1]}/", f"//{view.token}/",
                     f"/{view.token}/../", f"/{view.token}/page.html", f"/{view.token.upper()}/?", "/etc/passwd",
                     f"/{view.token}/%2e%2e/", f"/{view.token}/?x"):
            with self.subTest(path=path):
                status, _, contents = view.ask(path)
                self.assertEqual(status, 404)
                self.assertNotIn(view.token.encode(), contents)
                self.assertNotIn(b"<script", contents)

    def test_only_names_of_this_machine(self):
        view = View(self, self.page())
        for host in (f"localhost:{view.port}", "localhost:9000", "127.0.0.1"):
            self.assertEqual(view.ask(host=host)[0], 200, host)
        for host in ("evil.example", f"evil.example:{view.port}", f"127.0.0.1.evil.example:{view.port}"):
            status, _, contents = view.ask(host=host)
            self.assertEqual((status, b"<script" in contents), (421, False), host)

    def test_only_this_machine(self):
        view = View(self, self.page())
        with open("/proc/net/tcp", encoding="ascii") as table:
            listening = [line.split()[1] for line in table if line.split()[3] == "0A"]
        self.assertEqual([at for at in listening if at.endswith(f":{view.port:04X}")], [f"0100007F:{view.port:04X}"])

    def test_methods(self):
        view = View(self, self.page())
        size = os.path.getsize(self.path("page.html"))
        status, fields, contents = view.ask(method="HEAD")
        self.assertEqual((status, fields["content-length"], contents), (200, str(size), b""))
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "get"):
            status, fields, _ = view.ask(method=method)
            self.assertEqual((status, fields["allow"]), (405, "get, head"), method)
        self.assertEqual(view.ask(fields=["Content-Length: 5"], raw=None)[0], 400)

    def test_a_range_is_the_whole(self):
        view = View(self, self.page())
        status, _, contents = view.ask(fields=["Range: bytes=5-9"])
        self.assertEqual((status, contents), (200, self.read("page.html")))

    def test_what_is_no_request(self):
        view = View(self, self.page())
        for raw in (b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\r\n\r\n", f"GET /{view.token}/ HTTP/1.1\r\n\r\n".encode()):
            self.assertEqual(view.ask(raw=raw)[0], 400, raw)
        self.assertEqual(view.ask(fields=["Cookie: " + "x" * 9000])[0], 431)
        self.assertEqual(view.ask(raw=b"GET /" + b"x" * (1 << 20))[0], 431)
        self.assertEqual(view.ask()[0], 200)

    def test_a_silent_one_keeps_nobody_waiting(self):
        view = View(self, self.page())
        with view.connect() as silent, view.connect() as slow:
            slow.sendall(f"GET /{view.token}/ HT".encode())
            self.assertEqual([view.ask()[0] for _ in range(3)], [200] * 3)
            slow.sendall(f"TP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.assertEqual(read_answer(slow)[0], 200)
            silent.sendall(b"x")

    def test_a_slow_one_is_left(self):
        """A second passes between any two looks at the clock (fast_clock.c); each request is some looks."""
        view = View(self, self.page(), variables={"LD_PRELOAD": os.environ["IKET_FAST_CLOCK"]})
        with view.connect() as slow:
            slow.sendall(b"GET / HTTP/1.1\r\n")
            silent = view.connect()  # as browsers do, for later
            for _ in range(12):
                self.assertEqual(view.ask()[0], 200)
            self.assertEqual(read_answer(slow)[0], 408)
            self.assertEqual(silent.recv(1), b"")
            silent.close()

    def test_very_many_at_once(self):
        view = View(self, self.page())
        crowd = [view.connect() for _ in range(MOST_CONNECTIONS + 8)]
        try:
            self.assertEqual(view.ask()[0], 200)
            # The oldest made room; the newest still has time.
            self.assertEqual(crowd[0].recv(1), b"")
            crowd[-1].sendall(f"GET /{view.token}/ HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.assertEqual(read_answer(crowd[-1])[0], 200)
        finally:
            for one in crowd:
                one.close()

    def test_who_has_the_token_is_not_dropped_for_strangers(self):
        large = self.path("large.chrome.json")
        with open(large, "wb") as file:
            file.write(b'{"traceEvents":[]}')
            file.truncate(64 << 20)
        view = View(self, "--perfetto", large)
        with view.connect() as reader:
            reader.sendall(f"GET /{view.token}/trace HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.assertNotEqual(reader.recv(1), b"")  # and now it reads slowly
            crowd = [view.connect() for _ in range(MOST_CONNECTIONS + 8)]
            self.assertEqual(view.ask()[0], 200)
            for one in crowd:
                one.close()
            _, _, contents = read_answer(reader)
            self.assertEqual(len(contents), 64 << 20)

    def test_a_file_that_shrinks_ends_the_answer_alone(self):
        large = self.path("large.chrome.json")
        with open(large, "wb") as file:
            file.write(b'{"traceEvents":[]}')
            file.truncate(64 << 20)
        view = View(self, "--perfetto", large)
        os.truncate(large, 18)
        status, fields, contents = view.ask(f"/{view.token}/trace")
        self.assertEqual((status, fields["content-length"], len(contents)), (200, str(64 << 20), 18))
        self.assertEqual(view.ask()[0], 200)

    def test_ends_at_signals_and_leaves_nothing(self):
        self.capture("complete")
        temporary = self.path("temporary")
        os.mkdir(temporary)
        for number in (signal.SIGINT, signal.SIGTERM):
            view = View(self, "complete.iketcap", variables={"TMPDIR": temporary})
            self.assertEqual(view.ask()[0], 200)
            self.assertEqual(os.listdir(temporary), [])  # not even while it runs
            self.assertEqual(view.stop(number), -number)
            self.assertEqual(view.rest, (b"", b""))
            with self.assertRaises(ConnectionRefusedError):
                view.connect()

    def test_port(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        view = View(self, self.page(), "--port", str(port))
        self.assertEqual(view.port, port)
        result = self.iket("view", "page.html", "--port", str(port))
        self.assert_one_line(result, 2)
        self.assertIn("leave --port out", result.err)
        view.ask()
        view.stop()
        View(self, "page.html", "--port", str(port))  # at once

    def test_starts_the_browser_with_an_entry_that_is_good_once(self):
        browser = self.path("browser")
        out = self.path("asked")
        os.mkfifo(out)
        with open(browser, "w", encoding="utf-8") as script:
            script.write(f'#!/bin/sh\nprintf "%s\\n" "$@" > {out}\n')
        os.chmod(browser, stat.S_IRWXU)
        view = View(self, self.page(), variables={"DISPLAY": ":7", "BROWSER": browser})
        self.assertRegex(view.lines[0], r"page\.html is at http://\S+/, and the browser was asked to show it\.\n$")
        with open(out, encoding="utf-8") as pipe:
            (address,) = pipe.read().split()
        # Other users see this on the command line.
        self.assertNotIn(view.token, address)
        entry = re.fullmatch(rf"http://127\.0\.0\.1:{view.port}(/[0-9a-f]{{32}})", address)[1]
        status, fields, _ = view.ask(entry)
        self.assertEqual((status, fields["location"]), (303, f"/{view.token}/"))
        self.assertEqual(view.ask(entry)[0], 404)
        self.assertEqual(view.ask(fields["location"])[0], 200)

    def test_starts_no_browser_unasked(self):
        touched = self.path("touched")
        for variables, arguments in (({"DISPLAY": ":7"}, ["--no-browser"]), ({"SSH_CONNECTION": "a 1 b 2"}, [])):
            view = View(self, self.page(), *arguments, variables={"BROWSER": f"touch {touched}", **variables})
            self.assertRegex(view.lines[0], rf"^{LINE}$")
            view.ask()
            view.stop()
        self.assertFalse(os.path.exists(touched))

    def test_perfetto(self):
        trace = self.path("x.pftrace")
        self.iket("export", self.capture("complete"), "-o", trace)
        bytes_ = self.read("x.pftrace")
        for file, name in (("complete.iketcap", "complete.pftrace"), (trace, "x.pftrace")):
            view = View(self, "--perfetto", file)
            status, fields, contents = view.ask()
            self.assertEqual(status, 200)
            self.assertIn(b"it is not uploaded", contents)
            self.assertIn("connect-src 'self'", fields["content-security-policy"])
            self.assertNotIn("unsafe", fields["content-security-policy"])
            status, fields, contents = view.ask(f"/{view.token}/trace")
            self.assertEqual((status, contents), (200, bytes_))
            self.assertEqual(fields["content-disposition"], f"attachment; filename*=utf-8''{name}")

    def test_names_cannot_end_a_field(self):
        name = "a\r\nX-Evil: 1\u00e9\"';.pftrace"
        os.rename(self.capture("complete"), self.path("a.iketcap"))
        self.iket("export", "a.iketcap", "-o", self.path(name))
        view = View(self, "--perfetto", self.path(name))
        _, fields, _ = view.ask(f"/{view.token}/trace")
        self.assertNotIn("x-evil", fields)
        self.assertEqual(fields["content-disposition"],
                         "attachment; filename*=utf-8''a%0d%0ax-evil%3a%201%c3%a9%22%27%3b.pftrace")

    def test_what_is_not_shown(self):
        page = self.page()
        for format_name in ("pftrace", "trace.json", "csv", "chrome.json"):
            self.iket("export", self.path("complete.iketcap"), "-o", self.path("x." + format_name))
        weak = self.read(page).replace(b"default-src 'none'", b"default-src *", 1)
        self.write("weak.html", weak)
        self.write("foreign.html", b"<!doctype html><script>1</script>")
        self.write("text", b"hello")
        for arguments, code, says in (
            (["x.pftrace"], 2, "--perfetto opens it there"),
            (["x.chrome.json"], 2, "--perfetto opens it there"),
            (["x.trace.json"], 2, "view the capture"),
            (["x.csv"], 2, "view the capture"),
            (["--perfetto", "x.csv"], 2, "give the capture"),
            (["--perfetto", "x.trace.json"], 2, "give the capture"),
            (["--perfetto", "page.html"], 2, "give the capture"),
            (["weak.html"], 3, "its Content-Security-Policy is too weak: default-src admits *"),
            (["foreign.html"], 3, "no page of iket's"),
            (["text"], 3, "text"),
            (["missing.iketcap"], 3, "missing.iketcap"),
            (["page.html", "--port", "70000"], 2, "--port"),
        ):
            with self.subTest(arguments=arguments):
                result = self.iket("view", *arguments)
                self.assert_one_line(result, code)
                self.assertIn(says, result.err)
                self.assertEqual(result.out, "")
        result = self.iket("view", self.capture("empty"))
        self.assertEqual((result.code, result.out), (4, ""), result.err)

    def test_no_room_for_the_page(self):
        self.capture("complete")
        result = self.iket("view", "complete.iketcap", env={**os.environ, "TMPDIR": self.path("missing")})
        self.assert_one_line(result, 3)
        self.assertIn("TMPDIR", result.err)


if __name__ == "__main__":
    unittest.main()
