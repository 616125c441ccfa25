#!/usr/bin/env python3
"""live_page.py PAGE FOLDER [SCREENSHOTS]: opens the live page in a headless browser and uses it; writes the layers that
it computed into FOLDER, with layers.json saying which. Exit codes as view/browser.py, whose browser this is.
"""
import base64
import json
import pathlib
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "view"))
import browser as driver  # noqa: E402
import layers  # noqa: E402

# As the hash of the address has them; between them h, widths that are no multiple of a vector's, causality, both weights.
LAYERS = ["E=256&S=13&h=8", "E=256&S=13&h=64&causal=1", "E=16&S=1&h=1", "E=192&S=64&h=3&causal=1", "E=384&S=31&h=16&seed=7",
          "weights=trained&sentence=2&h=12", "weights=trained&sentence=1&h=64"]
ARRAYS = ["x", "inWeight", "inBias", "outWeight", "outBias", "out", "probabilities"]


class LiveTest(driver.Test):
    @staticmethod
    def read_expected(path):
        return path  # the folder to write layers to

    def begin(self):
        self.write_layers(self.expected)

    def probabilities(self, head, row):
        return self.browser.run(f"""(() => {{
            const {{S}} = headway.state, begin = ({head} * S + {row}) * S;
            return Array.from(headway.now.layer.view("probabilities").slice(begin, begin + S));
        }})()""")

    def json(self):
        return json.loads(self.browser.run("document.getElementById('headway-live').textContent"))

    def state(self):
        return self.browser.run("({...headway.state})")

    def check_row(self, row):
        state = self.state()
        self.expect(state["row"] == row, f"row {state['row']} is chosen, expected {row}")
        exact = self.probabilities(state["head"], row)
        shown = self.browser.run("""[...document.querySelectorAll("#row .largest tr")].map(
            (tr) => [Number(tr.dataset.key), Number(tr.querySelector(".p").textContent)])""")
        self.expect(len(shown) == min(5, len(exact)), f"{len(shown)} keys are listed of {len(exact)}")
        for (key, p), largest in zip(shown, sorted(exact, reverse=True)):
            self.expect(abs(p - exact[key]) <= 1e-6 and abs(p - largest) <= 1e-6, f"row {row} key {key} shows {p}, is {exact[key]}")
        self.expect(abs(sum(exact) - 1) < 1e-5, f"row {row} adds up to {sum(exact)}")
        self.expect(self.json()["row"] == exact, f"row {row} of the page's JSON is not the layer's")
        framed = self.browser.run("""[...document.querySelectorAll(".strips")].map((box) => [...box.children].findIndex(
            (strip) => strip.hasAttribute("data-chosen")))""")
        self.expect(framed.count(state["head"]) == 4, f"strips {framed} are framed, expected {state['head']} in q, k, v and concat")
        live = self.browser.run("document.getElementById('live').textContent")
        self.expect(f"ead {state['head']}, query {row} " in live, f"is read as '{live}'")

    def give(self, name, value):
        self.browser.run(f"""(() => {{
            const input = document.getElementById("{name}");
            input.value = {json.dumps(value)};
            input.dispatchEvent(new Event("input"));
        }})()""")
        self.settle()

    def touch(self, begin, end):
        """From one cell (query, key) of the map to another."""
        self.browser.run("document.getElementById('map').scrollIntoView({block: 'start'})")
        points = [self.browser.run(f"""(() => {{
            const box = headway.map.canvas.getBoundingClientRect(), g = headway.map.geometry();
            return [box.left + g.left + {key + 0.5} * g.cellWidth, box.top + g.top + {query + 0.5} * g.cellHeight];
        }})()""") for query, key in (begin, end)]
        self.browser.send("Emulation.setTouchEmulationEnabled", enabled=True)
        self.browser.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[dict(zip("xy", points[0]))])
        if begin != end:
            self.browser.send("Input.dispatchTouchEvent", type="touchMove", touchPoints=[dict(zip("xy", points[1]))])
        self.browser.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()
        self.browser.send("Emulation.setTouchEmulationEnabled", enabled=False)

    def check_quiet(self):
        own = [e for e in self.browser.events if e.get("method") == "Network.requestWillBeSent" and
               e["params"]["request"]["url"].startswith("blob:")]  # the worker's source, which is this page's
        self.browser.events = [e for e in self.browser.events if e not in own]
        super().check_quiet()

    def check_costs(self):
        """Parameters and flops as they are for E and S, whatever h is; exps that follow it; blocks cut in h."""
        state, costs = self.state(), self.json()["costs"]
        E, S, h = state["E"], state["S"], state["h"]
        expected = {"parameters": 4 * E * E + 4 * E, "projection_flops": 8 * S * E * E, "attention_flops": 4 * S * S * E,
                    "exps": h * S * S}
        self.expect(costs == expected, f"costs are {costs}, expected {expected}")
        shown = self.browser.run("""Object.fromEntries([...document.querySelectorAll("#costs [data-cost]")].map(
            (tr) => [tr.dataset.cost, Number(tr.cells[1].textContent.replace(/\\D/g, ""))]))""")
        self.expect(shown == expected, f"the table shows {shown}, expected {expected}")
        strips = self.browser.run("[...document.querySelectorAll('.strips')].map((box) => [box.dataset.block, box.children.length])")
        cut = {"q", "k", "v", "concat"}
        self.expect(all(n == (h if name in cut else 0) for name, n in strips) and len(strips) == 6, f"blocks are cut into {strips}")
        captions = self.browser.run("[...document.querySelectorAll('#flow figcaption')].map((c) => c.textContent)")
        self.expect(all(f"[{S} × {E}]" in caption for caption in captions), f"blocks are {captions}, expected {S} × {E}")
        self.expect(self.browser.run("document.querySelectorAll('#maps button').length") == h, "there is not a map for each head")
        self.expect(self.browser.run("document.getElementById('D-shown').textContent") == str(E // h), "D is not E / h")

    def use(self, width, height, theme):
        self.where = f"{width} pixels, {theme}"
        self.browser.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1 if width > 600 else 2,
                          mobile=False)
        self.browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        seconds = self.open()
        print(f"{self.where}: opened in {seconds:.2f} s, {pathlib.Path(self.page).stat().st_size / 1e6:.1f} MB")
        self.expect(self.browser.run("document.documentElement.dataset.theme") == theme, "is not in that theme")
        self.check_costs()
        self.hover(4, 2)
        self.check_row(4)
        self.key("ArrowDown")
        self.check_row(5)
        self.key("ArrowRight")
        self.expect(self.state()["head"] == 1, "the right arrow does not go to head 1")
        self.check_row(5)
        self.browser.run("document.querySelectorAll('#maps button')[7].click()")
        self.settle()
        self.expect(self.state()["head"] == 7, "a click on the last head does not choose it")
        self.check_row(5)
        if width < 600:
            self.touch((2, 3), (2, 3))
            self.check_row(2)
            self.touch((2, 3), (2, 11))
            self.expect(self.state()["head"] == 6, f"a swipe to the right goes to head {self.state()['head']}, expected 6")
            self.check_row(2)
        before = self.json()["costs"]
        self.key("]")
        self.expect(self.state()["h"] == 16, "] does not go to 16 heads")
        self.check_costs()
        after = self.json()["costs"]
        self.expect([after[n] == before[n] for n in before] == [True, True, True, False], f"costs went from {before} to {after}")
        self.give("E", 2)
        self.give("S", 20)
        self.give("h", 0)
        self.expect([self.state()[n] for n in ("E", "S", "h")] == [64, 20, 1], f"sliders give {self.state()}")
        self.check_costs()
        self.give("text", "a b, a <b>")
        self.expect(self.json()["tokens"] == ["a", "b", ",", "a", "<", "b", ">"], f"tokens are {self.json()['tokens']}")
        self.key("c")
        self.key("ArrowDown")
        self.key("l")
        self.check_layout()
        chosen, hash_ = self.state(), self.browser.run("location.hash")
        self.check_quiet()
        self.open(hash_)
        self.expect(self.state() == chosen, f"{hash_} shows {self.state()}, expected {chosen}")
        self.open("#E=7&h=5")
        complaint = self.browser.run("document.getElementById('complaint').textContent")
        self.expect("E is '7'" in complaint and "h is '5'" in complaint, f"of a wrong address it says '{complaint}'")
        self.check_quiet()
        self.open("#weights=trained&sentence=1&row=2&head=2" if theme == "dark" else "#row=4")
        self.check_costs()
        self.check_layout()
        self.check_errors(torch=theme == "dark")
        if width > 600 and theme == "light":
            self.measure()
        self.picture(f"live-{width}-{theme}")
        self.check_quiet()

    def check_errors(self, torch):
        """What the page says of its own errors, once it has taken its time."""
        errors = self.browser.run("""(async () => {
            for (let n = 0; n < 200 && !headway.now.errors; ++n) await new Promise((resolve) => setTimeout(resolve, 50));
            return headway.now.errors;
        })()""")
        self.expect(errors is not None and 0 < errors["plain"] <= 1e-5, f"errors are {errors}")
        self.expect((errors["torch"] is not None) == torch and (not torch or 0 < errors["torch"] <= 1e-5), f"errors are {errors}")
        words = self.browser.run("document.getElementById('errors').textContent")
        self.expect("plain JavaScript" in words and ("torch" in words) == torch, f"of its errors it says '{words}'")

    def measure(self):
        """The sweep and the comparison, small: they end and hold numbers that can be. How fast is not for a test to say."""
        self.browser.run("document.getElementById('bench-E').value = 64; document.getElementById('bench-S').value = 64")
        self.browser.run("headway.machine.sweep()")
        self.browser.run("headway.machine.compare()")
        results = self.json()
        rows = results["sweep"]["rows"]
        self.expect([row["h"] for row in rows] == [1, 2, 4, 8, 16, 32, 64], f"the sweep has {rows}")
        self.expect(results["sweep"]["target"] == "WASM", f"the sweep's target is {results['sweep']['target']}")
        for row in rows:
            self.expect(row["exps"] == row["h"] * 4096 and row["flops"] == 8 * 64 ** 3 + 4 * 64 ** 3, f"{row} has other work")
            self.expect(0 < row["total"]["min"] <= row["total"]["median"] <= row["total"]["max"], f"{row} has no such times")
        self.expect(self.browser.run("document.querySelectorAll('#chart rect.attend').length") == 7, "the chart has not 7 bars")
        saved = self.browser.run("""(async () => {
            const make = URL.createObjectURL;
            let blob;
            URL.createObjectURL = (given) => { blob = given; return "data:,"; };
            [...document.querySelectorAll("#sweep-table button")].find((button) => button.textContent === "SVG").click();
            URL.createObjectURL = make;
            return blob.text();
        })()""")
        bars = [part.get("fill") for part in xml.etree.ElementTree.fromstring(saved).iter() if part.tag.endswith("}rect")]
        self.expect(len(bars) == 1 + 3 * 7 and len(set(bars)) == 4, f"the saved chart has bars of {bars}")
        self.expect("Matrix work is the same" in self.browser.run("document.getElementById('verdict').textContent"), "no verdict")
        ways = {row["way"]: row for row in results["compare"]["rows"]}
        self.expect(set(ways) == {"simd", "scalar", "plain"}, f"{set(ways)} were compared")
        for row in ways.values():
            self.expect(row["apart"] <= 1e-5, f"{row['name']} is {row['apart']} from plain JavaScript")
        self.browser.run("headway.machine.sweep(); document.getElementById('stop').click()")
        self.expect(not self.browser.run("document.getElementById('sweep').disabled"), "a stopped sweep goes on")

    def write_layers(self, folder):
        self.where = "layers"
        written = []
        for number, hash_ in enumerate(LAYERS):
            self.open(f"#{hash_}")
            complaint = self.browser.run("document.getElementById('complaint').textContent")
            self.expect(complaint == "", f"#{hash_}: {complaint}")
            encoded = self.browser.run(f"""Object.fromEntries({json.dumps(ARRAYS)}.map((name) => {{
                const {{buffer, byteOffset, byteLength}} = headway.now.layer.view(name);
                const bytes = new Uint8Array(buffer, byteOffset, byteLength);
                let text = "";
                for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
                return [name, btoa(text)];
            }}))""")
            state = self.state()
            arrays = {name: base64.b64decode(text) for name, text in encoded.items()}
            layers.save_layer(folder, f"layer-{number}", state["E"], state["S"], state["h"], arrays)
            written.append({"name": f"layer-{number}", "hash": hash_, "heads": state["h"], "causal": state["causal"]})
        pathlib.Path(folder, "layers.json").write_text(json.dumps(written))


if __name__ == "__main__":
    sys.exit(driver.main(LiveTest))
