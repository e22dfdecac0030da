"""The pages of `neb report` and `neb unfold`, of small real runs, in a real browser.

NEB names the program (default: target/debug/neb). Where there is no Chromium the tests are skipped.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

import browser

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEB = os.environ.get("NEB", str(ROOT / "target" / "debug" / "neb"))
COLLIDER = ROOT / "tests" / "collider"
CHROMIUM = browser.find()

# A fit in a second; the pictures need no more.
SETTINGS = """
[surrogate]
components = 4
hidden = [16]
epochs = 12
batch = 64

[source]
affine-k = 256
refine-k = 64
judge-k = 256
batch = 64
particles = 500
refine-epochs = 2
flow-layers = 2
flow-hidden = [8]
flow-epochs = 3
flow-batch = 64
"""

# What the page tells about itself: every figure with its size and parts, texts that overlap or leave their figure, and the
# contrast of everything that must be read, against the paper.
INSPECT = """
(() => {
  const luminance = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const value = part / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const paper = getComputedStyle(document.body).backgroundColor;
  const contrast = (colour) => {
    const [a, b] = [luminance(colour), luminance(paper)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const least = (elements, property) =>
    Math.min(...elements.map((element) => contrast(getComputedStyle(element)[property])));
  const all = (selector) => [...document.querySelectorAll(selector)];
  const name = (element) => element.textContent.slice(0, 30);
  const figures = all("figure").map((figure) => {
    const svg = figure.querySelector("svg").getBoundingClientRect();
    const texts = [...figure.querySelectorAll("svg text")];
    const boxes = texts.map((text) => text.getBoundingClientRect());
    const overlaps = [];
    const outside = [];
    boxes.forEach((a, i) => {
      if (a.left < svg.left - 1 || a.right > svg.right + 1 || a.top < svg.top - 1 || a.bottom > svg.bottom + 1)
        outside.push(name(texts[i]));
      boxes.slice(0, i).forEach((b, j) => {
        const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (x > 1 && y > 3) overlaps.push(`${name(texts[i])} | ${name(texts[j])}`);
      });
    });
    const drawn = [...figure.querySelectorAll("svg path")].filter((path) => {
      const box = path.getBBox();
      return box.width + box.height > 5;
    });
    return {
      name: figure.id, width: svg.width, height: svg.height, drawn: drawn.length, texts: texts.length,
      overlaps, outside, caption: figure.querySelector("figcaption").textContent.length,
    };
  });
  return {
    figures,
    paper: luminance(paper),
    text: least(all("h1, h2, h3, p, li, figcaption, td, th, pre"), "color"),
    labels: least(all("svg text"), "fill"),
    axes: least(all(".nb-axis"), "stroke"),
    lines: least(all(".nb-line"), "stroke"),
    ids: all("[id]").length - new Set(all("[id]").map((element) => element.id)).size,
    overflow: document.documentElement.scrollWidth - window.innerWidth,
    width: window.innerWidth,
    headline: document.querySelector(".headline").textContent,
  };
})()
"""


class Page:
    """What every report must be; the commands that make it, and its figures, are those of a subclass."""

    commands = ()
    figures = ()

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        place = pathlib.Path(folder.name)
        (place / "small.toml").write_text(SETTINGS)
        for command in cls.commands:
            subprocess.run([NEB, *command.split(), "--quiet"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        cls.run_folder = place / "run"
        cls.browser = browser.Browser(CHROMIUM)
        cls.addClassCleanup(cls.browser.close)
        cls.browser.show(1000)
        cls.browser.open((cls.run_folder / "report.html").as_uri())

    def inspect(self, width, **how):
        self.browser.show(width, **how)
        return self.browser.evaluate(INSPECT)

    def test_every_figure_is_there_and_visible(self):
        page = self.inspect(1000)
        self.assertEqual([figure["name"] for figure in page["figures"]], list(self.figures))
        for figure in page["figures"]:
            with self.subTest(figure["name"]):
                self.assertGreater(figure["width"], 300)
                self.assertGreater(figure["height"], 150)
                self.assertGreater(figure["drawn"], 3)
                self.assertGreater(figure["caption"], 80)
                self.assertEqual(figure["overlaps"], [])
                self.assertEqual(figure["outside"], [])
                for kind in ("svg", "png"):
                    file = self.run_folder / "figures" / f"{figure['name']}.{kind}"
                    self.assertGreater(file.stat().st_size, 1000)
        self.assertEqual(page["ids"], 0, "ids that are there twice")
        self.assertTrue(page["headline"])

    def test_the_console_is_silent_and_nothing_is_fetched(self):
        self.inspect(1000)
        self.assertEqual(self.browser.complaints(), [])

    def test_light_and_dark_can_be_read(self):
        for dark in (False, True):
            with self.subTest(dark=dark):
                page = self.inspect(1000, dark=dark)
                self.assertEqual(page["paper"] < 0.1, dark)
                self.assertGreaterEqual(page["text"], 4.5)
                self.assertGreaterEqual(page["labels"], 4.5)
                self.assertGreaterEqual(page["axes"], 3.0)
                self.assertGreaterEqual(page["lines"], 3.0)

    def test_paper_is_white_even_for_who_prefers_dark(self):
        page = self.inspect(1000, dark=True, media="print")
        self.assertGreater(page["paper"], 0.9)
        self.assertGreaterEqual(page["text"], 4.5)
        self.assertGreater(len(self.browser.call("Page.printToPDF")["data"]), 10_000)

    def test_nothing_overflows_on_a_narrow_screen(self):
        for width in (400, 320):
            with self.subTest(width=width):
                page = self.inspect(width)
                self.assertEqual(page["width"], width)
                self.assertLessEqual(page["overflow"], 0)


@unittest.skipUnless(CHROMIUM, "there is no Chromium here (Debian: apt-get install chromium)")
class ReportInABrowser(Page, unittest.TestCase):
    commands = (
        "simulate two-moons -n 1500 --from proposal -o pairs.npz",
        "simulate two-moons -n 1000 --seed 2 -o truth.npz",
        "fit --pairs pairs.npz --observations truth.npz --config small.toml -o run",
        "report run --truth truth.npz",
    )
    figures = (
        "push-forward",
        "source",
        "posterior",
        "training-surrogate",
        "training-source",
        "effective-samples",
    )


@unittest.skipUnless(CHROMIUM, "there is no Chromium here (Debian: apt-get install chromium)")
class UnfoldingInABrowser(Page, unittest.TestCase):
    commands = (
        f"unfold --pairs {COLLIDER}/simulation.npz --x gen --y sim --observations {COLLIDER}/nature.npz --observed-y sim"
        f" --truth {COLLIDER}/nature.npz --truth-x gen --joint m=6:0:60,zg=5:0:0.5 --replicas 4 --epochs 4 --components 1 --iterations 2"
        " --smooth-epochs 1 --draws 3000 -o run",
    )
    figures = ("spectra", "joint-7", "correlations", "folded", "trust", "source")


if __name__ == "__main__":
    unittest.main()
