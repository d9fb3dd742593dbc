#!/usr/bin/env bash
# The whole loop on the computer at hand: measure it, predict all grids of a small GPT on it, run them all, hold one against
# the other. Interrupted, it goes on where it was.
#
#     loop.sh FOLDER [RANKS...]        # 4 and 8 ranks unless told otherwise; needs torch and matplotlib
#
# BUDGET, MEASURED and ROUNDS say how long to measure, how often, and how often to run every grid; what else is set goes to
# every run, such as MORE='--scale-layers 2'.
set -euo pipefail

folder=${1:?where results go}
shift
[ "$#" -gt 0 ] || set -- 4 8
mkdir -p "$folder"
read -ra more <<<"${MORE:-}"

for ranks in "$@"; do
    profile=$folder/ranks-$ranks.yaml
    perfmodel machines measure --nproc "$ranks" --budget "${BUDGET:-4 min}" --rounds "${MEASURED:-5}" --out "$profile"
    perfmodel run --model gpt-tiny --machine "$profile" --grids all --nproc "$ranks" --batch 8 --warmup 1 --steps 3 \
        --rounds "${ROUNDS:-3}" --out "$folder/runs.jsonl" --resume ${more[@]+"${more[@]}"} >/dev/null
done
perfmodel compare --measured "$folder/runs.jsonl" --plot "$folder/loop.svg"
