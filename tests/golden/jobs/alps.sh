#!/bin/bash
# gpt-20b on alps: 256 devices (NVIDIA GH200 96GB), 1024 sequences of 2048 tokens per step.
# Made by perfmodel job for Slurm. Sources are in brackets, and listed by perfmodel machines show alps.
# Name of the job in the queue
#SBATCH --job-name=gpt-20b
# Account that is charged
#SBATCH --account=m1234
# Any number of nodes, 12:00:00 at most [CSCS-CLA]
#SBATCH --partition=normal
# 256 devices on nodes of 4
#SBATCH --nodes=64
# One rank per device
#SBATCH --ntasks-per-node=4
# Cores per rank, as Slurm counts them here [CSCS-SL]
#SBATCH --cpus-per-task=72
# Required by the centre [CSCS-SL]
#SBATCH --gpus-per-node=4
# Time limit
#SBATCH --time=00:30:00
# File for output and errors
#SBATCH --output=gpt-20b-%j.out
# A restarted job continues with the remaining grids
#SBATCH --requeue
# And appends to the earlier output
#SBATCH --open-mode=append

# Checked here rather than by all ranks: perfmodel and torch must be installed where the job runs
command -v perfmodel >/dev/null || { echo 'perfmodel is not on the PATH: see --activate' >&2; exit 1; }

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)  # rank 0 is on the first host of the job [CSCS-SL]
export MASTER_ADDR
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))  # the port on which it listens
export NCCL_NET='AWS Libfabric'  # use the libfabric plug-in and stop if it is missing, instead of falling back to TCP [CSCS-NCCL]
export NCCL_NET_GDR_LEVEL=PHB  # let the NIC read and write GPU memory directly up to this distance [CSCS-NCCL]
export NCCL_CROSS_NIC=1  # let a ring use different NICs on different nodes [CSCS-NCCL]
export NCCL_PROTO='^LL128'  # LL128 is slower on this network [CSCS-NCCL]
export FI_CXI_DEFAULT_CQ_SIZE=131072  # long completion queues for many ranks [CSCS-NCCL]
export FI_CXI_DEFAULT_TX_SIZE=16384  # long send queues for many ranks [CSCS-NCCL]
export FI_CXI_DISABLE_HOST_REGISTER=1  # do not register host memory with the GPU driver [CSCS-NCCL]
export FI_CXI_RX_MATCH_MODE=software  # match messages in software, which does not run out of entries [CSCS-NCCL]
export FI_MR_CACHE_MONITOR=userfaultfd  # this monitor of the registration cache avoids hangs [CSCS-NCCL]
export MPICH_GPU_SUPPORT_ENABLED=0  # keep MPI's GPU support out of NCCL's way [CSCS-NCCL]
export CUDA_CACHE_DISABLE=1  # no kernel cache on the shared file system [CSCS-PT]
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1  # a failed collective ends the job instead of hanging [CSCS-PT]

failed=0  # if a grid fails, the others still run
# Set by each rank itself, since the launcher overwrites it: CUDA_VISIBLE_DEVICES is $SLURM_LOCALID [CSCS-SL]

# Grid 1x1x32x8 (X, Y, Z, data): micro-batch 1 per device x 4 micro-steps, recompute none, weight cache none
# shellcheck disable=SC2016 # each rank expands what is quoted
srun --nodes=64 --ntasks=256 --ntasks-per-node=4 --cpus-per-task=72 --kill-on-bad-exit=1 bash -c \
    'export RANK=$SLURM_PROCID WORLD_SIZE=256 LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=4 CUDA_VISIBLE_DEVICES="$SLURM_LOCALID"; exec "$@"' \
    rank perfmodel run --model=gpt-20b --machine=alps --grid=1x1x32x8 --batch=1024 --seq=2048 --micro-batch=1 \
    --recompute=none --weight-cache=none --placement=axonn --overlap=all-reduce,reduce-scatter,all-gather \
    --flash-attention --steps=10 --warmup=3 --timeout=810 --backend=nccl --out=gpt-20b.jsonl --resume || failed=1

# Grid 2x1x32x4 (X, Y, Z, data): micro-batch 1 per device x 8 micro-steps, recompute none, weight cache none
# shellcheck disable=SC2016 # each rank expands what is quoted
srun --nodes=64 --ntasks=256 --ntasks-per-node=4 --cpus-per-task=72 --kill-on-bad-exit=1 bash -c \
    'export RANK=$SLURM_PROCID WORLD_SIZE=256 LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=4 CUDA_VISIBLE_DEVICES="$SLURM_LOCALID"; exec "$@"' \
    rank perfmodel run --model=gpt-20b --machine=alps --grid=2x1x32x4 --batch=1024 --seq=2048 --micro-batch=1 \
    --recompute=none --weight-cache=none --placement=axonn --overlap=all-reduce,reduce-scatter,all-gather \
    --flash-attention --steps=10 --warmup=3 --timeout=810 --backend=nccl --out=gpt-20b.jsonl --resume || failed=1

# Compare predictions with measurements
perfmodel compare --measured=gpt-20b.jsonl --machine=alps || failed=1
exit "$failed"
