#!/bin/bash
# gpt-20b on perlmutter: 256 devices (NVIDIA A100-SXM4-40GB), 1024 sequences of 2048 tokens per step.
# Made by perfmodel job for Slurm. Sources are in brackets, and listed by perfmodel machines show perlmutter.
# Name of the job in the queue
#SBATCH --job-name=gpt-20b
# Account that is charged
#SBATCH --account=m1234
# Nodes of this kind [NERSC-DL]
#SBATCH --constraint="gpu&hbm40g"
# Any number of nodes, 48:00:00 at most [NERSC-Q]
#SBATCH --qos=regular
# 256 devices on nodes of 4
#SBATCH --nodes=64
# One rank per device
#SBATCH --ntasks-per-node=4
# Cores per rank, as Slurm counts them here [NERSC-DL]
#SBATCH --cpus-per-task=32
# Required by the centre [NERSC-DL]
#SBATCH --gpus-per-node=4
# Time limit
#SBATCH --time=00:30:00
# File for output and errors
#SBATCH --output=gpt-20b-%j.out
# A restarted job continues with the remaining grids
#SBATCH --requeue
# And appends to the earlier output
#SBATCH --open-mode=append

# The software, set up as in the profile [NERSC-DL]; --setup replaces this
module load pytorch || exit 1
# Checked here rather than by all ranks: perfmodel and torch must be installed where the job runs
command -v perfmodel >/dev/null || { echo 'perfmodel is not on the PATH: see --activate' >&2; exit 1; }

MASTER_ADDR=$(hostname)  # rank 0 runs on the node of this script [NERSC-DL]
export MASTER_ADDR
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))  # the port on which it listens
export NCCL_NET='AWS Libfabric'  # use the Slingshot plug-in and stop if it is missing [UMD]
export NCCL_NET_GDR_LEVEL=PHB  # let the NIC read GPU memory through the host bridge [UMD]
export NCCL_CROSS_NIC=1  # let a ring use different NICs on different nodes [UMD]
export NCCL_SOCKET_IFNAME=hsn  # bootstrap over the high-speed network [UMD]
export CUDA_DEVICE_MAX_CONNECTIONS=1  # needed to overlap communication with computation [UMD]
export FI_MR_CACHE_MONITOR=userfaultfd  # avoids hangs of the memory registration cache [NERSC-DL]
export FI_CXI_RDZV_THRESHOLD=0  # rendezvous for all sizes [UMD]
export FI_CXI_RDZV_GET_MIN=0  # rendezvous for all sizes [UMD]
export FI_CXI_RDZV_EAGER_SIZE=0  # rendezvous for all sizes [UMD]
export FI_CXI_OFLOW_BUF_SIZE=1073741824  # room of 1 GiB for messages that nobody waits for yet [UMD]
export FI_CXI_OFLOW_BUF_COUNT=1  # one such buffer [UMD]
export MPICH_GPU_SUPPORT_ENABLED=0  # keep MPI's GPU support out of NCCL's way [UMD]

failed=0  # if a grid fails, the others still run
# Set by each rank itself, since the launcher overwrites it: CUDA_VISIBLE_DEVICES is 3,2,1,0 [NERSC-DL]

# Grid 1x1x64x4 (X, Y, Z, data): micro-batch 1 per device x 4 micro-steps, recompute none, weight cache none
# shellcheck disable=SC2016 # each rank expands what is quoted
srun --nodes=64 --ntasks=256 --ntasks-per-node=4 --cpus-per-task=32 --kill-on-bad-exit=1 --cpu-bind=cores \
    --gpu-bind=none bash -c \
    'export RANK=$SLURM_PROCID WORLD_SIZE=256 LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=4 CUDA_VISIBLE_DEVICES=3,2,1,0; exec "$@"' \
    rank perfmodel run --model=gpt-20b --machine=perlmutter --grid=1x1x64x4 --batch=1024 --seq=2048 \
    --micro-batch=1 --recompute=none --weight-cache=none --placement=axonn \
    --overlap=all-reduce,reduce-scatter,all-gather --flash-attention --steps=10 --warmup=3 --timeout=810 \
    --backend=nccl --out=gpt-20b.jsonl --resume || failed=1

# Grid 2x1x32x4 (X, Y, Z, data): micro-batch 1 per device x 8 micro-steps, recompute none, weight cache none
# shellcheck disable=SC2016 # each rank expands what is quoted
srun --nodes=64 --ntasks=256 --ntasks-per-node=4 --cpus-per-task=32 --kill-on-bad-exit=1 --cpu-bind=cores \
    --gpu-bind=none bash -c \
    'export RANK=$SLURM_PROCID WORLD_SIZE=256 LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=4 CUDA_VISIBLE_DEVICES=3,2,1,0; exec "$@"' \
    rank perfmodel run --model=gpt-20b --machine=perlmutter --grid=2x1x32x4 --batch=1024 --seq=2048 \
    --micro-batch=1 --recompute=none --weight-cache=none --placement=axonn \
    --overlap=all-reduce,reduce-scatter,all-gather --flash-attention --steps=10 --warmup=3 --timeout=810 \
    --backend=nccl --out=gpt-20b.jsonl --resume || failed=1

# Compare predictions with measurements
perfmodel compare --measured=gpt-20b.jsonl --machine=perlmutter || failed=1
exit "$failed"
