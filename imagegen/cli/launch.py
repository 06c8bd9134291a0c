"""Define `imagegen launch`, which writes the command line that starts an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options
from imagegen.model.recipe import BENCHMARK_PATH

if TYPE_CHECKING:
    from imagegen.console.console import Console


@click.command("launch")
@click.argument("cell")
@click.option(
    "--as", "form", type=click.Choice(("docker", "mpirun")), default="docker", show_default=True
)
@click.option("--nodes", default="", help="host names, comma-separated")
@click.option(
    "--gpus",
    "gpus_per_node",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="ranks on each node",
)
@click.option(
    "--transport",
    default="sockets",
    show_default=True,
    help="sockets, or what a component of the image brings, such as rdma",
)
@click.option(
    "--accel",
    help="none, or what a component of the image brings, such as ddp  [default: what the image is "
    "made to train with, else none]",
)
@click.option("--model", default="resnet50", show_default=True)
@click.option("--batch", type=click.IntRange(1), default=64, show_default=True)
@click.option("--iface", default="", help="interface that connects the nodes, such as eth0")
@click.option("--script", default=BENCHMARK_PATH, show_default=True, help="what mpirun starts")
@click.option("--explain", is_flag=True, help="why each flag is there")
@options.common
def command(console: Console, **asked: Any) -> None:
    """The command to paste, with the flags that this image needs."""
    from imagegen.workflow.launch import LaunchOptions, launch

    launch(LaunchOptions(**asked), console)
