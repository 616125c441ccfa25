#!/usr/bin/env python3
"""profile_page.py PAGE EXPECTED.json [SCREENSHOTS]: opens a page of `headway profile --html` or `run --profile --html` in
a headless browser and compares what it shows with the data in it. EXPECTED has {"nodes": whether there are any}. Exit
codes as browser.py, whose browser this is.
"""
import pathlib
import sys

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
        points = self.browser.run("document.querySelectorAll('#roofline circle').length")
        expected = sum(1 for row in rows if row["flops_executed"] > 0 and row["bytes"] > 0)
        self.expect(points == expected, f"{points} phases stand under the roofs, expected {expected}")

    def check_layers(self, data):
        def layer_of(row):
            sides = [side + " " for side in ("decoder", "encoder") if side in row["name"].lower()]
            return "none" if row.get("layer", -1) < 0 else f"{(sides + [''])[0]}{row['layer']}"

        layers = {layer_of(row) for row in data["rows"] if row["category"] == "node"}
        shown = self.browser.run("[...document.querySelectorAll('#layer-table tr')].slice(1).map((tr) => [...tr.cells].map((td) => td.textContent))")
        self.expect(len(shown) == len(layers), f"{len(shown)} layers in the table, expected {len(layers)}")
        for cells in shown:
            layer = cells[0]
            rows = [row for row in data["rows"] if row["category"] == "node" and layer_of(row) == layer]
            own = sum(row["seconds"] for row in rows if "attention" in row["operator"].lower())
            whole = sum(row["seconds"] for row in rows)
            self.expect(cells[1] == str(len(rows)), f"layer {layer} has {cells[1]} nodes, expected {len(rows)}")
            self.expect(abs(float(cells[3].split()[0]) - 100 * own / whole) <= 0.051, f"attention takes {cells[3]} of layer {layer}")

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
        self.expect(" on worker " in said, f"hovering the longest piece says '{said}'")
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
        self.browser.run("headway.line.search('')")

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
        self.check_layout()
        self.picture(f"profile-{pathlib.Path(self.page).stem}-{width}-{theme}")
        self.check_quiet()


if __name__ == "__main__":
    sys.exit(driver.main(ProfileTest))
