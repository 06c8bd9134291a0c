"""Test random requests: a yes against rules written out here, a no by trying everything.

`IMAGEGEN_EXAMPLES=2000` tries more of them, different ones every time.

The tables below are not read from the catalog that is tested.
"""

from __future__ import annotations

import itertools
import os
import shlex
import string
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from imagegen.catalog.reader import read_catalog
from imagegen.cli.main import main
from imagegen.config.payload import open_payload
from imagegen.model import constraint
from imagegen.model.catalog import Catalog
from imagegen.model.cell import Want
from imagegen.request.answer import answer_to, pinned
from imagegen.request.arguments import parse
from imagegen.resolver.blame import fits
from imagegen.resolver.refusal import Refusal
from imagegen.resolver.resolve import space_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.model.release import Release

FEW = settings(
    max_examples=int(os.environ.get("IMAGEGEN_EXAMPLES", "12")),
    deadline=None,
    derandomize="IMAGEGEN_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

GLIBC = {
    "centos7": "2.17", "centos8": "2.28", "debian10": "2.28", "debian11": "2.31",
    "debian12": "2.36", "debian13": "2.41", "rockylinux8": "2.28", "rockylinux9": "2.34",
    "rockylinux10": "2.39", "ubuntu16.04": "2.23", "ubuntu18.04": "2.27", "ubuntu20.04": "2.31",
    "ubuntu22.04": "2.35", "ubuntu24.04": "2.39", "ubuntu26.04": "2.43",
}  # fmt: skip
CC = {"K80": 3.7, "P100": 6.0, "V100": 7.0, "T4": 7.5, "A100": 8.0, "A10": 8.6, "H100": 9.0}
CUDA_WINDOWS = {
    "ubuntu16.04": (">=9.0", "<=11.4.0"), "ubuntu18.04": (">=9.2", "<=12.1.0"),
    "ubuntu20.04": (">=11.0", "<=12.9.1"), "ubuntu22.04": (">=11.7.0", "<14"),
    "ubuntu24.04": (">=12.5.1", "<14"), "centos7": (">=9.0", "<=12.4.0"),
}  # fmt: skip
FLOORS = {
    "9.0": "384.81", "9.1": "390.46", "9.2": "396.26", "10.0": "410.48", "10.1": "418.39",
    "10.2": "440.33", "11.0": "450.51", "11": "450.80.02", "12": "525.60.13", "13": "580",
}  # fmt: skip
TF_CUDA = {
    "1.12": "9.0", "1.13": "10.0", "1.14": "10.0", "1.15": "10.0", "2.1": "10.1", "2.3": "10.1",
    "2.4": "11.0", "2.5": "11.2", "2.11": "11.2", "2.12": "11.8", "2.15": "12.2", "2.17": "12.3",
    "2.18": "12.5",
}  # fmt: skip
WISHES = {
    "os": [*GLIBC],
    "python": ["3.5", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"],
    "torch": ["1.3.0", "1.6.0", "1.10.2", "1.11.0", "1.13.1", "2.0.1", "2.2", "2.6.0", "2.8.0"],
    "cuda": ["9.0", "10.1", "10.2", "11", "11.0", "11.3", "11.8", "12.1", "12.4", "12.6", "13.0"],
    "cudnn": ["7.6", "8", "8.2.0", "9"],
    "nccl": ["2.7.8", "2.8.4", "2.9.9", "2.18.5", "2.21.5", ">=2.20"],
    "tensorflow": [*TF_CUDA],
    "horovod": ["0.19.4", "0.21.3", "0.28.1", "any"],
    "gpu": [*CC],
    "driver": ["384.81", "418.87.01", "450.80.02", "470.57.02", "525.60.13", "550.54.14", "580"],
    "ofed": ["5.1-2.6.2.0", "5.4-3.1.0.0", "5.8-1.0.1.1"],
    "harp": ["1.3"],
    "device": ["cpu", "gpu"],
}


@cache
def shipped() -> Catalog:
    return read_catalog(open_payload(None))


def requests(least: int = 1, most: int = 4) -> st.SearchStrategy[dict[str, str]]:
    names = st.lists(st.sampled_from([*WISHES]), min_size=least, max_size=most, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries({n: st.sampled_from(WISHES[n]) for n in chosen})
    )


def wrong(pins: Mapping[str, str]) -> Iterator[str]:
    """Yield which rules a set of pins breaks."""
    glibc, cuda = Version(GLIBC[pins["os"]]), pins.get("cuda")
    torch, device = pins.get("torch"), pins.get("device")
    yield from _of_torch(pins, glibc) if torch else ()
    if cuda and pins["os"] in CUDA_WINDOWS:
        low, high = CUDA_WINDOWS[pins["os"]]
        if Version(cuda) not in SpecifierSet(f"{low},{high}"):
            yield "cuda-base-image"
    if cuda and Version(cuda) >= Version("12.8") and glibc < Version("2.27"):
        yield "glibc-of-cuda"
    if device == "cpu" and (cuda or "nccl" in pins or "gpu" in pins or "driver" in pins):
        yield "horovod-without-cuda"
    if "driver" in pins:
        for one in filter(None, (cuda, own_cuda(torch))):
            if Version(pins["driver"]) < Version(floor(one)):
                yield f"driver-of-cuda {one}"
    if "gpu" in pins and cuda and not window(cuda, CC[pins["gpu"]]):
        yield "compute-capability"
    if "cudnn" in pins and cuda and Version(cuda).major == 13 and pins["cudnn"] < "9.12":
        yield "cuda-of-cudnn" if Version(pins["cudnn"]) < Version("9.12") else ""
    yield from _of_the_rest(pins)


def _of_torch(pins: Mapping[str, str], glibc: Version) -> Iterator[str]:
    torch = Version(pins["torch"])
    python = Version(pins["python"])
    if torch >= Version("2.7") and glibc < Version("2.28"):
        yield "glibc-of-the-wheel"
    if torch.public == "2.6.0" and torch.local == "cu126" and glibc < Version("2.28"):
        yield "glibc-of-the-wheel"
    lows = ((Version("2.9"), "3.10"), (Version("2.5"), "3.9"), (Version("2.0"), "3.8"))
    low = next((minor for since, minor in lows if torch >= since), "3.5")
    if python < Version(low) or (torch < Version("2.6") and python >= Version("3.13")):
        yield "python-of-the-wheel"


def _of_the_rest(pins: Mapping[str, str]) -> Iterator[str]:
    torch, tensorflow = pins.get("torch"), pins.get("tensorflow")
    if "horovod" in pins and torch and Version(torch) >= Version("2.1"):
        yield "frameworks-of-horovod"
    if "horovod" in pins and Version(pins["horovod"]) >= Version("0.20"):
        if Version(pins["python"]) < Version("3.6"):
            yield "python-of-horovod"
        if tensorflow and Version(tensorflow) < Version("1.15"):
            yield "frameworks-of-horovod tensorflow"
    if tensorflow:
        minor = ".".join(tensorflow.split(".")[:2])
        wanted = TF_CUDA.get(minor)
        if wanted and "cuda" in pins and not pins["cuda"].startswith(wanted):
            yield "cuda-of-tensorflow"
        if "cudnn" in pins and Version(pins["cudnn"]).major != cudnn_major(tensorflow):
            yield "cudnn-of-tensorflow"
    if "harp" in pins and "nccl" in pins:
        if Version(pins["nccl"]) not in SpecifierSet(">=2.8.3,<2.19"):
            yield "net-plugin-of-nccl"
        if "rdma" in pins:
            yield "one-transport"
    if pins.get("rdma") == "5.1-2.6.2.0" and pins["os"] not in ("ubuntu18.04", "ubuntu20.04"):
        yield "os-of-ofed"


def cudnn_major(tensorflow: str) -> int:
    version = Version(tensorflow)
    return 7 if version < Version("2.4") else 8 if version < Version("2.18") else 9


def own_cuda(torch: str | None) -> str | None:
    """Return the CUDA that a PyTorch carries: 11.3 for `1.11.0+cu113`."""
    digits = (Version(torch).local or "").removeprefix("cu") if torch else ""
    return f"{digits[:-1]}.{digits[-1]}" if digits.isdigit() else None


def floor(cuda: str) -> str:
    major, minor = [*cuda.split("."), "0"][:2]
    return FLOORS.get(f"{major}.{minor}") or FLOORS[major]


def window(cuda: str, cc: float) -> bool:
    """Return whether a toolkit knows a compute capability, roughly from its support table."""
    major = Version(cuda).major
    lowest = 3.0 if major <= 10 else 3.5 if major == 11 else 5.0 if major == 12 else 7.2
    since = {7.5: "10.0", 8.0: "11.0", 8.6: "11.1", 9.0: "11.8"}
    return cc >= lowest and Version(cuda) >= Version(since.get(cc, "9.0"))


@FEW
@given(requests())
def test_a_yes_holds_against_the_rules(wishes: dict[str, str]) -> None:
    answer = answer_to(wishes, shipped())
    if isinstance(answer, Refusal):
        return
    pins = pinned(answer)
    for name, wish in wishes.items():
        key = "rdma" if name == "ofed" else name
        assert key in pins
        if name not in ("os", "gpu", "device", "driver"):
            assert constraint.matches(wish, pins[key]), (name, wish, pins)
        else:
            assert pins[key] == wish
    assert [one for one in wrong(pins) if one] == [], pins


@FEW
@given(requests(2, 4))
def test_a_no_names_rows_and_what_it_offers_holds(wishes: dict[str, str]) -> None:
    answer = answer_to(wishes, shipped())
    if not isinstance(answer, Refusal):
        return
    data = answer.as_data()
    assert len(data["conflicts"]) <= 5
    assert all(one["text"] for one in data["conflicts"])
    assert bool(data["conflicts"]) == (data["status"] == "impossible")
    sizes = [len(one["changes"]) for one in data["alternatives"]]
    assert sizes == sorted(sizes)
    for one in data["alternatives"]:
        words = shlex.split(one["command"])
        assert words[:2] == ["imagegen", "request"]
        again = answer_to(parse(words[2:], shipped()), shipped())
        assert not isinstance(again, Refusal), one["command"]
        assert one["pins"] == pinned(again)
        for name, (old, new) in one["changes"].items():
            assert old != new
            assert name in one["pins"] or new == "none" or name in ("gpu", "driver", "device")


@FEW
@given(requests())
def test_an_answer_is_the_same_every_time(wishes: dict[str, str]) -> None:
    backwards = dict(reversed(wishes.items()))
    first, second = answer_to(wishes, shipped()), answer_to(backwards, shipped())
    assert isinstance(first, Refusal) == isinstance(second, Refusal)
    if not isinstance(first, Refusal) and not isinstance(second, Refusal):
        assert pinned(first) == pinned(second)


# A catalog that is small enough to try everything.
KEPT = {
    "python": ("3.8.10", "3.10", "3.12", "3.6.9"),
    "torch": ("1.10.2+cu113", "1.11.0+cu113", "2.0.1+cu118", "2.8.0+cu128", "1.11.0+cpu"),
    "cuda": ("11.3.1", "11.8.0", "12.8.1"),
    "nccl": ("2.9.9", "2.15.5", "2.25.1"),
}
SYSTEMS = ("ubuntu18.04", "ubuntu20.04", "ubuntu22.04", "ubuntu24.04")
VIRTUAL = {"device": ("cpu", "gpu"), "flavour": ("devel", "runtime"), "gpu": ("V100", "A100", "P4")}


@cache
def small() -> Catalog:
    full = shipped()
    components = {
        name: replace(
            full.components[name],
            releases=tuple(
                row
                for row in full.components[name].releases
                if row.version in versions and row.variant not in ("source", "debian", "pypi")
            ),
        )
        for name, versions in KEPT.items()
    }
    virtual = {
        name: replace(
            full.virtual[name],
            releases=tuple(row for row in full.virtual[name].releases if row.version in kept),
        )
        for name, kept in VIRTUAL.items()
    }
    return Catalog({name: full.os[name] for name in SYSTEMS}, components, virtual)


def admits(name: str, wishes: tuple[str, ...], row: Release) -> bool:
    if name in VIRTUAL or name == "os":
        return any(wish in ("any", row.version) for wish in wishes)
    names = [row.version, *row.aliases]
    return any(constraint.matches(wish, one, row.variant) for wish in wishes for one in names)


def holds(chosen: Mapping[str, Any], exact: bool) -> bool:
    """Return whether rows agree, only by reading what each one says."""
    system = small().os[chosen["os"]]
    values = {"glibc": system.glibc}
    for name in ("gpu",):
        if name in chosen:
            values |= chosen[name].provides
    for name, row in chosen.items():
        if name == "os":
            continue
        spoken = [(*one, True) for one in row.requires.items()]
        spoken += [(*one, False) for one in {**row.limits, **row.known_with}.items()]
        spoken += (
            [] if exact and name == "torch" else [(*one, False) for one in row.built_for.items()]
        )
        for other, wishes, needed in spoken:
            if other == "os":
                if chosen["os"] not in wishes and "any" not in wishes:
                    return False
            elif other in values:
                if not any(constraint.matches(wish, values[other]) for wish in wishes):
                    return False
            elif other in chosen:
                if not admits(other, wishes, chosen[other]):
                    return False
            elif needed:
                return False
    return True


def anything(wants: Mapping[str, str]) -> bool:
    """Return whether any choice of rows agrees, by trying all of them."""
    catalog = small()
    rows: dict[str, list[Any]] = {"os": [*catalog.os]}
    for name, component in {**catalog.components, **catalog.virtual}.items():
        wish = wants.get(name)
        rows[name] = [r for r in component.releases if wish is None or admits(name, (wish,), r)]
        rows[name] += [None] if wish is None else []
    if "os" in wants:
        rows["os"] = [one for one in rows["os"] if one == wants["os"]]
    exact = "+" in wants.get("torch", "")
    return any(
        holds({name: row for name, row in zip(rows, some, strict=True) if row is not None}, exact)
        for some in itertools.product(*rows.values())
    )


@FEW
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "os": st.sampled_from(SYSTEMS),
            "python": st.sampled_from(["3.6", "3.8", "3.10", "3.12", ">=3.8,<3.12"]),
            "torch": st.sampled_from(["1.10", "1.11", "1.11.0+cu113", "1.11.0+cpu", "2", "2.8.0"]),
            "cuda": st.sampled_from(["11", "11.3", "11.8", "12.8", "any"]),
            "nccl": st.sampled_from(["2.9.9", "2.15", "2.25.1", "any"]),
            "gpu": st.sampled_from(VIRTUAL["gpu"]),
            "device": st.sampled_from(VIRTUAL["device"]),
        },
    )
)
def test_what_fits_is_what_trying_everything_finds(wishes: dict[str, str]) -> None:
    wants = [Want(name, wish, "the test") for name, wish in wishes.items()]
    assert fits(space_of(small(), wants), wants) == anything(wishes), wishes


@FEW
@given(
    st.lists(
        st.one_of(
            st.text(alphabet=string.printable + "é☃\x00\x1b", max_size=30),
            st.tuples(
                st.sampled_from([*WISHES, "rdma", "torchvision", "flavour", "instance", "toch"]),
                st.one_of(
                    st.text(alphabet=string.printable + "²☃", max_size=20),
                    st.text(alphabet="<>=!~.,*+-0123456789anyo", max_size=20),
                    st.sampled_from(["none", "any", "9" * 5000, "1!2", ">=", "==1.*", "a b c"]),
                ),
            ).map("=".join),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_no_argument_brings_more_than_an_error(
    project: object, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    del project
    words = [word for word in words if not word.startswith("-")] or ["="]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("imagegen.request.existing._label_here", lambda _: "")
        with pytest.raises(SystemExit) as ended:
            main(["request", "--", *words])
    out, err = capsys.readouterr()
    assert ended.value.code in (0, 2, 3, 4), (words, err)
    assert "Traceback" not in out + err
    assert "defect" not in err
    assert "\x1b" not in err
