"""Define `imagegen launch`, which writes what starts an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.console.console import Console

FORMS = ("docker", "mpirun", "torchrun", "horovodrun", "mpijob", "trainjob", "arena", "sbatch")
SETTINGS = (
    ("2d-allreduce", "sum inside groups of GPUs first, then between them"),
    ("intra-size", "GPUs of such a group"),
    ("hierarchical-threshold", "bytes up to which it does so"),
    ("topk", "send the largest values of a gradient only"),
    ("topk-ratio", "the share of values that is sent"),
    ("topk-threshold", "bytes from which on it does so"),
    ("topk-fp16", "send them as FP16"),
)
"""Options of accelerations: which one has them, and their ranges, is in the data."""


def _key(name: str) -> str:
    return f"set_{name.replace('-', '_')}"


def _settings(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, text in reversed(SETTINGS):
        option = click.option(
            f"--{name}", _key(name), is_flag=False, flag_value="1", metavar="VALUE", help=text
        )
        function = option(function)
    return function


@click.command("launch", context_settings={"ignore_unknown_options": False})
@click.argument("cell", metavar="CELL|IMAGE")
@click.argument("script", nargs=-1, metavar="[-- SCRIPT ARGUMENTS]")
@click.option("--as", "form", type=click.Choice(FORMS), default="docker", show_default=True)
@click.option("--form", "document", default="", help="write it as this document does")
@click.option("--nodes", default="", help="how many, or their host names, comma-separated")
@click.option("--hosts", default="", help="host names of the nodes, comma-separated")
@click.option(
    "--gpus-per-node",
    "--gpus",
    "gpus_per_node",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="ranks on each node",
)
@click.option(
    "--transport",
    help="sockets, or what a component of the image brings, such as rdma  [default: what the image "
    "is made for]",
)
@click.option(
    "--accel",
    help="none, or what a component of the image brings, such as ddp  [default: what the image is "
    "made to train with]",
)
@click.option("--iface", default="", help="interface that connects the nodes, such as eth0")
@click.option("--mpi-iface", default="", help="the same for MPI's own messages alone")
@click.option("--model", default="resnet50", show_default=True)
@click.option(
    "--batch-size", "--batch", "batch", type=click.IntRange(1), default=64, show_default=True
)
@click.option("--name", default="", help="name of the job")
@click.option("--script", "file", default="", help="what every rank runs  [default: the benchmark]")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="a setting by name")
@_settings
@click.option("--gputopology", is_flag=True, help="arena: schedule by the topology of GPUs")
@click.option("--privileged", is_flag=True, help="every right, as the documents write it")
@click.option("--cdi", is_flag=True, help="docker: GPUs through the Container Device Interface")
@click.option("--api", type=click.Choice(("v1", "v2beta1")), default=None, help="of the MPIJob")
@click.option("--preflight", is_flag=True, help="Kubernetes: `validate --preflight` before the job")
@click.option("--gang", is_flag=True, help="Kubernetes: all pods start together, or none")
@click.option("--queue", default="", help="Kubernetes: queue of Kueue")
@click.option("--rdma-network", default="", help="Kubernetes: secondary network (multus)")
@click.option("--rdma-resource", default="", help="Kubernetes: resource of the RDMA device plugin")
@click.option("--memory", default="", help="Kubernetes: memory of a worker, such as 100Gi")
@click.option(
    "--runtime",
    type=click.Choice(("pyxis", "apptainer", "none")),
    default="pyxis",
    show_default=True,
    help="Slurm: what starts containers; none: nodes have the files of the image themselves",
)
@click.option("--explain", is_flag=True, help="each argument: why, what without it, the source")
@options.common
def command(console: Console, **asked: Any) -> None:
    """The command, manifest or script to paste, with the arguments that this image needs."""
    from imagegen.workflow.launch import LaunchOptions, launch

    for name, _ in SETTINGS:
        value = asked.pop(_key(name))
        if value is not None:
            asked["settings"] = (*asked["settings"], f"{name}={value}")
    launch(LaunchOptions(**asked), console)
