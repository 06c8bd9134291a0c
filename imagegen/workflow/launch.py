"""`imagegen launch` writes what starts an image: a command, a manifest or a script."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from imagegen.catalog.documents import of_matrix, read_documents, read_reasons
from imagegen.engine.client import connect
from imagegen.engine.images import local_images
from imagegen.errors import ConfigError, EngineError, NothingSelectedError
from imagegen.launcher.description import NONE, SOCKETS, Cluster, Description
from imagegen.launcher.launch import LONGEST_NAME, ONE_CONTAINER, explained, launched
from imagegen.model.labels import LABEL_CELL, LABEL_MATRIX
from imagegen.renderer.image_json import contract, device, launch_versions
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.model.image import ImageSpec
    from imagegen.model.launch import Habits, Launch

BY_OPERATORS = ("mpijob", "trainjob", "arena")
JOBS = (*BY_OPERATORS, "sbatch")
"""The forms whose nodes the cluster chooses; Slurm may be told which."""


@dataclass(frozen=True)
class LaunchOptions:
    """The options of the command line, with the same names; `script` and `file` are one thing."""

    cell: str
    script: tuple[str, ...] = ()
    form: str = "docker"
    document: str = ""
    nodes: str = ""
    hosts: str = ""
    gpus_per_node: int = 1
    transport: str | None = None
    accel: str | None = None
    iface: str = ""
    mpi_iface: str = ""
    model: str = "resnet50"
    batch: int = 64
    name: str = ""
    file: str = ""
    settings: tuple[str, ...] = ()
    gputopology: bool = False
    privileged: bool = False
    cdi: bool = False
    api: str | None = None
    preflight: bool = False
    gang: bool = False
    queue: str = ""
    rdma_network: str = ""
    rdma_resource: str = ""
    memory: str = ""
    runtime: str = "pyxis"
    explain: bool = False
    overlay: Path | None = None


def launch(options: LaunchOptions, console: Console) -> None:
    """Show what to paste for the image of a cell."""
    project = Project(options.overlay)
    image, spec = _image(options.cell, project)
    description = describe(options, project, spec, image)
    made = launched(description)
    console.data(
        {
            "image": description.image,
            "form": options.form,
            "command": made.text,
            "argv": list(made.argv),
            "around": [flag.text for flag in made.around],
        }
    )
    console.line(made.text)
    if options.explain:
        console.line("\n" + "\n".join(explained(made)))
    elif made.around:
        console.line("\n" + "\n".join(_as_comment(flag.text) for flag in made.around))


def _as_comment(text: str) -> str:
    return text if text.startswith("#") else f"# {text}"


def _image(name: str, project: Project) -> tuple[str, ImageSpec]:
    """Find the cell of a name; a reference with a registry stands for the cell of its tag."""
    try:
        _, spec = project.cell(name)
    except NothingSelectedError:
        specs = (spec for family in project.families() for spec in family.specs)
        tagged = next((spec for spec in specs if name.endswith(f"/{spec.tag}")), None)
        return name, tagged or _labelled(name, project)
    return spec.tag, spec


def _labelled(name: str, project: Project) -> ImageSpec:
    """Find the cell that an image on the engine was built for, by its labels.

    Raises NothingSelectedError where no cell and no such image has that name.
    """
    try:
        image = local_images.find(connect(), name)
    except EngineError:
        image = None
    labels = image.labels if image else {}
    cell = f"{labels.get(LABEL_MATRIX, '')}/{labels.get(LABEL_CELL, '')}"
    return project.cell(cell if len(cell) > 1 else name)[1]


def describe(options: LaunchOptions, project: Project, spec: ImageSpec, image: str) -> Description:
    """Describe the launch; what the options leave open comes from the image and its document."""
    launches = {name: one.launch for name, one in project.catalog.components.items()}
    habits = _habits(options, project, spec)
    nodes, hosts = _nodes(options)
    ranks = max(nodes, 1) * options.gpus_per_node
    transport = options.transport or _transport(options.form, spec, launches, ranks)
    name = options.name or _job_name(spec, options.model)
    if not hosts and habits.hosts and options.form not in JOBS and nodes > 1:
        numbers = range(habits.first_host, habits.first_host + nodes)
        hosts = tuple(habits.hosts.format(n=number, name=name) for number in numbers)
    if options.form in BY_OPERATORS:
        hosts = ()
    script, own = _script(options, spec, launches, habits)
    facts = {str(k): str(v) for pin in spec.pins for k, v in pin.release.facts.items()}
    return Description(
        image=_with_registry(image, habits),
        contract=contract(spec, project.catalog),
        components={pin.component: pin.version for pin in spec.pins},
        versions=launch_versions(spec, project.catalog),
        launches=launches,
        device=device(spec),
        reasons=read_reasons(project.payload),
        facts=facts,
        habits=habits,
        form=options.form,
        name=name,
        nodes=nodes,
        hosts=hosts,
        gpus_per_node=options.gpus_per_node,
        transport=transport,
        accel=options.accel or _accel(options.form, spec, launches),
        model=options.model,
        batch=options.batch,
        interface=options.iface or habits.interfaces.get(transport, ""),
        mpi_interface=options.mpi_iface or ("" if options.iface else habits.mpi_interface),
        script=script,
        own_script=own,
        settings=_settings(options.settings),
        privileged=options.privileged,
        cdi=options.cdi,
        cluster=_cluster(options, habits),
        user=spec.cell.user,
    )


def _settings(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError.of(f"`--set {text}` has no value", hint="give NAME=VALUE")
        found[name] = value
    return found


def _cluster(options: LaunchOptions, habits: Habits) -> Cluster:
    return Cluster(
        api=options.api or habits.manifest.get("api", "v2beta1"),
        gang=options.gang,
        queue=options.queue,
        network=options.rdma_network,
        resource=options.rdma_resource,
        memory=options.memory,
        runtime=options.runtime,
        preflight=options.preflight,
        gputopology=options.gputopology,
    )


def _habits(options: LaunchOptions, project: Project, spec: ImageSpec) -> Habits:
    documents = read_documents(project.payload)
    if not options.document:
        return of_matrix(documents, spec.cell.matrix)
    if options.document not in documents:
        near = get_close_matches(options.document, documents, 1)
        raise ConfigError.of(
            f"there is no document `{options.document}`",
            evidence=[f"known: {', '.join(documents)}"],
            hint=f"did you mean `{near[0]}`?" if near else "choose one of them",
        )
    return documents[options.document]


def _nodes(options: LaunchOptions) -> tuple[int, tuple[str, ...]]:
    """Read how many nodes there are, and their names; `--nodes` takes either."""
    count = options.nodes.strip()
    text = options.hosts or ("" if count.isdecimal() else count)
    hosts = tuple(host.strip() for host in text.split(",") if host.strip())
    if not count.isdecimal():
        return max(1, len(hosts)), hosts
    if hosts and len(hosts) != int(count):
        text = f"--nodes {count} with {len(hosts)} hosts"
        raise ConfigError.of(text, evidence=[", ".join(hosts)], hint="give one of the two")
    return int(count), hosts


def _transport(form: str, spec: ImageSpec, launches: Mapping[str, Launch], ranks: int) -> str:
    """Return the transport that the image is made for; one rank alone sends nothing.

    Ranks of a CPU image train through MPI, whatever devices the image can use.
    """
    if form not in ONE_CONTAINER and (ranks == 1 or device(spec) != "gpu"):
        return SOCKETS
    here = (launches[pin.component] for pin in spec.pins)
    return next((one.transports[0] for one in here if one.transports), SOCKETS)


def _accel(form: str, spec: ImageSpec, launches: Mapping[str, Launch]) -> str:
    """Return the acceleration that the image has for launches that name none.

    A program that starts ranks of its own component comes first.
    """
    here = [launches[pin.component] for pin in spec.pins if launches[pin.component].accels]
    own = [one for one in here if form in {starter.form for starter in one.starters}]
    ordered = [*own, *(one for one in here if one.default), *here]
    return ordered[0].accels[0] if ordered else NONE


def _script(
    options: LaunchOptions, spec: ImageSpec, launches: Mapping[str, Launch], habits: Habits
) -> tuple[tuple[str, ...], bool]:
    """Return what ranks run, and whether the user named it with its arguments."""
    if options.script:
        return options.script, True
    if options.file:
        return (options.file,), False
    document = habits.scripts.get(options.form) or habits.scripts.get("any")
    if document:
        return document, False
    here = (launches[pin.component].script for pin in spec.pins)
    found = next(filter(None, here), "")
    return ((found,) if found else ()), False


def _with_registry(image: str, habits: Habits) -> str:
    first = image.partition("/")[0]
    has_one = "/" in image and ("." in first or ":" in first)
    return image if has_one or not habits.registry else f"{habits.registry}/{image}"


def _job_name(spec: ImageSpec, model: str) -> str:
    text = re.sub(r"[^a-z0-9]+", "-", f"{spec.cell.matrix}-{model}".lower()).strip("-")
    return text[:LONGEST_NAME].strip("-")
