#!/bin/sh
# A prolog of Slurm: checks a node before each job, and drains it if the host is at fault. Slurm
# drains a node for any exit code but 0, with "Prolog error" for a reason: what is not the host's
# fault ends in 0 here and is logged, and the step of the job itself (step.sbatch) stops for it.
image=registry.example:5000/team/cu128:ubuntu24.04
said=$(timeout 60 docker run --rm --gpus all --network host --ipc host --cap-add IPC_LOCK \
  --device /dev/infiniband --ulimit memlock=-1 --ulimit nofile=1048576 -e IMAGEGEN_SSHD=off \
  "$image" validate --preflight --profile rdma 2>&1)
reason=$(printf '%s\n' "$said" | tail -n 1)
case "$reason" in
  start:*) exit 0 ;;
  drain:*)
    scontrol update NodeName="$SLURMD_NODENAME" State=DRAIN Reason="$reason"
    exit 1
    ;;
  *)
    logger -t preflight "$reason"
    exit 0
    ;;
esac
