"""Run a function on some ranks: real processes, real gloo, forked from a server that has imported torch once."""

import multiprocessing
import tempfile
import traceback
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch", "torch.distributed", "perfmodel.launch.layers.linear"])
_TIMEOUT = 240


def on_ranks(ranks, function, *arguments):
    """What `function(rank, *arguments)` returns on each rank of a gloo world, in the order of ranks.

    `function` stands at the top of a module of this folder, by whose name the ranks find it; what it returns is
    pickled: numbers, numpy arrays, or nested lists of them.
    """
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for rank in range(ranks):
            here, there = _CONTEXT.Pipe(duplex=False)
            process = _CONTEXT.Process(
                target=_rank, args=(rank, ranks, folder, there, function, arguments), daemon=True
            )
            process.start()
            there.close()
            pipes.append(here)
            processes.append(process)
        try:
            return [_result(rank, pipe) for rank, pipe in enumerate(pipes)]
        finally:
            for process in processes:
                process.kill()
                process.join()


def _result(rank, pipe):
    if not pipe.poll(_TIMEOUT):
        raise TimeoutError(f"rank {rank} has not answered within {_TIMEOUT} s")
    good, value = pipe.recv()
    if not good:
        raise AssertionError(f"on rank {rank}:\n{value}")
    return value


def _rank(rank, ranks, folder, pipe, function, arguments):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{Path(folder) / 'store'}", rank=rank, world_size=ranks)
        pipe.send((True, function(rank, *arguments)))
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:  # noqa: BLE001 - whatever it is, the test shall see it
        pipe.send((False, traceback.format_exc()))
