"""Logs made up in the layouts of nccl-tests and OSU: facts of their columns, numbers of a line that is known."""

from dataclasses import dataclass

SIZES = tuple(2**power for power in range(10, 31))
FACTORS = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}
HEADING = "#   size   count   type   redop   root   time   algbw   busbw #wrong   time   algbw   busbw #wrong"
OLD = "#   size   count   type   redop   time   algbw   busbw  error   time   algbw   busbw  error"
UNITS = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"


@dataclass(frozen=True)
class Truth:
    """What a log was made from."""

    operation: str
    nodes: int
    ranks: int
    alpha: float
    beta: float

    @property
    def size(self):
        return self.nodes * self.ranks

    def time(self, size):
        return self.alpha + FACTORS[self.operation] * (self.size - 1) / self.size * size / self.beta


def shown(microseconds):
    """A time in at most seven columns, as the tests print it."""
    digits = 0 if microseconds >= 1e5 else 1 if microseconds >= 1e4 else 2
    return f"{microseconds:.{digits}f}"


def result(truth, size, seconds):
    """Time and the bandwidths that follow from it."""
    algorithm = size / seconds / 1e9
    bus = algorithm * FACTORS[truth.operation] * (truth.size - 1) / truth.size
    return f"{shown(seconds * 1e6):>8} {algorithm:7.2f} {bus:7.2f} {'0':>6}"


def row(truth, size, out, inside, *, old=False):
    """A row of both results."""
    per_rank = truth.operation != "all_reduce"
    redop = "none" if truth.operation == "all_gather" else "sum"
    count = size // 4 // (truth.size if per_rank else 1)
    root = "" if old else f"{'-1':>8}"
    results = f"{result(truth, size, out)} {result(truth, size, inside)}"
    return f"{size:12} {count:13} {'float':>9} {redop:>7}{root} {results}"


def head(truth, hosts="node", *, groups=None):
    """Settings and the list of ranks."""
    lines = ["# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20"]
    lines += ["#", "# Using devices"]
    for rank in range(truth.size):
        part = "" if groups is None else f"Group {groups(rank):2} "
        device = f"device {rank % truth.ranks:2} [0x{rank % truth.ranks:02x}] NVIDIA A100-SXM4-40GB"
        lines.append(f"#  Rank {rank:2} {part}Pid {1000 + rank} on {hosts}{rank // truth.ranks:04} {device}")
    return [*lines, "NCCL version 2.19.3+cuda12.3", "#"]


def nccl_tests(truth, *, noise=lambda: 1.0, sizes=SIZES, cycles=1, named=True, old=False, tag=""):
    """The whole text of one run."""
    first = [f"# Collective test starting: {truth.operation}_perf"] if named else []
    table = [OLD if old else HEADING, UNITS]
    for _ in range(cycles):
        for size in sizes:
            out, inside = truth.time(size) * noise(), truth.time(size) * noise()
            table.append(row(truth, size, out, inside, old=old))
    last = ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 12.3456", "#"]
    return "\n".join(f"{tag}{line}" for line in [*first, *head(truth), *table, *last]) + "\n"


def osu(truth, *, sizes=SIZES, full=False, launcher=True):
    """The text of an OSU benchmark; a size of all-gather is that of one rank."""
    program = {"all_gather": "Allgather", "reduce_scatter": "Reduce_scatter", "all_reduce": "Allreduce"}
    name = program[truth.operation]
    lines = [f"$ srun -N {truth.nodes} --ntasks-per-node={truth.ranks} ./osu_{name.lower()} -f"] if launcher else []
    lines += ["", f"# OSU MPI-CUDA {name} Latency Test v7.4", "# Datatype: MPI_CHAR."]
    more = "   Min Latency(us)   Max Latency(us)  Iterations" if full else ""
    lines.append(f"# Size       Avg Latency(us){more}")
    for size in sizes:
        whole = size * truth.size if truth.operation == "all_gather" else size
        mean = truth.time(whole) * 1e6
        rest = f"{mean * 0.9:18.2f}{mean * 1.1:18.2f}{1000:12}" if full else ""
        lines.append(f"{size:<10}{mean:18.2f}{rest}")
    return "\n".join(lines) + "\n"


def figures(truth, size):
    """Time in us and both bandwidths in GB/s, as files have them: six decimals."""
    seconds = truth.time(size)
    algorithm = size / seconds / 1e9
    bus = algorithm * FACTORS[truth.operation] * (truth.size - 1) / truth.size
    return f"{seconds * 1e6:f}", f"{algorithm:f}", f"{bus:f}"


def json_result(truth, size, *, name="", unchecked=False):
    """One result of nccl-tests -J."""
    time, algorithm, bus = figures(truth, size)
    wrong = "null" if unchecked else "0.000000"
    place = f'{{"time":{time},"alg_bw":{algorithm},"bus_bw":{bus},"nwrong":{wrong}}}'
    redop = "none" if truth.operation == "all_gather" else "sum"
    head = f'"size":{size},"count":{size // 4},"type":"float","redop":"{redop}","root":"    -1"'
    last = f'"actual_iterations":20,"experiment_name":"{name}"'
    return f'{{{head},"out_of_place":{place},"in_place":{place},{last}}}'


def nccl_json(truth, results=None, *, each=1, group=lambda _rank: 0, program=None):
    """The file of nccl-tests -J: one line; of each process of `each` ranks, the first is listed."""
    results = [json_result(truth, size) for size in SIZES] if results is None else results
    devices = [
        f'{{"rank":{rank},"group":{group(rank)},"pid":{1000 + rank},"hostname":"node{rank // truth.ranks:04}",'
        f'"device":{rank % truth.ranks},"device_hex":"0000:07:00","device_info":"NVIDIA A100-SXM4-40GB"}}'
        for rank in range(0, truth.size, each)
    ]
    program = f".\\/build\\/{truth.operation}_perf" if program is None else program
    return (
        '{"version":2,"start_time":"2026-11-30 12:00:00",'
        f'"args":["{program}","-J","out.json"],'
        '"env":["HOME=\\/root","NOTE={\\"version\\":1,\\"results\\":[{\\"size\\":8,"],"nccl_version":22304,'
        f'"config":{{"nthreads":1,"ngpus":{each},"minimum_bytes":1024,"maximum_bytes":1073741824,"step_factor":2,'
        '"warmup_iters":5,"iterations":20,"aggregated_iterations":1,"validation":1,"graph":0,'
        '"blocking_collectives":"false","parallel_init":"false",'
        f'"devices":[{",".join(devices)}]}},"results":[{",".join(results)}],'
        '"out_of_bounds":{"count":0,"okay":"true"},'
        '"average_bus_bandwidth":{"bandwidth":12.345600,"okay":"unchecked"},"errors":[],'
        '"end_time":"2026-11-30 12:01:00"}'
    )


def rccl_values(truth, size, place, *, mpi=True, cycle=True):
    """Names and values of one result in the file of rccl-tests; text is quoted."""
    name = "".join(word.capitalize() for word in truth.operation.split("_"))
    redop = "none" if truth.operation == "all_gather" else "sum"
    time, algorithm, bus = figures(truth, size)
    processes = {"nodes": 1, "ranks": truth.size, "ranksPerNode": truth.size, "gpusPerRank": 1}
    return {
        **({"numCycle": 0} if cycle else {}),
        "name": f'"{name}"',
        **(processes if mpi else {"gpus": truth.size}),
        "size": size,
        "type": '"float"',
        "redop": f'"{redop}"',
        "inPlace": place,
        "time": time,
        "algBw": algorithm,
        "busBw": bus,
        "wrong": '"0"',
    }


def rccl_json(truth, *, sizes=SIZES, old=False, mpi=True):
    """The file of rccl-tests -Z json: a list, of old one object a line and no list."""
    rows = [
        ", ".join(
            f'"{name}":{value}' for name, value in rccl_values(truth, size, place, mpi=mpi, cycle=not old).items()
        )
        for size in sizes
        for place in (0, 1)
    ]
    if old:
        return "".join(f"{{{row}}}\n" for row in rows)
    return "[\n" + ",\n".join(f"{{{row}}}" for row in rows) + "\n]\n"


def rccl_csv(truth, *, sizes=SIZES, old=False, mpi=True, headed=False):
    """The file of rccl-tests -Z csv; unless `headed` its heading lacks the column of nodes."""
    comma = ", " if old else ","
    ranks = ["nodes", "ranks", "ranksPerNode", "gpusPerRank"] if headed else ["ranks", "rankspernode", "gpusperrank"]
    first = ["collective"] if old else ["numCycle", "collective"]
    names = [*first, *(ranks if mpi else ["gpus"]), "size", "type", "redop", "inplace", "time"]
    names += ["algbw", "busbw", "#wrong"]
    rows = [
        comma.join(str(value) for value in rccl_values(truth, size, place, mpi=mpi, cycle=not old).values())
        for size in sizes
        for place in (0, 1)
    ]
    return "\n".join([comma.join(names), *rows]) + "\n"
