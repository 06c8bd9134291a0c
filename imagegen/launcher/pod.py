"""Make the parts that every manifest has: containers with their rights, folders and resources."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from imagegen.launcher.description import GIB
from imagegen.model.launch import Flag, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from imagegen.launcher.description import Description

Manifest = dict[str, object]
"""A part of a document for Kubernetes."""

SHM = "shm"
LONGEST_LINE = 1000
LONGEST_VALUE = 60
PREFIX = "manifest:"
"""The start of a reason's key that is a glob for paths in manifests."""


def container(description: Description, name: str, more: Manifest, *, shm: bool = True) -> Manifest:
    """Make the container of one node; `shm` gives it the shared memory of the contract."""
    shared = [{"mountPath": "/dev/shm", "name": SHM}] if shm and _shm(description) else []
    folders = [{"mountPath": one.path, "name": one.name} for one in description.given.mounts]
    given = limits(description)
    return _without_nothing(
        {
            "image": description.image,
            "name": name,
            **more,
            "securityContext": rights(description),
            "resources": {"limits": given} if given else {},
            "volumeMounts": [*shared, *folders],
        }
    )


def node(description: Description, first: Manifest) -> Manifest:
    """Make the pod of one node around its container, with the check before it."""
    checks = [_preflight(first)] if description.cluster.preflight else []
    network: Manifest = {}
    if _host_network(description):
        network = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return _without_nothing(
        {
            "initContainers": checks,
            "containers": [first],
            "volumes": volumes(description),
            **network,
            **user(description),
        }
    )


def _preflight(first: Manifest) -> Manifest:
    """Make the container that checks the node: with all that the job's own container has."""
    kept = {key: value for key, value in first.items() if key not in ("command", "readinessProbe")}
    return {**kept, "name": "preflight", "args": ["validate", "--preflight"]}


def rights(description: Description) -> Manifest:
    """Give the capabilities of the contract, or every right where the transport needs it."""
    if description.everything_allowed:
        return {"privileged": True}
    caps = list(description.contract.get("caps", ()))
    return {"capabilities": {"add": caps}} if caps else {}


def user(description: Description) -> Manifest:
    """Name the user of the image for a pod; nothing for root."""
    if description.user is None:
        return {}
    uid = description.user.uid
    return {"securityContext": {"runAsUser": uid, "fsGroup": uid}}


def limits(description: Description) -> Manifest:
    """List what a node has to give: GPUs, RDMA devices, huge pages, memory."""
    need, cluster = description.given.hugepages, description.cluster
    found: Manifest = {}
    if need:
        number, unit = int(need.size[:-2]), need.size[-2:]
        found[f"hugepages-{need.size}"] = f"{description.pages * number}{unit}"
    memory = cluster.memory or description.habits.manifest.get("memory", "")
    if memory or need:
        found["memory"] = memory or "100Gi"
    if description.device == "gpu":
        found["nvidia.com/gpu"] = description.gpus_per_node
    if description.given.devices and not description.privileged:
        found[cluster.resource or description.given.resource] = 1
    return found


def _shm(description: Description) -> int:
    return int(description.contract.get("shm_bytes", 0))


def volumes(description: Description, *, shm: bool = True) -> list[Manifest]:
    """List the folders of a node: shared memory, and those of the host that a transport needs."""
    found: list[Manifest] = []
    size = _shm(description)
    if shm and size:
        memory = {"medium": "Memory", "sizeLimit": f"{-(-size // GIB)}Gi"}
        found.append({"name": SHM, "emptyDir": memory})
    for one in description.given.mounts:
        found.append({"name": one.name, "hostPath": {"path": one.host}})
    return found


def _host_network(description: Description) -> bool:
    """Say whether pods need the network of the host: RDMA without a secondary network."""
    given = description.given
    return (given.devices or given.host_network) and not description.cluster.network


def template(description: Description, spec: Manifest) -> Manifest:
    """Make the template of a pod, which names a secondary network if there is one."""
    if not description.cluster.network:
        return {"spec": spec}
    networks = {"k8s.v1.cni.cncf.io/networks": description.cluster.network}
    return {"metadata": {"annotations": networks}, "spec": spec}


def metadata(description: Description) -> Manifest:
    """Name the job, and its queue."""
    found: Manifest = {"name": description.name}
    if description.cluster.queue:
        found["labels"] = {"kueue.x-k8s.io/queue-name": description.cluster.queue}
    return found


def _without_nothing(part: Manifest) -> Manifest:
    """Leave out keys with empty values."""
    return {key: value for key, value in part.items() if value not in ({}, [], "")}


def as_yaml(documents: Sequence[Manifest]) -> str:
    """Write manifests in the order of their keys."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes each part in full: a reader of a manifest knows no anchors."""

        def ignore_aliases(self, data: object) -> bool:
            del data
            return True

    texts = [
        yaml.dump(one, Dumper=Dumper, sort_keys=False, width=LONGEST_LINE) for one in documents
    ]
    return "---\n".join(texts).rstrip("\n")


def reasons(documents: Sequence[Manifest], known: Mapping[str, Reason]) -> tuple[Flag, ...]:
    """List every value of the manifests with its path and its reason."""
    globs = {key.removeprefix(PREFIX): one for key, one in known.items() if key.startswith(PREFIX)}
    found = []
    for document in documents:
        for path, value in _leaves(document, str(document["kind"])):
            pattern = next((glob for glob in globs if fnmatchcase(path, glob)), "")
            reason = globs.get(pattern, Reason(""))
            found.append(Flag((), reason, shown=f"{path}: {_short(value)}"))
    return tuple(found)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def _leaves(part: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield the values of a manifest; a list of words counts as one."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _leaves(value, f"{path}.{key}")
    elif isinstance(part, list) and any(isinstance(one, dict) for one in part):
        for one in part:
            name = one.get("name", "") if isinstance(one, dict) else ""
            yield from _leaves(one, f"{path}({name})")
    else:
        yield path, part
