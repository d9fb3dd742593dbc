"""The page of `perfmodel report` in a real browser, at the width of a desk and of a telephone."""

import os
from itertools import pairwise

import pytest

import browser

HEADS = "machine,model,sequence_length,tp,fsdp,dp,batch_sequences,micro_batch,recompute,step_time_s"
ROWS = ("perlmutter,gpt-5b,2048,1,8,2,64,4,full,3.5", "perlmutter,gpt-5b,2048,2,8,1,64,4,full,4.5")
WIDTHS = (1280, 390)

# What a reader would see: charts with their size and the boxes of what is drawn in them, in pixels of the window.
CHARTS = """[...document.querySelectorAll("svg.chart")].map((chart) => {
  const box = (one) => { const r = one.getBoundingClientRect(); return [r.left, r.right, r.width, r.height]; };
  const drawn = [...chart.querySelectorAll("rect, circle, line.curve, line.interval")];
  return { box: box(chart), drawn: drawn.map(box), section: chart.closest("section").id,
           texts: [...chart.querySelectorAll("text")].filter((one) => getComputedStyle(one).display !== "none")
             .map((one) => ({ box: box(one), size: parseFloat(getComputedStyle(one).fontSize), y: one.getAttribute("y"),
                              text: one.textContent })) };
})"""
COLUMN = """(name) => {
  const table = document.querySelector("#answer table.sortable");
  const place = [...table.tHead.rows[0].cells].findIndex((head) => head.textContent.startsWith(name));
  return { sort: table.tHead.rows[0].cells[place].getAttribute("aria-sort"),
           cells: [...table.tBodies[0].rows].map((row) => row.cells[place].textContent) };
}"""
PRESS = """(name) => [...document.querySelectorAll("#answer table.sortable th button")]
  .find((button) => button.textContent.startsWith(name)).click()"""
# The ratio of luminances of every text with what is behind it (WCAG 2.1, 1.4.3).
TEXTS = "h1, h2, h3, p, th, td, dt, dd, li, a, code, caption, figcaption, .chart text"
CONTRAST = """[...document.querySelectorAll("TEXTS")].map((one) => {
  const luminance = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const style = getComputedStyle(one);
  let behind = one;
  while (behind && /rgba\\(0, 0, 0, 0\\)/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
  const [a, b] = [luminance(one.closest("svg") ? style.fill : style.color),
                  luminance(behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)")].sort();
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
})""".replace("TEXTS", TEXTS)


@pytest.fixture(scope="module")
def path(run, tmp_path_factory):
    """A report with everything in it."""
    folder = tmp_path_factory.mktemp("report")
    measured = folder / "runs.csv"
    measured.write_text("\n".join((HEADS, *ROWS)), encoding="utf-8")
    asked = ("--model", "gpt-5b", "--machine", "perlmutter", "--gpus", 16, "--batch", 64, "--uncertainty")
    answer = run("report", *asked, "--tokens", "300B", "--measured", measured, "--out", folder / "report.html")
    assert (answer.code, answer.err) == (0, "")
    return folder / "report.html"


@pytest.fixture(scope="module")
def page():
    """A browser; in CI there has to be one."""
    if browser.program() is None:
        if os.environ.get("CI"):
            pytest.fail(f"CI needs one of {', '.join(browser.NAMES)}, to see what a report looks like")
        pytest.skip(f"none of {', '.join(browser.NAMES)} is installed")
    with browser.chromium() as opened:
        yield opened


@pytest.fixture(params=WIDTHS)
def shown(request, page, path):
    """The report in a window of that width."""
    page.open(path, request.param)
    return page


def test_the_browser_has_nothing_to_complain_of_and_asks_for_nothing(shown, path):
    assert shown.complaints() == []
    assert [address for address in shown.requested() if not address.startswith("data:")] == [path.as_uri()]
    assert "gpt-5b on perlmutter" in shown.run("document.title")


def test_a_complaint_of_the_browser_is_heard(page, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text('<meta charset="utf-8"><img src="none.png"><script>console.log("said"); undefined.x</script>')
    page.open(bad, WIDTHS[0])
    assert len(page.complaints()) >= 3  # a file that is not there, what was said, what was thrown
    assert len(page.requested()) == 2


def test_all_charts_are_there_and_inside_the_window(shown):
    width = shown.run("innerWidth")
    charts = shown.run(CHARTS)
    assert [chart["section"] for chart in charts] == ["time", "memory", "sure", "scaling", "scaling", "measured"]
    for chart in charts:
        left, right, wide, high = chart["box"]
        assert 0 <= left < right <= width
        assert wide > 0.4 * min(width, 900)
        assert high > 60
        assert len(chart["drawn"]) >= 2
        for begin, end, *_ in chart["drawn"]:
            assert left - 6 <= begin <= end <= right + 6  # a dot at an end has half its size beyond it


def test_the_page_is_no_wider_than_the_window(shown):
    assert shown.run("document.documentElement.scrollWidth") <= shown.run("innerWidth")


def test_wide_tables_scroll_in_their_box(shown):
    boxes = "[...document.querySelectorAll('.scroll')].map((box) => [box.scrollWidth, box.clientWidth, box.tabIndex])"
    found = shown.run(boxes)
    assert any(inside > box for inside, box, _ in found)
    assert all(tab == 0 for *_, tab in found)  # reached by the keyboard, too


def test_texts_of_charts_can_be_read_and_do_not_lie_on_one_another(shown):
    for chart in shown.run(CHARTS):
        lines = {}
        for text in chart["texts"]:
            assert text["size"] >= 12
            assert -1 <= text["box"][0] <= text["box"][1] <= shown.run("innerWidth") + 1, text
            lines.setdefault(text["y"], []).append(text["box"][:2])
        for line in lines.values():
            ordered = sorted(line)
            assert all(one[1] <= other[0] for one, other in pairwise(ordered)), chart["section"]


def test_text_stands_out_from_what_is_behind_it(shown):
    assert min(shown.run(CONTRAST)) >= 4.5


@pytest.mark.parametrize("name", ["step", "grid", "memory"])
def test_a_heading_sorts_up_and_then_down(shown, name):
    unsorted = shown.run(f"({COLUMN})('{name}')")
    shown.run(f"({PRESS})('{name}')")
    up = shown.run(f"({COLUMN})('{name}')")
    shown.run(f"({PRESS})('{name}')")
    down = shown.run(f"({COLUMN})('{name}')")
    assert [one["sort"] for one in (unsorted, up, down)] == [None, "ascending", "descending"]
    assert sorted(up["cells"]) == sorted(unsorted["cells"])
    assert up["cells"] == down["cells"][::-1]
    assert up["cells"] == sorted(unsorted["cells"], key=_size)


def _size(text):
    """What a cell is sorted by: seconds, GiB, or the numbers of a grid one by one."""
    number, _, unit = text.partition(" ")
    return float(number) * {"ms": 0.001}.get(unit, 1) if unit else [int(size) for size in text.split("x")]


def test_the_keyboard_sorts_too(page, path):
    page.open(path, WIDTHS[0])
    page.run("document.querySelector('#answer th button').focus()")
    for kind in ("keyDown", "keyUp"):
        page.ask("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
    assert page.run(f"({COLUMN})('#')")["sort"] == "ascending"


def test_on_paper_nothing_is_hidden_in_a_box_that_scrolls(page, path):
    page.open(path, WIDTHS[0])
    page.ask("Emulation.setEmulatedMedia", media="print")
    clipped = "[...document.querySelectorAll('.tall')].filter((box) => box.scrollHeight > box.clientHeight + 2).length"
    assert page.run(clipped) == 0
    page.ask("Emulation.setEmulatedMedia", media="")
