#!/usr/bin/env python3
"""profile_page.py PAGE EXPECTED.json [SCREENSHOTS]: opens a page of `headway profile --html` or `run --profile --html` in
a headless browser and compares what it shows with the data in it. EXPECTED has {"nodes": whether there are any}. Exit
codes as browser.py, whose browser this is.
"""
import collections
import pathlib
import sys
import xml.etree.ElementTree

import browser as driver


class ProfileTest(driver.Test):
    def check_table(self, data):
        rows = [row for row in data["rows"] if row["category"] != "node"]
        shown = self.browser.run("[...document.querySelectorAll('#numbers tr')].slice(1).map((tr) => [...tr.cells].map((td) => td.textContent))")
        self.expect(len(shown) == len(rows) and all(row["name"] in cells[0] for cells, row in zip(shown, rows)),
                    f"the table has {[cells[0] for cells in shown]}")
        self.expect(len({cells[0] for cells in shown}) == len(shown), "two rows of the table have one name")
        whole = sum(row["seconds"] for row in rows)
        for cells, row in zip(shown, rows):
            self.expect(cells[2] == f"{row['seconds'] * 1e3:.4f}", f"{row['name']} takes {cells[2]} ms, expected {row['seconds'] * 1e3:.4f}")
            self.expect(abs(float(cells[3].split()[0]) - 100 * row["seconds"] / whole) <= 0.051, f"{row['name']} has a share of {cells[3]}")
            peak = 100 * row["flops_executed"] * data["workers"] / row["seconds"] / data["peak_flops"]
            self.expect(abs(float(cells[8]) - peak) <= 0.051, f"{row['name']} is at {cells[8]} % of the peak, expected {peak:.1f}")
        self.check_phase_colours("#key > span")
        points = self.browser.run("document.querySelectorAll('#roofline circle').length")
        expected = sum(1 for row in rows if row["flops_executed"] > 0 and row["bytes"] > 0)
        self.expect(points == expected, f"{points} phases stand under the roofs, expected {expected}")

    def check_layers(self, data):
        def layer_of(row):
            sides = [side + " " for side in ("decoder", "encoder") if side in row["name"].lower()]
            return "none" if row.get("layer", -1) < 0 else f"{(sides + [''])[0]}{row['layer']}"

        layers = {layer_of(row) for row in data["rows"] if row["category"] == "node"}
        shown = self.browser.run("[...document.querySelectorAll('#layer-table tr')].slice(1).map((tr) => [...tr.cells].map((td) => td.textContent))")
        names = self.browser.run("[...document.querySelectorAll('#layer-table th')].map((th) => th.textContent)")
        self.expect(len(shown) == len(layers), f"{len(shown)} layers in the table, expected {len(layers)}")
        for cells in shown:
            layer = cells[0]
            rows = [row for row in data["rows"] if row["category"] == "node" and layer_of(row) == layer]
            own = sum(row["seconds"] for row in rows if "attention" in row["operator"].lower())
            whole = sum(row["seconds"] for row in rows)
            self.expect(cells[1] == str(len(rows)), f"layer {layer} has {cells[1]} nodes, expected {len(rows)}")
            self.expect(abs(float(cells[3].split()[0]) - 100 * own / whole) <= 0.051, f"attention takes {cells[3]} of layer {layer}")
            parts = dict(zip(names[5:], map(float, cells[5:])))
            self.expect(abs(sum(parts.values()) - 1e3 * whole) <= 5.1e-5 * len(parts) + 1e-9,
                        f"the parts of layer {layer} add up to {sum(parts.values())} ms, expected {1e3 * whole}")
            for name, shown_ms in parts.items():
                expected = 1e3 * sum(row["seconds"] * self.shares(data, row)[name] for row in rows)
                self.expect(abs(shown_ms - expected) <= 5.1e-5, f"{name} takes {shown_ms} of layer {layer}, expected {expected}")

    @staticmethod
    def shares(data, row):
        """What the time of a node went to in the traced run, by the names of the table's columns."""
        zones, events = data["zones"], data["events"]
        nodes = [e for e in events if zones[e[0]]["category"] == "node" and zones[e[0]]["name"] == row["name"]]
        whole, parts = sum(e[3] for e in nodes), collections.Counter()
        for zone, _, begin, length in events:
            middle = begin + length / 2
            if zones[zone]["category"] != "node" and any(e[2] <= middle <= e[2] + e[3] for e in nodes):
                parts[zones[zone]["name"].replace("packed matmul", "matmul")] += length / data["workers"]
        if not parts:
            kinds = {"attention": "attention", "matmul": "matmul", "gemm": "matmul", "linear": "matmul", "norm": "norms"}
            kind = next((kind for word, kind in kinds.items() if word in row["operator"].lower()), "other")
            return collections.Counter({kind: 1.0})
        whole = max(whole, sum(parts.values()))
        shares = collections.Counter({name: length / whole for name, length in parts.items()})
        shares["waiting"] = 1 - sum(shares.values())
        return shares

    def check_line(self, data):
        """Hovering a piece says which it is; zooming and moving keep the pointer's event under it."""
        at = max(range(len(data["events"])), key=lambda i: data["events"][i][3])
        zone, worker, begin, length = data["events"][at]
        point = self.browser.run(f"""(() => {{
            headway.line.canvas.scrollIntoView({{block: "center"}});
            const event = headway.line.events.find((e) => e.begin === {begin} && e.worker === {worker} && e.zone === {zone});
            const box = headway.line.box(event), canvas = headway.line.canvas.getBoundingClientRect();
            return [canvas.left + box.x + box.width / 2, canvas.top + box.y + 3];
        }})()""")
        self.browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=point[0], y=point[1])
        self.settle()
        said = self.browser.run("document.getElementById('live').textContent")
        self.expect(said.startswith(data["zones"][zone]["name"]) and f" on worker {worker}:" in said, f"hovering the longest piece says '{said}'")
        self.key("+")
        span = self.browser.run("headway.line.view.end - headway.line.view.begin")
        self.expect(abs(span - self.browser.run("headway.line.end") / 2) < 1e-6, "+ does not show half of the run")
        self.key("ArrowRight")
        self.key("0")
        self.expect(self.browser.run("headway.line.view.end") == self.browser.run("headway.line.end"), "0 does not show all of the run")
        name = data["zones"][zone]["name"]
        count = self.browser.run(f"headway.line.search('{name}')")
        expected = sum(1 for event in data["events"] if name.lower() in data["zones"][event[0]]["name"].lower())
        self.expect(count == expected, f"{count} pieces are found for {name}, expected {expected}")
        self.browser.run("headway.line.next()")
        inside = self.browser.run("headway.line.events.some((e) => headway.line.matches(e) && e.begin >= headway.line.view.begin && e.begin <= headway.line.view.end)")
        self.expect(inside, f"going to the next {name} shows none")
        self.browser.run("headway.line.search(''), headway.line.whole()")

    def check_saved(self):
        """The roofline as a file of its own has its colours in it."""
        text = self.browser.run("headway.saved()")
        picture = xml.etree.ElementTree.fromstring(text)
        dots = picture.findall("{http://www.w3.org/2000/svg}circle")
        self.expect(all("rgb" in dot.get("fill") for dot in dots), "a saved point has no colour of its own")

    def use(self, width, height, theme):
        self.where = f"{width} pixels, {theme}"
        self.browser.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.open()
        self.expect(self.browser.run("document.documentElement.dataset.theme") == theme, "is not in that theme")
        data = self.browser.run("headway.data")
        self.expect(any(row["category"] == "node" for row in data["rows"]) == self.expected["nodes"], "nodes are not as expected")
        self.check_table(data)
        self.check_layers(data)
        self.check_line(data)
        self.check_saved()
        self.check_layout()
        self.picture(f"profile-{pathlib.Path(self.page).stem}-{width}-{theme}")
        self.check_quiet()


if __name__ == "__main__":
    sys.exit(driver.main(ProfileTest))
