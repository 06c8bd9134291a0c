"""`imagegen launch` writes the command line that starts an image, flag by flag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.launcher.launch import NONE, SOCKETS, LaunchCommand, LaunchRequest, render
from imagegen.launcher.launch import command as launch_command
from imagegen.model.recipe import BENCHMARK_PATH
from imagegen.renderer.image_json import contract, device
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.launcher.launch import Form
    from imagegen.model.image import ImageSpec
    from imagegen.model.launch import Launch


@dataclass(frozen=True)
class LaunchOptions:
    """The options of the command line, with the same names."""

    cell: str
    form: Form = "docker"
    nodes: str = ""
    gpus_per_node: int = 1
    transport: str = SOCKETS
    accel: str | None = None
    model: str = "resnet50"
    batch: int = 64
    iface: str = ""
    script: str = BENCHMARK_PATH
    explain: bool = False
    overlay: Path | None = None


def launch(options: LaunchOptions, console: Console) -> None:
    """Show the command to paste for the image of a cell."""
    project = Project(options.overlay)
    _, spec = project.cell(options.cell)
    request = _request(options, project, spec)
    command = _for_benchmark(launch_command(request), request)
    pasteable = render(command, explain=False)
    console.data({"image": spec.tag, "form": options.form, "command": pasteable})
    console.line(render(command, explain=options.explain))


def _request(options: LaunchOptions, project: Project, spec: ImageSpec) -> LaunchRequest:
    launches = {name: one.launch for name, one in project.catalog.components.items()}
    return LaunchRequest(
        image=spec.tag,
        contract=contract(spec, project.catalog),
        components={pin.component: pin.version for pin in spec.pins},
        launches=launches,
        device=device(spec),
        form=options.form,
        nodes=tuple(node.strip() for node in options.nodes.split(",") if node.strip()),
        gpus_per_node=options.gpus_per_node,
        transport=options.transport,
        accel=options.accel or _default_accel(spec, launches),
        model=options.model,
        batch=options.batch,
        iface=options.iface,
        script=options.script,
    )


def _default_accel(spec: ImageSpec, launches: Mapping[str, Launch]) -> str:
    """Return the acceleration that the image has for launches that name none."""
    here = (launches[pin.component] for pin in spec.pins)
    return next((one.accels[0] for one in here if one.default), NONE)


def _for_benchmark(command: LaunchCommand, request: LaunchRequest) -> LaunchCommand:
    """Add the flags that the benchmark needs where ranks train together."""
    if request.form != "mpirun" or request.script != BENCHMARK_PATH:
        return command
    return LaunchCommand((*command.flags, *request.accelerated.benchmark))
