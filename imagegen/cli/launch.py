"""`imagegen launch CELL|IMAGE`: the command line that starts it, flag by flag."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.launcher.launch import Accel, Form, Transport


SYNTHETIC = "/opt/imagegen/validate/benchmark/synthetic.py"
"""The benchmark that travels in every image."""


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
    type=click.Choice(("sockets", "rdma", "rdma+gdr", "harp")),
    default="sockets",
    show_default=True,
)
@click.option(
    "--accel",
    type=click.Choice(("none", "horovod", "lightcc", "ddp")),
    help="horovod where the image has it, else none",
)
@click.option("--model", default="resnet50", show_default=True)
@click.option("--batch", type=click.IntRange(1), default=64, show_default=True)
@click.option("--iface", default="", help="interface that connects the nodes, such as eth0")
@click.option("--script", default=SYNTHETIC, show_default=True, help="what mpirun starts")
@click.option("--explain", is_flag=True, help="why each flag is there")
@options.common
def command(
    cell: str,
    form: Form,
    nodes: str,
    gpus_per_node: int,
    transport: Transport,
    accel: Accel | None,
    model: str,
    batch: int,
    iface: str,
    script: str,
    explain: bool,
    console: Console,
    overlay: Path | None,
) -> None:
    """The command to paste, with the flags that this image needs."""
    from imagegen.launcher.launch import (
        Flag,
        LaunchCommand,
        LaunchRequest,
        render,
    )
    from imagegen.launcher.launch import command as launch_command
    from imagegen.renderer.image_json import contract, device
    from imagegen.workflow.project import Project

    project = Project(overlay)
    _, spec = project.cell(cell)
    request = LaunchRequest(
        image=spec.tag,
        contract=contract(spec, project.catalog),
        components={pin.component: pin.version for pin in spec.pins},
        device=device(spec),
        form=form,
        nodes=tuple(node.strip() for node in nodes.split(",") if node.strip()),
        gpus_per_node=gpus_per_node,
        transport=transport,
        accel=accel or ("horovod" if spec.pin("horovod") else "none"),
        model=model,
        batch=batch,
        iface=iface,
        script=script,
    )
    made = launch_command(request)
    if form == "mpirun" and script == SYNTHETIC and request.accel in ("horovod", "lightcc"):
        why = "the benchmark's ranks train together, through Horovod"
        made = LaunchCommand((*made.flags, Flag(("--horovod",), why)))
    console.data({"image": spec.tag, "form": form, "command": render(made, explain=False)})
    console.line(render(made, explain=explain))
