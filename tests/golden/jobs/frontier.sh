#!/bin/bash
# gpt-20b on frontier: 1024 devices (AMD MI250X GCD), 4096 sequences of 2048 tokens per step.
# Made by perfmodel job for Slurm. Sources are in brackets, and listed by perfmodel machines show frontier.
# Name of the job in the queue
#SBATCH --job-name=gpt-20b
# Account that is charged
#SBATCH --account=m1234
# The partition of these nodes; from 92 up to 183 nodes, 06:00:00 at most [OLCF-F]
#SBATCH --partition=batch
# 1024 devices on nodes of 8
#SBATCH --nodes=128
# One rank per device
#SBATCH --ntasks-per-node=8
# Cores per rank, as Slurm counts them here [OLCF-F]
#SBATCH --cpus-per-task=7
# Required by the centre [OLCF-F]
#SBATCH --gpus-per-node=8
# Required by the centre [OLCF-F]
#SBATCH --network=disable_rdzv_get
# Time limit
#SBATCH --time=00:30:00
# File for output and errors
#SBATCH --output=gpt-20b-%j.out
# A restarted job continues with the remaining grids
#SBATCH --requeue
# And appends to the earlier output
#SBATCH --open-mode=append

# The software, set up as in the profile [OLCF-F]; --setup replaces this
module load PrgEnv-gnu/8.7.0 cpe/26.03 rocm/7.1.1 craype-accel-amd-gfx90a miniforge3/23.11.0-0 rccl-net-plugin || exit 1
# Checked here rather than by all ranks: perfmodel and torch must be installed where the job runs
command -v perfmodel >/dev/null || { echo 'perfmodel is not on the PATH: see --activate' >&2; exit 1; }

MASTER_ADDR=$(hostname -i)  # rank 0 runs on the node of this script, given by its address [OLCF-F]
export MASTER_ADDR
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))  # the port on which it listens
export NCCL_NET=OFI  # OFI is the libfabric plug-in for jobs on several nodes; on one node the centre sets Socket [OLCF-PT]
export NCCL_NET_GDR_LEVEL=PHB  # let the NIC read and write GPU memory directly up to this distance [OLCF-PT]
export NCCL_CROSS_NIC=1  # let a ring use different NICs on different nodes [OLCF-PT]
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3  # start up over this network interface [OLCF-PT]
export CUDA_DEVICE_MAX_CONNECTIONS=1  # one queue keeps the launch order, which overlapping communication with computation needs [UMD]
export LD_LIBRARY_PATH="$CRAY_LD_LIBRARY_PATH:$LD_LIBRARY_PATH"  # libraries of the loaded Cray modules [OLCF-PT]
export HSA_FORCE_FINE_GRAIN_PCIE=1  # fine-grained memory lets GPUs reach one another's buffers [OLCF-PT]
export FI_MR_CACHE_MONITOR=kdreg2  # this monitor of the registration cache avoids hangs [OLCF-PT]
export FI_CXI_DISABLE_HOST_REGISTER=1  # do not register host memory with the GPU driver [OLCF-PT]
export FI_CXI_DEFAULT_CQ_SIZE=131072  # long completion queues for many ranks [OLCF-PT]
export FI_CXI_DEFAULT_TX_SIZE=2048  # long send queues for many ranks [OLCF-PT]
export FI_CXI_RX_MATCH_MODE=hybrid  # fall back to software matching when the NIC runs out of entries [OLCF-PT]
export FI_CXI_RDZV_PROTO=alt_read  # rendezvous by reads that need no extra progress thread [OLCF-PT]
export FI_CXI_RDZV_EAGER_SIZE=0  # rendezvous for all sizes [OLCF-PT]
export FI_CXI_RDZV_THRESHOLD=0  # rendezvous for all sizes [OLCF-PT]
export FI_CXI_RDZV_GET_MIN=0  # rendezvous for all sizes [OLCF-PT]

failed=0  # if a grid fails, the others still run

# Grid 1x1x64x16 (X, Y, Z, data): micro-batch 1 per device x 4 micro-steps, recompute none, weight cache none
# shellcheck disable=SC2016 # each rank expands what is quoted
srun --mem-bind=map_mem:3,3,1,1,0,0,2,2 --nodes=128 --ntasks=1024 --ntasks-per-node=8 --cpus-per-task=7 \
    --kill-on-bad-exit=1 \
    --cpu-bind=mask_cpu:0x00fe000000000000,0xfe00000000000000,0x0000000000fe0000,0x00000000fe000000,0x00000000000000fe,0x000000000000fe00,0x000000fe00000000,0x0000fe0000000000 \
    --gpu-bind=none bash -c \
    'export RANK=$SLURM_PROCID WORLD_SIZE=1024 LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=8; exec "$@"' rank \
    perfmodel run --model=gpt-20b --machine=frontier --grid=1x1x64x16 --batch=4096 --seq=2048 --micro-batch=1 \
    --recompute=none --weight-cache=none --placement=axonn --overlap=all-reduce,reduce-scatter,all-gather \
    --flash-attention --steps=10 --warmup=3 --timeout=810 --backend=nccl --out=gpt-20b.jsonl --resume || failed=1

# Grid 2x1x64x8 (X, Y, Z, data): micro-batch 1 per device x 8 micro-steps, recompute none, weight cache none
# shellcheck disable=SC2016 # each rank expands what is quoted
srun --mem-bind=map_mem:3,3,1,1,0,0,2,2 --nodes=128 --ntasks=1024 --ntasks-per-node=8 --cpus-per-task=7 \
    --kill-on-bad-exit=1 \
    --cpu-bind=mask_cpu:0x00fe000000000000,0xfe00000000000000,0x0000000000fe0000,0x00000000fe000000,0x00000000000000fe,0x000000000000fe00,0x000000fe00000000,0x0000fe0000000000 \
    --gpu-bind=none bash -c \
    'export RANK=$SLURM_PROCID WORLD_SIZE=1024 LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=8; exec "$@"' rank \
    perfmodel run --model=gpt-20b --machine=frontier --grid=2x1x64x8 --batch=4096 --seq=2048 --micro-batch=1 \
    --recompute=none --weight-cache=none --placement=axonn --overlap=all-reduce,reduce-scatter,all-gather \
    --flash-attention --steps=10 --warmup=3 --timeout=810 --backend=nccl --out=gpt-20b.jsonl --resume || failed=1

# Compare predictions with measurements
perfmodel compare --measured=gpt-20b.jsonl --machine=frontier || failed=1
exit "$failed"
