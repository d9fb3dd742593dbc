"""machines import: from logs to a profile that changes an answer, and every way in which it cannot."""

import json
import re

import pytest
import yaml

from perfmodel.machines import profiles
from synthetic_logs import SIZES, Truth, nccl_json, nccl_tests, osu, rccl_csv, rccl_json

GATHER = Truth("all_gather", 4, 4, 300e-6, 40e9)
REDUCE = Truth("all_reduce", 2, 4, 90e-6, 50e9)


@pytest.fixture
def log(tmp_path):
    def write(name, text):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return write


def taken(run, out, *arguments):
    return run("machines", "import", *arguments, "--base", "perlmutter", "--out", out)


def test_logs_become_a_profile_that_is_valid_and_that_explain_uses(run, explain, log, tmp_path):
    out = tmp_path / "mine.yaml"
    one, two = log("ag.log", nccl_tests(GATHER)), log("ar.log", nccl_tests(REDUCE))
    answer = taken(run, out, "--nccl-tests", one, two, "--format", "json")
    assert answer.code == 0
    record = json.loads(answer.out)
    assert [part["alpha_s"] for part in record["parts"]] == pytest.approx([300e-6, 90e-6], rel=0.01)
    assert record["dropped"] == 0
    assert run("machines", "check", out).code == 0
    grid = "1x1x16x4"
    gathers, plain = (
        [
            each
            for each in explain(grid, machine=where, fidelity="full")["collectives"]
            if each["term"] == "weight_gather"
        ]
        for where in (out, "perlmutter")
    )
    assert {each["time_source"] for each in gathers} == {"measured table, measured [LOGS]"}
    assert all(here["time_per_call_s"] > there["time_per_call_s"] for here, there in zip(gathers, plain, strict=True))


def test_the_profile_says_where_and_when_and_with_which_versions(run, log, tmp_path):
    out = tmp_path / "mine.yaml"
    assert taken(run, out, "--nccl-tests", log("ag.log", nccl_tests(GATHER)), "--date", "2026-11-03").code == 0
    of = profiles.load(str(out)).sources["LOGS"]
    assert (of.kind, of.date) == ("measured", "2026-11-03")
    assert of.address.endswith("ag.log")
    for said in ("NCCL version 2.19.3+cuda12.3", "NVIDIA A100-SXM4-40GB", "medians of 21 samples", "0 rows dropped"):
        assert said in of.note
    assert yaml.safe_load(out.read_text(encoding="utf-8"))["base"] == "perlmutter"


def test_nothing_is_overwritten(run, log, tmp_path):
    out, one = tmp_path / "mine.yaml", log("ag.log", nccl_tests(GATHER))
    out.write_text("mine", encoding="utf-8")
    answer = taken(run, out, "--nccl-tests", one)
    assert (answer.code, answer.out) == (1, "")
    assert "already exists" in answer.err
    assert out.read_text(encoding="utf-8") == "mine"
    assert sorted(tmp_path.iterdir()) == sorted([out, one])


def test_bad_rows_are_told_and_counted_and_the_others_used(run, log, tmp_path):
    text = nccl_tests(GATHER).replace(" 0\n", " 7\n", 1)
    answer = taken(run, tmp_path / "mine.yaml", "--nccl-tests", log("ag.log", text))
    assert answer.code == 0
    assert re.search(r"ag\.log:\d+: the results were wrong \(7\)", answer.err)
    assert "1 row dropped, 20 times used" in answer.err
    assert len(profiles.load(str(tmp_path / "mine.yaml")).collectives[0].sizes) == len(SIZES) - 1


def test_a_log_of_nothing_ends_with_1_and_writes_nothing(run, log, tmp_path):
    out = tmp_path / "mine.yaml"
    for text in ("", "talk\n", nccl_tests(GATHER, named=False), nccl_tests(Truth("all_gather", 2, 2, 1e-5, 1e10))):
        answer = taken(run, out, "--nccl-tests", log("a.log", text))
        assert answer.code == 1
        assert "no row is left" in answer.err
        assert not out.exists()


def test_osu_logs_take_their_nodes_from_the_options_one_a_log(run, log, tmp_path):
    truths = [Truth("all_gather", nodes, 4, 40e-6, 70e9) for nodes in (2, 4)]
    logs = [log(f"{truth.nodes}.txt", osu(truth, launcher=False)) for truth in truths]
    out = tmp_path / "mine.yaml"
    answer = taken(run, out, "--osu", *logs, "--nodes", "2,4", "--ranks-per-node", "4")
    assert answer.code == 0
    assert [row.nodes for row in profiles.load(str(out)).collectives[0].rows] == [2, 4]


@pytest.mark.parametrize("write", [nccl_json, rccl_json, rccl_csv])
def test_files_of_the_tests_are_known_by_what_is_in_them(run, log, tmp_path, write):
    out, one = tmp_path / "mine.yaml", log("ag.out", write(GATHER))
    answer = taken(run, out, "--nccl-tests", one, "--nodes", "4", "--ranks-per-node", "4", "--format", "json")
    assert answer.code == 0
    (part,) = json.loads(answer.out)["parts"]
    assert (part["alpha_s"], part["beta_B_per_s"]) == pytest.approx((300e-6, 40e9), rel=0.01)
    wrong = log("bad.out", write(GATHER).replace('"nwrong":0', '"nwrong":1').replace('"0"', '"1"'))
    answer = taken(run, tmp_path / "bad.yaml", "--nccl-tests", wrong, "--nodes", "4", "--ranks-per-node", "4")
    assert answer.code == 1
    assert "the results were wrong" in answer.err
    assert f"{(1 if write is nccl_json else 2) * len(SIZES)} rows dropped, 0 times used" in answer.err


def test_csv_is_read_and_outliers_are_shown_with_their_line(run, log, tmp_path):
    rows = [f"all-gather,4,16,{size} B,{GATHER.time(size) * 1e6}" for size in SIZES]
    rows[9] = f"all-gather,4,16,{SIZES[9]} B,9000"
    file = log("t.csv", "\n".join(["operation,nodes,ranks,size,time (us)", *rows, ""]))
    answer = taken(run, tmp_path / "mine.yaml", "--csv", file)
    assert answer.code == 0
    assert f"{file.name}:11: outlier, all-gather of 512 KiB in 9 ms" in re.sub(r"\s+", " ", answer.out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give one of --nccl-tests, --osu, --csv, not none"),
        (["--osu", "--csv"], "not --osu and --csv"),
        (["--osu", "--operation", "broadcast"], "--operation is 'broadcast'"),
        (["--osu", "--nodes", "2,4"], "--nodes is '2,4'"),
        (["--osu", "--nodes", "0"], "--nodes is '0'"),
    ],
)
def test_a_question_that_is_not_well_formed_ends_with_2(run, log, tmp_path, arguments, said):
    answer = taken(run, tmp_path / "mine.yaml", log("a.log", "x"), *arguments)
    assert answer.code == 2
    assert said in answer.err


def test_files_that_are_not_there_or_not_yaml_are_told(run, log, tmp_path):
    assert taken(run, tmp_path / "mine.yaml", "--osu", tmp_path / "none.log").code == 1
    assert taken(run, tmp_path / "mine.txt", "--osu", log("a.log", "x")).code == 2
    assert taken(run, tmp_path / "mine.yaml", "--osu", tmp_path).code == 1
    assert run("machines", "import", "--osu", log("b.log", "x"), "--base", "nowhere", "--out", "m.yaml").code == 2
    good = log("ag.log", nccl_tests(GATHER))
    assert "cannot be written" in taken(run, tmp_path / "no" / "mine.yaml", "--nccl-tests", good).err


def test_a_log_that_is_given_or_written_twice_counts_once(run, log, tmp_path):
    text = nccl_tests(GATHER)
    one, copy, doubled = log("one.log", text), log("copy.log", text), log("doubled.log", text + text)
    for number, logs in enumerate(((one, copy), (doubled,))):
        answer = taken(run, tmp_path / f"{number}.yaml", "--nccl-tests", *logs, "--format", "json")
        (part,) = json.loads(answer.out)["parts"]
        assert (answer.code, part["samples"]) == (0, len(SIZES))
        assert "the same" in answer.err
        assert json.loads(answer.out)["dropped"] > 0


@pytest.mark.parametrize("day", ["2024", "2024-05", "2024-05-31"])
def test_a_day_a_month_or_a_year_will_do(run, log, tmp_path, day):
    out = tmp_path / "mine.yaml"
    assert taken(run, out, "--nccl-tests", log("ag.log", nccl_tests(GATHER)), "--date", day).code == 0
    assert profiles.load(str(out)).sources["LOGS"].date == day


@pytest.mark.parametrize("day", ["0000-00-00", "2026-02-31", "2999-01-01", "yesterday"])
def test_a_day_that_is_none_or_still_to_come_is_refused(refused, log, tmp_path, day):
    arguments = (
        "--nccl-tests",
        log("ag.log", nccl_tests(GATHER)),
        "--base",
        "perlmutter",
        "--out",
        tmp_path / "a.yaml",
    )
    assert "--date is" in refused("machines", "import", *arguments, "--date", day)
