"""`perfmodel report`: one page that holds everything, whatever the names in it look like."""

import json
import re
from html.parser import HTMLParser

import pytest
import yaml

HEADS = "machine,model,sequence_length,tp,fsdp,dp,batch_sequences,micro_batch,recompute,step_time_s,group,source"
ROW = "perlmutter,gpt-5b,2048,1,8,2,64,4,full,3.5"
HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"
ASKED = ("--model", "gpt-5b", "--machine", "perlmutter", "--gpus", 16, "--batch", 64, "--top", 4)
_VOID = {"meta", "link"}


class Page(HTMLParser):
    """Elements with their attributes, the text outside of style and script, and whether all that opens is closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.problems, self._open = [], "", [], []
        self.feed(text)
        self.close()
        self.problems += self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"/{tag}")

    def handle_data(self, data):
        if not {"style", "script"} & set(self._open):
            self.text += data

    def tags(self, tag):
        return [attributes for found, attributes in self.elements if found == tag]


@pytest.fixture
def report(run, tmp_path):
    """Write a report; the page, read."""

    def ask(*asked):
        path = tmp_path / "report.html"
        answer = run("report", *(asked or ASKED), "--out", path)
        assert (answer.code, answer.err) == (0, "")
        assert answer.out.startswith(f"wrote {path}: the fastest grid is ")
        return Page(path.read_text(encoding="utf-8"))

    return ask


def sections(page):
    return [attributes["id"] for attributes in page.tags("section")]


def test_the_page_holds_the_answer_its_charts_and_what_it_rests_on(report, recommend):
    page = report()
    best = recommend(top=4)["results"][0]
    assert page.problems == []
    assert sections(page) == ["answer", "time", "memory", "scaling", "machine", "settings"]
    assert "x".join(map(str, best["grid"].values())) in page.text
    assert f"{100 * best['model_flops_utilization']:.1f} %" in page.text
    assert "device.peak.bf16312 Tflop/s" in page.text  # a figure of the machine beside its name
    assert "perfmodel report --model gpt-5b --machine perlmutter --gpus 16 --batch 64 --top 4 --out" in page.text


def test_what_is_asked_for_is_added(report, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEADS}\n{ROW},,\n{ROW.replace('3.5', '-3')},,\n", encoding="utf-8")
    page = report(*ASKED, "--uncertainty", "--tokens", "300B", "--measured", path, "--gpus-list", "64,16,63")
    assert {"sure", "measured"} < set(sections(page))
    assert "300,000,000,000 tokens" in page.text
    assert "1 of 2 rows left out" in page.text
    assert f"{path}:3: step_time_s is '-3'" in page.text
    assert "against 16 devices" in page.text
    assert "63 devices: 63 devices are not whole nodes of 4" in page.text


def test_collectives_that_a_run_has_timed_are_beside_their_predictions(report, tmp_path):
    path = tmp_path / "runs.jsonl"
    timed = {"all-gather": {"z": {"calls": 8, "bytes": 4e6, "seconds": 0.02}}}
    run = {"status": "ok", "machine": "perlmutter", "model": "gpt-tiny", "x": 1, "y": 1, "z": 4, "data": 1,
           "batch_sequences": 8, "step_time_s": 0.5, "communication": timed}  # fmt: skip
    path.write_text(json.dumps(run) + "\n", encoding="utf-8")
    page = report(*ASKED, "--measured", path)
    assert "Collectives of a step, each timed alone" in page.text
    assert "all-gatherz" in page.text
    assert "2.5 ms" in page.text  # a call: 20 ms in 8


@pytest.mark.parametrize("fidelity", ["paper", "flat", "full"])
def test_the_parts_of_a_bar_are_the_step(report, recommend, fidelity):
    page = report(*ASKED, "--fidelity", fidelity)
    steps = [one["step_time_s"] for one in recommend(top=4, fidelity=fidelity)["results"]]
    bars = {}
    for attributes in page.tags("rect"):
        if "y" in attributes:
            bars.setdefault(float(attributes["y"]), []).append(float(attributes["width"].rstrip("%")))
    charts = [sum(widths) for widths in bars.values()]  # rows of memory lie at other heights, below a limit's name
    lengths = [length for place, length in zip(bars, charts, strict=True) if (place - 20) % 44 == 0]
    assert lengths == pytest.approx([100 * step / (1.05 * max(steps)) for step in steps], abs=0.1)


def test_a_job_for_one_device_sends_nothing_and_is_drawn(report):
    page = report("--model", "gpt-tiny", "--machine", "perlmutter", "--gpus", 1, "--batch", 8)
    assert "not hidden0.0 %" in page.text
    assert page.problems == []


def test_names_are_text_whatever_is_in_them(report, config, profile, tmp_path):
    model = config({"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16,
                    "vocab_size": 32000, "max_position_embeddings": 2048, "intermediate_size": 4096},
                   name="<b onclick=alert(3)>&amp;")  # fmt: skip
    source = {"kind": "vendor", "address": "javascript:alert(4)", "date": "2026", "note": HOSTILE}
    body = {"base": "perlmutter", "title": HOSTILE, "notes": [HOSTILE], "sources": {"BAD": source}}
    machine = profile(yaml.safe_dump(body))
    runs = tmp_path / "<i>runs.csv"
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    runs.write_text(f"{HEADS}\n{ROW},{quoted},{quoted}\n{ROW},,\x1b[31m\u202e\n", encoding="utf-8")
    page = report("--model", model, "--machine", machine, "--gpus", 16, "--batch", 64, "--measured", runs)
    assert page.problems == []
    assert len(page.tags("script")) == 1
    assert not page.tags("img") + page.tags("b") + page.tags("i")
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert all(attributes["href"].startswith(("https://", "http://")) for attributes in page.tags("a"))
    assert page.text.count(HOSTILE) >= 4
    assert "<b onclick=alert(3)>&amp;" in page.text
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text


def test_nothing_is_loaded_from_anywhere(report):
    page = report(*ASKED, "--uncertainty")
    loaded = [attributes for tag in ("script", "img", "iframe", "object") for attributes in page.tags(tag)]
    assert [attributes for attributes in loaded if attributes] == []
    assert [attributes["href"] for attributes in page.tags("link")] == ["data:,"]
    (policy,) = [one["content"] for one in page.tags("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert not [attributes for _, attributes in page.elements if "style" in attributes]


def test_pictures_and_tables_say_what_they_are(report):
    page = report(*ASKED, "--uncertainty")
    charts = [attributes for attributes in page.tags("svg") if attributes.get("role") == "img"]
    assert len(charts) == 5
    assert all(attributes["aria-label"] for attributes in charts)
    assert len(page.tags("caption")) == len(page.tags("table")) >= 7
    assert all(attributes["scope"] == "col" for attributes in page.tags("th"))
    assert page.tags("html") == [{"lang": "en"}]
    names = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    assert all(attributes["aria-labelledby"] in names for attributes in page.tags("section"))


def test_the_same_question_has_the_same_page(run, tmp_path):
    path, pages = tmp_path / "a.html", set()
    for _ in range(2):
        assert run("report", *ASKED, "--uncertainty", "--out", path).code == 0
        pages.add(path.read_bytes())
    assert len(pages) == 1


@pytest.mark.parametrize("name", ["none/a.html", "file/a.html", "folder.html", "a\0b.html"])
def test_a_page_that_cannot_be_written_is_told_before_anything_is_read(refused, tmp_path, name):
    (tmp_path / "file").touch()
    (tmp_path / "folder.html").mkdir()
    before = sorted(tmp_path.iterdir())
    assert "cannot be written" in refused("report", *ASKED[:3], "nowhere", *ASKED[4:], "--out", f"{tmp_path}/{name}")
    assert sorted(tmp_path.iterdir()) == before


def test_a_page_has_the_ending_of_one(refused, tmp_path):
    assert "wanted a name that ends in .html" in refused("report", *ASKED, "--out", tmp_path / "a.pdf")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--gpus-list", "16,none"), "wanted counts of 1 to"),
        (("--measured", "none.csv"), "none.csv cannot be read"),
        (("--fix", "z=3"), "3"),
        (("--tokens", "many"), "wanted a count of at least 1"),
    ],
)
def test_without_an_answer_there_is_a_sentence_and_no_page(refused, tmp_path, asked, told):
    path = tmp_path / "a.html"
    assert told in refused("report", *ASKED, *asked, "--out", path)
    assert not path.exists()


def test_a_curve_of_one_count_is_said_to_be_none(report):
    page = report(*ASKED, "--gpus-list", "16")
    assert "A curve needs two counts" in page.text
    assert not re.search(r"\bnan\b|\binf\b", page.text)
