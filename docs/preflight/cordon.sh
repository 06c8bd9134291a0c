#!/bin/sh
# Cordons each node that every-node.yaml says to drain: the last line of the pod's message begins with
# `drain:`. The reason is printed beside the name of the node.
kubectl get pods -l app=preflight -o json | python3 -c '
import json, sys
for pod in json.load(sys.stdin)["items"]:
    for one in pod["status"].get("containerStatuses", []):
        ended = one["state"].get("terminated") or {}
        last = ended.get("message", "").strip().rpartition("\n")[2]
        if last.startswith("drain:"):
            print(pod["spec"]["nodeName"], last)
' | while read -r node reason; do
  echo "$node $reason"
  kubectl cordon "$node"
done
