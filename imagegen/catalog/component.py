"""Make a Component from a `component.yaml` that its schema has accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from imagegen.model.catalog import Checks, Clue, Component, OwnPart, Question
from imagegen.model.launch import (
    Flag,
    Launch,
    NodeFolder,
    PageNeed,
    Reason,
    Setting,
    Starter,
    Variable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from imagegen.catalog.data import (
        ChecksData,
        ClueData,
        ComponentData,
        ContractData,
        FlagData,
        LaunchData,
        NodeFolderData,
        PageNeedData,
        ReasonData,
        RequestData,
        StarterData,
        VariableData,
    )
    from imagegen.model.launch import Contract
    from imagegen.model.release import Release

MEGABYTES = "100"
"""The predicted size of a layer whose component names none."""


def component_of(data: ComponentData, file: str, releases: tuple[Release, ...]) -> Component:
    """Make the component of a file, with these releases."""
    return Component(
        name=data["name"],
        title=data["title"],
        needs=tuple(data.get("needs", ())),
        seconds=float(data["seconds"]),
        env=data.get("env", {}),
        path=tuple(data.get("path", ())),
        suites=tuple(data["suites"]),
        contract=_contract(data.get("contract", {})),
        entrypoint=data.get("entrypoint", ""),
        trees=data.get("trees", {}),
        releases=releases,
        file=file,
        installs=tuple(data.get("installs", ())),
        aliases=data.get("aliases", {}),
        one_of=tuple(data.get("one_of", ())),
        rules=data.get("rules", {}),
        unknown=data.get("unknown", {}),
        megabytes=_megabytes(data.get("megabytes", MEGABYTES)),
        churn=float(data.get("churn", Component.churn)),
        role=data.get("role", ""),
        own_copies={
            name: OwnPart((one["of"],), one["warning"])
            for name, one in data.get("own_copies", {}).items()
        },
        pip_pins=_pip_pins(data),
        request=_question(data.get("request", {})),
        checks=_checks(data.get("checks", {})),
        launch=_launch(data.get("launch", {})),
        found_by=tuple(_clue(one) for one in data.get("found_by", ())),
    )


def _megabytes(data: str | Mapping[str, str]) -> dict[str, float]:
    """Map words of layers, such as `gpu`, to sizes; the empty word is for all other layers."""
    return {
        word: float(size) for word, size in ({"": data} if isinstance(data, str) else data).items()
    }


def _contract(data: ContractData) -> Contract:
    numbers: Contract = {}
    if "ulimits" in data:
        numbers["ulimits"] = {name: int(value) for name, value in data["ulimits"].items()}
    if "shm_bytes" in data:
        numbers["shm_bytes"] = int(data["shm_bytes"])
    return cast("Contract", {**data, **numbers})


def _pip_pins(data: ComponentData) -> OwnPart:
    said = data.get("pip_pins")
    return OwnPart(tuple(said["of"]), said["warning"]) if said else OwnPart()


def _question(data: RequestData) -> Question:
    return Question(
        order=int(data.get("order", 0)),
        always=data.get("always", False),
        keys=data.get("keys", {}),
        index_prefix=data.get("index_prefix", ""),
        values=tuple(data.get("values", ())),
        successors=data.get("successors", {}),
        gpu_libraries=tuple(data.get("gpu_libraries", ())),
    )


def _checks(data: ChecksData) -> Checks:
    return Checks(
        order=int(data.get("order", 0)),
        short_names=tuple(data.get("short_names", ())),
        more_suites=tuple(data.get("more_suites", ())),
        hardware=data.get("hardware", ""),
        slow_probe=data.get("slow_probe", ""),
        before_job=data.get("before_job", False),
    )


def _launch(data: LaunchData) -> Launch:
    return Launch(
        transports=tuple(data.get("transports", ())),
        accels=tuple(data.get("accels", ())),
        default=data.get("default", False),
        replaces=tuple(data.get("replaces", ())),
        host_network=data.get("host_network", False),
        devices=data.get("devices", False),
        mpi_over_tcp=data.get("mpi_over_tcp", False),
        privileged=_reason(data["privileged"]) if "privileged" in data else None,
        hugepages=_pages(data["hugepages"]) if "hugepages" in data else None,
        mounts=tuple(_folder(one) for one in data.get("mounts", ())),
        resource=data.get("resource", ""),
        variables=tuple(_variable(one) for one in data.get("variables", ())),
        settings=tuple(Setting(**one) for one in data.get("settings", ())),
        benchmark=_flags(data.get("benchmark", ())),
        script=data.get("script", ""),
        program=data.get("program", ""),
        pmi=data.get("pmi", {}),
        starters=tuple(_starter(one) for one in data.get("starters", ())),
    )


def _reason(data: ReasonData) -> Reason:
    return Reason(data["why"], data["without"], data["source"])


def _pages(data: PageNeedData) -> PageNeed:
    return PageNeed(data["size"], int(data["per_gpu"]), int(data["more"]), _reason(data))


def _folder(data: NodeFolderData) -> NodeFolder:
    return NodeFolder(data["name"], data["host"], data["path"], _reason(data))


def _starter(data: StarterData) -> Starter:
    return Starter(data["form"], data["versions"], tuple(data["program"]), data["style"])


def _clue(data: ClueData) -> Clue:
    return Clue(
        kind=data["kind"],
        name=data["name"],
        version=data.get("version", ""),
        variant=data.get("variant", ""),
        value=data.get("value", ""),
    )


def _flags(data: Iterable[FlagData]) -> tuple[Flag, ...]:
    return tuple(Flag(tuple(one["flag"]), _reason(one)) for one in data)


def _variable(data: VariableData) -> Variable:
    return Variable(
        setting=data["set"],
        reason=_reason(data),
        before=data.get("before", ""),
        transport=data.get("transport", ""),
        several_nodes=data.get("several_nodes", False),
        only=data.get("only", {}),
    )
