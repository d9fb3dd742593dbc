"""The commands whose answers tests/golden/commands/ holds: all commands, all formats, and each option somewhere."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """Commands that run one after the other in one folder, and the files of theirs that are recorded too."""

    name: str
    commands: tuple[str, ...]
    files: tuple[str, ...] = ()


_5B = "--model gpt-5b --machine perlmutter --batch 64"
_20B = "--model gpt-20b --machine perlmutter --batch 2048"
_LLAMA = "--model docs/examples/llama-3-8b/config.json --machine dgx-h100 --batch 512"
_TINY = "--model gpt-tiny --machine perlmutter --batch 32"
_JOB = "--account abc123 --time 00:30:00"
_MEASURED = "--measured docs/examples"
_RUNS = f"{_MEASURED}/runs.jsonl"
_LOGS = "docs/examples/all_gather_2_nodes.log docs/examples/all_gather_4_nodes.log"

_ONE_COMMAND = {
    "version": "--version",
    "recommend-gpt-20b": f"recommend {_20B} --gpus 256 --top 5",
    "recommend-gpt-20b-json": f"recommend {_20B} --gpus 256 --top 3 --format json",
    "recommend-gpt-20b-csv": f"recommend {_20B} --gpus 256 --top 5 --format csv",
    "recommend-frontier-any-order": "recommend --model gpt-80b --machine frontier --gpus 512 --batch 4096"
    " --placement any --top 4",
    "recommend-frontier-any-order-csv": "recommend --model gpt-10b --machine frontier --gpus 128 --batch 1024"
    " --placement any --top 40 --format csv",
    "recommend-alps-json": "recommend --model llama-3-70b --machine alps --gpus 256 --batch 1024 --top 3 --format json",
    "recommend-dgx-h100": f"recommend {_LLAMA} --nodes 8 --top 3 --tokens 2T",
    "recommend-dgx-h100-fp8-json": f"recommend {_LLAMA} --gpus 64 --top 2 --tokens 2T --format json"
    " --bytes activations=1,weights=1,gradients=2,data-gradients=2 --optimizer adamw-8bit",
    "recommend-aurora-odd": "recommend --model gpt-10b --machine aurora --nodes 4 --batch 192 --top 3 --format json",
    "recommend-summit": "recommend --model gpt-5b --machine summit --gpus 96 --batch 384 --top 3",
    "recommend-gb200": "recommend --model gpt3-175b --machine gb200-nvl72 --gpus 144 --batch 1152 --top 3 --format csv",
    "recommend-mistral-mi300x": "recommend --model mistral-7b --machine mi300x-node --gpus 16 --batch 64 --top 3",
    "recommend-measured-machine-json": "recommend --model gpt-tiny --machine docs/examples/loop/ranks-8.yaml --gpus 8"
    " --batch 8 --top 20 --format json",
    "recommend-unet-json": "recommend --model unet-7b --machine perlmutter --gpus 64 --batch 256 --top 3 --format json",
    "recommend-our-model": "recommend --model inputs/my-llama.yaml --machine perlmutter --gpus 32 --batch 128 --top 3",
    "recommend-blocks-csv": "recommend --model inputs/blocks.yaml --machine perlmutter --gpus 16 --batch 64 --top 20"
    " --format csv",
    "recommend-flat": f"recommend {_5B} --gpus 16 --top 5 --fidelity flat",
    "recommend-flat-json": f"recommend {_5B} --gpus 16 --top 3 --fidelity flat --format json",
    "recommend-paper": f"recommend {_5B} --gpus 16 --top 5 --fidelity paper --placement paper",
    "recommend-paper-csv": f"recommend {_20B} --gpus 128 --top 20 --fidelity paper --placement any --format csv",
    "recommend-uncertainty": f"recommend {_5B} --gpus 32 --top 5 --uncertainty",
    "recommend-uncertainty-json": f"recommend {_20B} --gpus 128 --top 3 --uncertainty --format json",
    "recommend-options-json": f"recommend {_5B} --gpus 16 --top 3 --seq 4096 --micro-batch 2 --recompute selective"
    " --weight-cache forward --no-flash-attention --dropout --vocabulary-multiple 64 --ignore-memory --format json",
    "recommend-fixed-axes-csv": f"recommend {_20B} --gpus 256 --top 5 --fix x=2 --max z=64 --recompute full"
    " --format csv",
    "recommend-fp32-sgd-csv": f"recommend {_5B} --gpus 32 --top 3 --optimizer sgd-momentum --format csv"
    " --bytes activations=4,weights=4,gradients=4,data-gradients=4",
    "recommend-no-overlap-csv": f"recommend {_5B} --gpus 32 --top 40 --overlap none --host-time '10 us' --format csv",
    "recommend-overlap-data-csv": f"recommend {_5B} --gpus 32 --top 40 --overlap data,all-gather --contention 0.5"
    " --attention-kernel flash_1 --format csv",
    "recommend-nothing-fits": "recommend --model gpt-640b --machine perlmutter --gpus 8 --batch 64",
    "recommend-no-such-model": "recommend --model gpt-5c --machine perlmutter --gpus 8 --batch 64",
    "recommend-wrong-option": "recommend --model gpt-5b --machine perlmutter --gpus 8 --batch 64 --fix q=4",
    "recommend-no-option": "recommend --model gpt-5b --machine perlmutter --batch 64 --fidelity half",
    "explain": f"explain --grid 1x2x32x4 {_20B}",
    "explain-json": f"explain --grid 2x1x32x4 {_20B} --format json",
    "explain-csv": f"explain --grid 2x2x8x8 {_20B} --format csv",
    "explain-rejected": f"explain --grid 16x1x16x1 {_20B}",
    "explain-rejected-json": f"explain --grid 3x1x4x1 {_5B} --format json",
    "explain-transposed-json": "explain --grid 2x2x2x2 --model inputs/blocks.yaml --machine perlmutter --batch 64"
    " --format json",
    "explain-unet": "explain --grid 2x2x4x4 --model unet-7b --machine perlmutter --batch 256",
    "explain-paper": f"explain --grid 2x2x2x2 {_5B} --fidelity paper --placement paper",
    "explain-flat-json": f"explain --grid 2x2x2x2 {_5B} --fidelity flat --micro-batch 2 --recompute none --format json",
    "explain-kv-heads-csv": f"explain --grid 8x1x4x2 {_LLAMA} --format csv",
    "explain-timeline": f"explain --grid 2x1x2x2 {_TINY} --timeline",
    "explain-timeline-json": f"explain --grid 1x2x2x2 {_TINY} --timeline --weight-cache forward --format json",
    "explain-timeline-csv": f"explain --grid 1x1x4x2 {_TINY} --timeline --recompute full --format csv",
    "sweep-strong": f"sweep {_20B} --gpus 64,128,256",
    "sweep-strong-json": f"sweep {_20B} --gpus 64,128,256 --format json",
    "sweep-weak-csv": "sweep --model gpt-5b --machine frontier --gpus 16,64,256 --batch-per-gpu 4 --format csv",
    "sweep-weak-some-too-few": "sweep --model gpt-40b --machine alps --gpus 4,16,64 --batch-per-gpu 8 --max x=4",
    "sweep-wrong": "sweep --model gpt-5b --machine frontier --gpus 16,64",
    "job-slurm-compare": f"job {_20B} --gpus 256 --top 3 --compare {_JOB}",
    "job-slurm-frontier": "job --model gpt-80b --machine frontier --grid 2x1x256x16 --batch 8192"
    f" {_JOB} --setup 'module load rocm' --activate 'conda activate my' --steps 5 --warmup 1",
    "job-slurm-array-container": "job --model llama-3-70b --machine alps --gpus 256 --batch 1024 --top 2 --mode array"
    f" --container ./pytorch.toml {_JOB}",
    "job-pbs": f"job --model gpt-5b --machine polaris --nodes 2 --batch 512 {_JOB}",
    "job-flux": f"job --model gpt-5b --machine tuolumne --nodes 2 --batch 512 {_JOB}",
    "job-lsf": f"job --model gpt-5b --machine summit --nodes 16 --batch 384 {_JOB}",
    "job-no-scheduler": "job --model gpt-tiny --machine localhost-cpu --gpus 4 --batch 8 --time 00:30:00",
    "job-no-accounts": f"job --model gpt-tiny --machine localhost-cpu --gpus 4 --batch 8 {_JOB}",
    "job-no-such-launcher": f"job {_20B} --gpus 256 --launcher none {_JOB}",
    "job-torchtitan-refused": f"job {_20B} --grid 1x2x32x4 {_JOB} --launcher torchtitan --arguments '--job.x c.toml'",
    "report-wrong-name": f"report {_5B} --gpus 16 --out page.txt",
    "compare-csv-input": f"compare {_MEASURED}/measured.csv",
    "compare-csv-input-csv": f"compare {_MEASURED}/measured.csv --format csv",
    "compare-runs": f"compare {_RUNS}",
    "compare-runs-json": f"compare {_RUNS} --format json",
    "compare-loop": f"compare {_MEASURED}/loop/runs.jsonl",
    "compare-loop-json": f"compare {_MEASURED}/loop/runs.jsonl --format json",
    "compare-loop-csv": f"compare {_MEASURED}/loop/runs.jsonl --format csv",
    "compare-no-file": f"compare {_MEASURED}/none.csv",
    "validate": "validate",
    "validate-json": "validate --format json",
    "validate-csv": "validate --format csv",
    "validate-no-such-check": "validate --check none",
    "machines-list": "machines list",
    "machines-list-json": "machines list --format json",
    "machines-list-csv": "machines list --format csv",
    "machines-show-perlmutter": "machines show perlmutter",
    "machines-show-frontier-json": "machines show frontier --format json",
    "machines-show-summit-csv": "machines show summit --format csv",
    "machines-show-measured": "machines show docs/examples/loop/ranks-4.yaml --format json",
    "machines-check-wrong": "machines check inputs/wrong.yaml",
    "machines-measure-wrong": "machines measure --out page.txt --nproc 2",
    "models-list": "models list",
    "models-list-json": "models list --format json",
    "models-list-csv": "models list --format csv",
    "models-show": "models show docs/examples/llama-3-8b/config.json",
    "models-show-unet-json": "models show unet-7b --format json",
    "models-show-blocks-csv": "models show inputs/blocks.yaml --format csv",
    "dryrun": f"dryrun --grid 2x2x2x2 --gpus 16 {_TINY}",
    "dryrun-json": f"dryrun --grid 1x2x4x2 --gpus 16 {_TINY} --rank 5 --recompute full --format json",
    "dryrun-csv": f"dryrun --grid 4x1x2x2 --gpus 16 {_TINY} --weight-cache forward --format csv",
    "dryrun-wrong": f"dryrun --grid 2x2x2x2 --gpus 8 {_TINY}",
    "run-wrong-grid": "run --model gpt-tiny --grid 16x1x1x1",
    "run-wrong-question": "run --model gpt-tiny --grids all",
}

_LAUNCHERS = {
    "axonn-nanogpt": f"{_20B} --grid 2x1x32x4",
    "megatron-axonn": f"{_20B} --grid 2x1x32x4 --arguments '--data-path d --vocab-file v --merge-file m'",
    "litgpt-axonn": "--model llama-3-8b --machine perlmutter --batch 64 --grid 8x1x1x1",
    "torchtitan": f"{_LLAMA} --grid 2x1x32x1 --arguments '--job.config_file c.toml'",
    "megatron-lm": f"{_20B} --grid 4x1x1x64 --ignore-memory --arguments '--data-path d'",
    "deepspeed": f"{_20B} --grid 1x1x256x1 --program train.py",
}

_HELP = (
    *("recommend", "explain", "sweep", "trace", "job", "report", "compare", "validate", "calibrate", "run", "dryrun"),
    *("machines", "models"),
)
_MACHINES_HELP = ("list", "show", "check", "new", "import", "measure")

_SEVERAL = (
    Case("help", ("--help", *(f"{name} --help" for name in _HELP))),
    Case(
        "help-machines-models",
        (*(f"machines {name} --help" for name in _MACHINES_HELP), "models list --help", "models show --help"),
    ),
    Case("trace", (f"trace --grid 1x2x2x4 {_TINY} trace.json",), ("trace.json",)),
    Case("trace-rejected", (f"trace --grid 3x1x2x1 {_TINY} trace.json",), ("trace.json",)),
    Case(
        "job-files",
        (f"job {_20B} --gpus 256 --top 2 --mode many {_JOB} -o job.sh",),
        ("job-1.sh", "job-2.sh"),
    ),
    Case("report", (f"report {_20B} --gpus 64 --top 3 --out page.html",), ("page.html",)),
    Case(
        "report-uncertainty-measured",
        (f"report {_5B} --gpus 16 --top 3 --gpus-list 8,16 --uncertainty --tokens 1B {_RUNS} --out page.html",),
        ("page.html",),
    ),
    Case(
        "calibrate",
        (
            f"calibrate {_RUNS} --machine localhost-cpu --out mine.yaml",
            f"compare {_RUNS} --machine ./mine.yaml",
        ),
        ("mine.yaml",),
    ),
    Case(
        "calibrate-json",
        (f"calibrate {_RUNS} --machine localhost-cpu --out a.yaml --fit gemm --format json",),
        ("a.yaml",),
    ),
    Case("calibrate-csv", (f"calibrate {_RUNS} --machine localhost-cpu --out a.yaml --format csv",)),
    Case(
        "machines-new",
        ("machines new --from frontier mine.yaml", "machines check mine.yaml", "machines new --from alps mine.yaml"),
        ("mine.yaml",),
    ),
    Case(
        "machines-import",
        (
            f"machines import --nccl-tests {_LOGS} --base perlmutter --out measured.yaml",
            "machines check measured.yaml",
            "explain --grid 1x1x16x4 --model gpt-5b --batch 64 --machine ./measured.yaml --format csv",
        ),
        ("measured.yaml",),
    ),
    Case(
        "machines-import-json",
        (f"machines import --nccl-tests {_LOGS} --base perlmutter --date 2025-11 --out a.yaml --format json",),
    ),
    Case("machines-import-csv", (f"machines import --nccl-tests {_LOGS} --base alps --out a.yaml --format csv",)),
)

CASES = (
    *(Case(name, (command,)) for name, command in _ONE_COMMAND.items()),
    *(Case(f"job-{name}", (f"job {given} {_JOB} --launcher {name}",)) for name, given in _LAUNCHERS.items()),
    *_SEVERAL,
)
