#!/usr/bin/env python3
"""browser.py PAGE EXPECTED.json [SCREENSHOTS]: opens a page of `headway view` in a headless browser and uses it.

Speaks the DevTools protocol over a pipe, so that it needs nothing but Python and a browser. EXPECTED has
{"layers": [{"probabilities": [head][query][key], "hidden": [query][key]}]}. Exit codes: 0 good, 1 with a line for each
thing that is wrong, 77 where there is no browser that starts.
"""
import base64
import json
import math
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

BROWSERS = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"]
WIDTHS = [(1280, 900), (390, 844)]
NO_BROWSER = 77
ANSWER_SECONDS = 120


class Browser:
    """One tab. Commands are sent and answered in order; what happens in between is kept in `events`."""

    def __init__(self, program, folder):
        to_browser, self.to = os.pipe()
        self.by, from_browser = os.pipe()

        def give_pipes():  # the browser reads descriptor 3 and writes 4
            read, write = os.dup(to_browser), os.dup(from_browser)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
             f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=give_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.pending = b""
        self.last = 0
        self.session = None
        self.events = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.pending:
            if not select.select([self.by], [], [], ANSWER_SECONDS)[0]:
                raise RuntimeError(f"the browser says nothing for {ANSWER_SECONDS} s")
            read = os.read(self.by, 1 << 16)
            if not read:
                raise RuntimeError("the browser went away")
            self.pending += read
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event):
        seen = [e for e in self.events if e.get("method") == event]
        while not seen:
            answer = self.receive()
            self.events.append(answer)
            seen = [answer] if answer.get("method") == event else []

    def run(self, script):
        """The value of an expression, or what its promise resolves to."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']['exception']['description']}")
        return result["result"].get("value")

    def close(self):
        try:
            self.session = None
            self.send("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Test:
    def __init__(self, browser, page, expected, pictures):
        self.browser, self.page, self.expected, self.pictures = browser, page, expected, pictures
        self.failures = []
        self.where = ""

    @staticmethod
    def read_expected(path):
        return json.loads(pathlib.Path(path).read_text())

    def begin(self):
        """What is done once, before the page is used at any width."""

    def expect(self, good, what):
        if not good:
            self.failures.append(f"{self.where}: {what}")

    def open(self, hash_=""):
        self.browser.events.clear()
        self.browser.send("Page.navigate", url="about:blank")
        self.browser.wait_for("Page.loadEventFired")
        self.browser.events.clear()
        begin = time.monotonic()
        self.browser.send("Page.navigate", url=pathlib.Path(self.page).absolute().as_uri() + hash_)
        self.browser.wait_for("Page.loadEventFired")
        self.settle()
        return time.monotonic() - begin

    def settle(self):
        self.browser.run("headway.drawn()")

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            text = {"text": name} if len(name) == 1 and kind == "keyDown" else {}
            self.browser.send("Input.dispatchKeyEvent", type=kind, key=name, **text)
        self.settle()

    def probabilities(self):
        state = self.state()
        return self.expected["layers"][state["layer"]]["probabilities"][state["head"]]

    def state(self):
        return self.browser.run("({layer: headway.state.layer, head: headway.state.head, row: headway.state.row})")

    def hover(self, query, key):
        point = self.browser.run(f"""(() => {{
            document.getElementById("map").scrollIntoView({{block: "start"}});
            const box = headway.map.canvas.getBoundingClientRect(), g = headway.map.geometry();
            return [box.left + g.left + ({key} + 0.5) * g.cellWidth, box.top + g.top + ({query} + 0.5) * g.cellHeight];
        }})()""")
        self.browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=point[0], y=point[1])
        self.settle()

    def check_row(self, query):
        """What the page shows of the chosen row, against what is expected."""
        self.expect(self.state()["row"] == query, f"row {self.state()['row']} is chosen, expected {query}")
        exact = self.probabilities()[query]
        shown = self.browser.run("""[...document.querySelectorAll("#row .one-row:first-child .largest tr")].map(
            (tr) => [Number(tr.dataset.key), Number(tr.querySelector(".p").textContent)])""")
        self.expect(len(shown) == min(5, sum(1 for p in exact if p > 0)) or len(shown) == 5, f"{len(shown)} keys are listed")
        for key, p in shown:
            self.expect(abs(p - exact[key]) <= 1e-6, f"row {query} key {key} shows {p}, expected {exact[key]}")
        largest = sorted(exact, reverse=True)[:len(shown)]
        self.expect(all(abs(p - q) <= 1e-6 for (_, p), q in zip(shown, largest)), f"row {query}: not the largest")
        state = self.state()
        row = self.browser.run(f"Array.from(headway.row({state['layer']}, {state['head']}, {query}).p)")
        worst = max(abs(a - b) for a, b in zip(row, exact))
        self.expect(worst <= 1e-6, f"row {query} is {worst} away")
        facts = self.browser.run("""document.querySelector("#row .figures").innerText.split(/\\n|  +/).join(" ")""")
        entropy = -sum(p * math.log(p) for p in exact if p > 0)
        self.expect(f"{entropy:.3f}"[:-1] in facts or f"{entropy:.4f}" in facts, f"entropy {entropy:.4f} is not in '{facts}'")
        live = self.browser.run("""document.getElementById("live").textContent""")
        self.expect(f"query {query} " in live and f"head {state['head']}," in live, f"is read as '{live}'")

    def check_cells(self):
        """The colours on the canvas, against what is expected: within 1/255, and hidden cells have no colour."""
        state = self.state()
        exact, hidden = self.probabilities(), self.expected["layers"][state["layer"]]["hidden"]
        got = self.browser.run("""(() => {
            const map = headway.map, g = map.geometry(), scale = devicePixelRatio, {window} = map.computed;
            const image = map.canvas.getContext("2d").getImageData(0, 0, map.canvas.width, map.canvas.height);
            const cells = [];
            for (let i = window.queries.begin; i < window.queries.end; ++i) {
              for (let j = window.keys.begin; j < window.keys.end; ++j) {
                const x = Math.round((g.left + (j + 0.5) * g.cellWidth) * scale);
                const y = Math.round((g.top + (i + 0.5) * g.cellHeight) * scale);
                const [r, green, b] = image.data.slice(4 * (y * image.width + x), 4 * (y * image.width + x) + 3);
                let step = -1, nearest = 1e9;
                map.view.colours.forEach((c, n) => {
                  const apart = Math.abs(c[0] - r) + Math.abs(c[1] - green) + Math.abs(c[2] - b);
                  if (apart < nearest) [nearest, step] = [apart, n];
                });
                cells.push([i, j, step, nearest]);
              }
            }
            return cells;
        })()""")
        computed = self.browser.run("Array.from(headway.map.computed.cells)")
        row, keys = state["row"], len(exact[0])
        for i, j, step, apart in got:
            if row is not None and i == row:
                continue  # its frame lies over it
            if hidden[i][j]:
                self.expect(computed[i * keys + j] == -1, f"cell {i}, {j} is hidden and has {computed[i * keys + j]}")
                continue
            self.expect(apart == 0, f"cell {i}, {j} has no colour of the scale")
            self.expect(abs(step / 254 - exact[i][j]) <= 1 / 255, f"cell {i}, {j} is {step / 254}, expected {exact[i][j]}")
            if len(self.failures) > 20:
                return

    def check_quiet(self):
        """No message of an error, nothing asked for but the page itself."""
        for event in self.browser.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                self.expect(False, parameters["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            elif method == "Log.entryAdded":
                self.expect(parameters["entry"]["level"] != "error", parameters["entry"]["text"])
            elif method == "Runtime.consoleAPICalled":
                self.expect(parameters["type"] not in ("error", "assert"), f"console.{parameters['type']}")
            elif method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                own = url.startswith("data:") or url.split("#")[0].endswith(pathlib.Path(self.page).name)
                self.expect(own, f"asks for {url[:100]}")

    def check_phase_colours(self, entries):
        """A key's entries: the same phase has the same colour on every page."""
        colours = {"projections": 0, "pack": 1, "scores": 2, "softmax": 3, "output": 5, "context": 6, "matmul": 7}
        shown = self.browser.run(f"[...document.querySelectorAll('{entries}')].map((e) => [e.textContent, e.firstChild.style.background])")
        known = [(name, colour) for name, colour in shown if name in colours]
        self.expect(known, f"{shown} has no phase that is known")
        for name, colour in known:
            self.expect(colour == f"var(--phase{colours[name]})", f"{name} is drawn in {colour}")

    def check_layout(self):
        wide = self.browser.run("document.documentElement.scrollWidth - innerWidth")
        self.expect(wide <= 0, f"the page is {wide} pixels wider than the window")
        contrasts = self.browser.run("""(() => {
            const luminance = (colour) => {
              const [r, g, b] = colour.match(/[\\d.]+/g).map((x) => x / 255).map(
                  (x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
              return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const probe = document.body.appendChild(document.createElement("p"));
            const of = (name) => { probe.style.color = `var(--${name})`; return luminance(getComputedStyle(probe).color); };
            const pairs = [["text", "page"], ["text", "panel"], ["quiet", "page"], ["quiet", "panel"], ["accent", "panel"],
                           ["accent-text", "accent"]];
            const found = pairs.map(([a, b]) => {
              const [x, y] = [of(a), of(b)].sort((p, q) => q - p);
              return [`${a} on ${b}`, (x + 0.05) / (y + 0.05)];
            });
            probe.remove();
            return found;
        })()""")
        for names, contrast in contrasts:
            self.expect(contrast >= 4.5, f"{names} has a contrast of {contrast:.2f}")

    def picture(self, name):
        if not self.pictures:
            return
        self.browser.run("scrollTo(0, 0)")
        size = self.browser.run("[innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        data = self.browser.send("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        pathlib.Path(self.pictures, f"{name}.png").write_bytes(base64.b64decode(data))

    def use(self, width, height, theme):
        self.where = f"{width} pixels, {theme}"
        self.browser.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1 if width > 600 else 2,
                          mobile=False)
        self.browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.open()
        self.expect(self.browser.run("document.documentElement.dataset.theme") == theme, "is not in that theme")
        layers = len(self.expected["layers"])
        heads = len(self.expected["layers"][0]["probabilities"])
        queries = len(self.probabilities())
        keys = len(self.probabilities()[0])
        self.check_cells()
        self.hover(queries // 2, keys // 3)
        self.check_row(queries // 2)
        for _ in range(2):
            self.key("ArrowDown")
        self.check_row(queries // 2 + 2)
        self.key("ArrowRight")
        self.expect(self.state()["head"] == min(1, heads - 1), "the right arrow does not go to head 1")
        self.check_row(queries // 2 + 2)
        self.check_cells()
        self.browser.run(f"document.querySelectorAll('#heads button')[{heads - 1}].click()")
        self.settle()
        self.expect(self.state()["head"] == heads - 1, "a click on the last head does not choose it")
        self.hover(1, 0)
        self.check_row(1)
        self.key("]")
        self.expect(self.state()["layer"] == min(1, layers - 1), "] does not go to the next layer")
        self.check_row(1)
        self.check_cells()
        self.key("Enter")
        self.key("ArrowDown")
        self.expect(self.browser.run("document.querySelectorAll('#row .one-row').length") == 2, "a pinned query is not shown")
        self.key("Escape")
        self.key("l")
        self.expect("scale=log" in self.browser.run("location.hash"), "the scale is not in the address")
        self.check_layout()
        self.picture(f"{pathlib.Path(self.page).stem}-{width}-{theme}-log")
        self.key("l")
        chosen, hash_ = self.state(), self.browser.run("location.hash")
        self.check_quiet()
        self.open(hash_)
        self.expect(self.state() == chosen, f"{hash_} shows {self.state()}, expected {chosen}")
        self.check_row(chosen["row"])
        self.check_roles()
        self.picture(f"{pathlib.Path(self.page).stem}-{width}-{theme}")
        self.check_quiet()

    def check_roles(self):
        """The table of roles against the JSON of the page; sorting; opening a head."""
        state = self.state()
        table = self.browser.run("""[...document.querySelectorAll("#roles-table tbody tr")].map(
            (tr) => [...tr.cells].map((td) => td.textContent))""")
        heads = self.browser.run(f"headway.about.layers[{state['layer']}].heads")
        self.expect(len(table) == len(heads), f"{len(table)} heads in the table, expected {len(heads)}")
        for line in table:
            head = heads[int(line[0])]
            self.expect(abs(float(line[1]) - head["entropy"]) <= 5.1e-4, f"head {line[0]} has entropy {line[1]}")
            self.expect(line[-1] == "".join(head["badges"]), f"head {line[0]} has badges '{line[-1]}'")
        self.browser.run("document.querySelectorAll('#roles-table th button')[1].click()")
        entropies = self.browser.run("""[...document.querySelectorAll("#roles-table tbody tr")].map(
            (tr) => Number(tr.cells[1].textContent))""")
        self.expect(entropies == sorted(entropies, reverse=True), "a click on entropy does not sort by it")
        self.browser.run("document.querySelector('#roles-table tbody tr').click()")
        self.settle()
        most = max(heads, key=lambda head: head["entropy"])["head"]
        self.expect(self.state()["head"] == most, "a click on a line does not open its head")


def main(kind=Test):
    """Uses the page of the command line with a test of that kind, at both widths and in both themes."""
    program = os.environ.get("BROWSER_PROGRAM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not program:
        print(f"no browser: none of {', '.join(BROWSERS)} is installed")
        return NO_BROWSER
    page, expected = sys.argv[1], kind.read_expected(sys.argv[2])
    pictures = sys.argv[3] if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            browser = Browser(program, folder)
        except (RuntimeError, OSError) as error:
            print(f"{program} does not start here: {error}")
            return NO_BROWSER
        try:
            test = kind(browser, page, expected, pictures)
            test.begin()
            for width, height in WIDTHS:
                for theme in ("light", "dark"):
                    test.use(width, height, theme)
        finally:
            browser.close()
    for failure in test.failures[:20]:
        print(failure)
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
