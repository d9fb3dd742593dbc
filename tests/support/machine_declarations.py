"""A machine of a profile in Slurm's own words, so that a Slurm without that machine can judge its jobs."""

from perfmodel.jobscripts import limits

FEW = 64  # nodes of a machine whose size is nobody's business but the site's


def declaration(machine):
    """The machine in Slurm's words: node shape, features, and its partitions with their limits."""
    scheduler = machine.scheduler
    cores = int(machine.node.cpu_cores.value)
    threads = 2 if scheduler.tasks_per_node * scheduler.cores_per_task > cores else 1
    features = scheduler.constraint.replace("&", ",")
    shape = [
        f"NodeName=n[1-{size(machine)}]",
        f"CPUs={cores * threads}",
        f"ThreadsPerCore={threads}",
        f"CoresPerSocket={cores}",
        # Centres write GB where nodes have GiB.
        f"RealMemory={round(machine.node.host_memory.value / 1e9) * 1024}",
        f"Gres=gpu:{machine.node_devices}",
        *([f"Feature={features}"] if features else []),
        "State=CLOUD",
    ]
    return "\n".join([" ".join(shape), *partitions(scheduler)]) + "\n"


def partitions(scheduler):
    """One line a partition; where jobs name none, there is one that they come to."""
    ways = {way.name: way for way in scheduler.qos if way.kind == "partition"}
    names = {scheduler.partition, *ways} - {""}
    for name in sorted(names):
        bins = [way for way in scheduler.qos if way.kind == "bin" and name == scheduler.partition]
        times = [way.max_time for way in bins if way.max_time] or [ways[name].max_time if name in ways else ""]
        nodes = [way.max_nodes for way in bins if way.max_nodes] or [ways[name].max_nodes if name in ways else None]
        most = f" MaxNodes={max(nodes)}" if nodes[0] else ""
        longest = max(times, key=lambda time: limits.seconds(time) if time else 0) or "INFINITE"
        yield f"PartitionName={name} Nodes=ALL MaxTime={longest}{most} State=UP"
    if not scheduler.partition:
        yield "PartitionName=unnamed Nodes=ALL Default=YES MaxTime=INFINITE State=UP"


def size(machine):
    return int(machine.network.nodes.value) if machine.network.nodes else FEW
