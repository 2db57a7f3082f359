#!/bin/bash
# A hunt on several nodes of Slurm, from a checkout that all of them see, after `make setup`:
#     DISSENT_STORE=postgresql://... sbatch harness/execute/requirements/clusters/slurm.sh --budget 1h --targets 'torch-*'
# docs/commands.md#clusters says what is needed beside.
#SBATCH --job-name=dissent
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem-per-cpu=6G
#SBATCH --time=02:00:00
set -euo pipefail

cd "${SLURM_SUBMIT_DIR:?sbatch sets it}"
ray=.venv/bin/ray
# that of harness/execute/requirements/common.txt: all nodes have to have the same
[[ "$("$ray" --version)" == *" 2.60.0" ]] || { echo "$ray is not 2.60.0: make setup" >&2; exit 2; }

RAY_AUTH_TOKEN="$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')"
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 PYTHONPATH="$PWD"
export RAY_kill_child_processes_on_worker_exit=0 # keepers end what tasks start

port=$((20000 + SLURM_JOB_ID % 20000))
folder="/tmp/dissent-$SLURM_JOB_ID" # on each node; a short path, since sockets are in it
leave() {
    kill $(jobs -p) 2> /dev/null || true
    wait
    srun --overlap --ntasks-per-node=1 rm -rf "$folder" || true
}
trap leave EXIT

address="$(hostname --ip-address | cut -d ' ' -f 1)"
srun --overlap --nodes=1 --ntasks=1 --nodelist="$SLURMD_NODENAME" \
    "$ray" start --head --block --node-ip-address="$address" --port="$port" --num-cpus="$SLURM_CPUS_PER_TASK" \
    --include-dashboard=false --disable-usage-stats --temp-dir="$folder" &
until "$ray" health-check --address "$address:$port" > /dev/null 2>&1; do sleep 1; done
if ((SLURM_JOB_NUM_NODES > 1)); then
    srun --overlap --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) \
        --exclude="$SLURMD_NODENAME" \
        "$ray" start --block --address="$address:$port" --num-cpus="$SLURM_CPUS_PER_TASK" &
fi
.venv/bin/python -m harness hunt --engine ray --address "$address:$port" \
    --jobs $((SLURM_JOB_NUM_NODES * SLURM_CPUS_PER_TASK)) "$@"
