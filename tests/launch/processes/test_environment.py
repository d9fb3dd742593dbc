"""Which rank a process is, as each launcher says it."""

import pytest

from perfmodel.errors import UsageError
from perfmodel.launch.processes.environment import Place, first_host, place, refuse_other_counts, scheduler

SLURM = {
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_STEP_TASKS_PER_NODE": "4,3",
    "SLURM_STEP_NODELIST": "nid[001102-001103]",
    "SLURM_JOB_ID": "123456",
    "SLURM_STEP_ID": "2",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}


def test_a_process_that_nobody_launched_has_no_place():
    assert place({}) is None
    assert place({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}) is None  # a batch script
    assert place({**SLURM, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}) is None  # a shell in an allocation


def test_srun_tells_the_host_of_rank_0_and_every_task_comes_to_the_same_port():
    here = place(SLURM)
    assert here == Place(
        launcher="srun", rank=5, world=7, local_rank=1, local_world=3, address="nid001102", port=here.port
    )
    assert here.port == place({**SLURM, "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}).port
    assert here.port != place({**SLURM, "SLURM_STEP_ID": "3"}).port


def test_torchrun_under_srun_is_torchrun():
    agent = {"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "8"}
    found = place({**SLURM, **agent, "MASTER_ADDR": "nid001102", "MASTER_PORT": "29400"})
    assert found == Place(
        launcher="torchrun", rank=9, world=16, local_rank=1, local_world=8, address="nid001102", port=29401
    )  # its agent listens at its own port


def test_open_mpi_on_several_hosts_wants_to_be_told_where_rank_0_is():
    with pytest.raises(UsageError, match="mpirun does not say where rank 0 is; set MASTER_ADDR"):
        place(OPEN_MPI)
    found = place({**OPEN_MPI, "MASTER_ADDR": "node1"})
    assert (found.rank, found.world, found.local_rank, found.local_world) == (3, 4, 1, 2)
    assert (found.address, found.port) == ("node1", 29500)
    assert place({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}).address == "127.0.0.1"


@pytest.mark.parametrize(
    "local",
    [
        {"MPI_LOCALRANKID": "2", "MPI_LOCALNRANKS": "12"},
        {"PALS_LOCAL_RANKID": "2", "PALS_LOCAL_SIZE": "12"},
        {"PMI_LOCAL_RANK": "2", "PMI_LOCAL_SIZE": "12"},
        {"LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "12"},
    ],
    ids=["Hydra", "PALS", "PMI", "told by hand"],
)
def test_mpiexec_names_the_local_rank_in_several_ways(local):
    found = place({"PMI_RANK": "14", "PMI_SIZE": "24", "MASTER_ADDR": "x1000", **local})
    assert found == Place(
        launcher="mpiexec", rank=14, world=24, local_rank=2, local_world=12, address="x1000", port=29500
    )


FLUX = {
    "FLUX_TASK_RANK": "5",
    "FLUX_JOB_SIZE": "8",
    "FLUX_TASK_LOCAL_ID": "1",
    "FLUX_JOB_NNODES": "2",
    "FLUX_URI": "local:///run/flux/local",
    "PMI_RANK": "5",
    "PMI_SIZE": "8",
    "MASTER_ADDR": "node1",
}


def test_flux_names_the_local_rank_which_its_pmi_does_not():
    assert place(FLUX) == Place(
        launcher="flux run", rank=5, world=8, local_rank=1, local_world=4, address="node1", port=29500
    )
    with pytest.raises(UsageError, match="flux run sets FLUX_TASK_RANK but no LOCAL_WORLD_SIZE; set LOCAL_WORLD_SIZE"):
        place({**FLUX, "FLUX_JOB_NNODES": "3"})
    assert place({**FLUX, "FLUX_JOB_NNODES": "3", "LOCAL_WORLD_SIZE": "3"}).local_world == 3


def test_a_batch_script_of_flux_is_known_by_its_broker():
    assert scheduler({"FLUX_URI": "local:///run/flux/local"}) == ("flux", "")
    assert scheduler({"SLURM_JOB_ID": "7", "FLUX_URI": "local:///tmp/flux"}) == ("slurm", "")  # started inside Slurm


def test_what_a_launcher_leaves_out_or_garbles_is_named():
    with pytest.raises(UsageError, match=r"mpiexec sets PMI_RANK but none of PMI_LOCAL_RANK, .*; set LOCAL_RANK"):
        place({"PMI_RANK": "0", "PMI_SIZE": "4"})
    with pytest.raises(UsageError, match="RANK is 'four', wanted a whole number from 0 to 3"):
        place({"RANK": "four", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "4"})
    with pytest.raises(UsageError, match="SLURM_STEP_TASKS_PER_NODE is '4,3', which has no node 2"):
        place({**SLURM, "SLURM_NODEID": "2"})


@pytest.mark.parametrize(
    ("hosts", "first"),
    [("a", "a"), ("b7,a1", "b7"), ("n[3,7-9]", "n3"), ("r[1-2]n[04-05]-ib,x", "r1n04-ib"), ("n[08-12,20],m1", "n08")],
)
def test_the_first_host_of_a_list(hosts, first):
    assert first_host(hosts) == first


def test_a_grid_of_another_size_is_refused_with_both_numbers():
    with pytest.raises(UsageError, match="8 ranks, but the grid 2x2x1x1 has 4; wanted --nproc 4, or a grid of 8"):
        refuse_other_counts([("2x2x1x1", 4)], 8, None)
    here = Place(launcher="srun", rank=0, world=8, local_rank=0, local_world=4, address="nid1", port=20000)
    with pytest.raises(UsageError, match="8 ranks, but the grid 2x2x1x1 has 4; wanted 4 started by srun"):
        refuse_other_counts([("2x2x1x1", 4)], None, here)
    with pytest.raises(UsageError, match="--nproc 4, but srun has started 8 ranks"):
        refuse_other_counts([("2x2x2x1", 8)], 4, here)
    refuse_other_counts([("2x2x1x1", 4), ("1x1x2x1", 2)], None, None)
