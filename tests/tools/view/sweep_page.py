#!/usr/bin/env python3
"""sweep_page.py PAGE SWEEP.json [SCREENSHOTS]: opens a page of `headway sweep --html` in a headless browser and compares
what it shows with the sweep that was saved. Exit codes as browser.py, whose browser this is.
"""
import sys

import browser as driver


class SweepTest(driver.Test):
    def check_row(self, row):
        """The chosen head count: what is read aloud, its row of the table, and its bar."""
        said = self.browser.run("document.getElementById('live').textContent")
        time = f"{row['seconds_median'] * 1e3:.3f} ms"
        self.expect(said.startswith(f"h = {row['heads']}, D = {row['head_dim']}: {time} "), f"h = {row['heads']} is read as '{said}'")
        self.expect(f"{row['peak_percent']:.1f} % of the peak" in said, f"no share of the peak in '{said}'")
        cells = self.browser.run("[...document.querySelectorAll('#numbers tr[aria-current] td')].map((cell) => cell.textContent)")
        self.expect(cells[:2] == [str(row["heads"]), str(row["head_dim"])], f"{cells[:2]} is marked in the table")
        exps = "".join(cells[4].split("\u202f"))
        self.expect(exps == str(row["exps"]), f"the table has {exps} exps, expected {row['exps']}")
        self.expect(cells[6] == f"{min(row['round_seconds']) * 1e3:.3f}", f"the fastest round is {cells[6]}")
        # A bar's parts add up to the median, on the axis' own scale.
        bar, axis = self.browser.run(f"""(() => {{
            const bars = [...document.querySelectorAll("#chart rect")].filter(
                (bar) => bar.textContent.startsWith("h = {row['heads']},"));
            const ticks = [...document.querySelectorAll("#chart line.grid")].map((line) => Number(line.getAttribute("y1")));
            const labels = [...document.querySelectorAll("#chart line.grid + text")].map((text) => Number(text.textContent));
            const pixels = (ticks[0] - ticks.at(-1)) / (labels.at(-1) - labels[0]);
            return [bars.reduce((sum, bar) => sum + Number(bar.getAttribute("height")), 0), pixels];
        }})()""")
        self.expect(abs(bar / axis - row["seconds_median"] * 1e3) < 1e-3 * row["seconds_median"] * 1e3,
                    f"the bar of h = {row['heads']} is {bar / axis} ms high")

    def use(self, width, height, theme):
        self.where = f"{width} pixels, {theme}"
        self.browser.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.open("#of=0")
        self.expect(self.browser.run("document.documentElement.dataset.theme") == theme, "is not in that theme")
        shown = self.browser.run("JSON.parse(document.getElementById('headway-data').textContent).sweeps.length")
        for row in sorted(self.expected["rows"], key=lambda row: row["heads"]):
            self.key("ArrowRight")
            self.check_row(row)
        spot = self.browser.run("document.querySelector('#chart .sweet') !== null")
        self.expect(spot, "no sweet spot is drawn")
        self.check_phase_colours("#key > span")
        self.check_layout()
        self.picture(f"sweep-{width}-{theme}")
        self.open("#of=all")
        lines = self.browser.run("document.querySelectorAll('#chart path.line').length")
        self.expect(lines == shown, f"{lines} lines are drawn for {shown} sweeps")
        self.expect(self.browser.run("document.querySelectorAll('#ratio-chart path.line').length") == shown, "not all ratios are drawn")
        self.check_layout()
        self.picture(f"sweeps-{width}-{theme}")
        self.check_quiet()


if __name__ == "__main__":
    sys.exit(driver.main(SweepTest))
