"""Try the remedies that `validate` prints in broken images of the zoo.

A remedy of the kind `shell` is typed into a shell of the container, line for line, and `validate`
runs again in that shell. One of the kind `launch` starts the container anew with its options. One
of the kind `build` names the image that imagegen builds: the healthy one, without the break.
"""

from __future__ import annotations

import json
import shlex
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from running_image import started
from zoo_keeper import ZOO, animals, ids

from imagegen.engine.images import local_images
from imagegen.validation.in_container import contract_of, launch_spec
from validate.remedy import BUILD, LAUNCH, SHELL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zoo_keeper import Animal, Zoo

    from imagegen.engine.containers.containers import Container, LaunchSpec

FOLDER = "/run/imagegen-test"
"""A new folder, because the image's folders for temporary files may be broken."""
SIZES = {"g": 1 << 30, "m": 1 << 20}
PASTE_SECONDS = 900.0
GOOD = ("passed", "warned")


@dataclass(frozen=True)
class Trial:
    """Hold what `validate` said of a broken image, what was done, and what it said after that."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    check: str
    printed: str

    def outcome(self, report: Mapping[str, Any]) -> str:
        return next(str(one["outcome"]) for one in report["checks"] if one["id"] == self.check)

    @property
    def healed(self) -> bool:
        return self.outcome(self.after) == "passed"

    @property
    def worse(self) -> list[str]:
        """List the checks that passed before and do not pass now."""
        passed = {*ids(self.before, "passed")}
        return [one["id"] for one in self.after["checks"]
                if one["id"] in passed and one["outcome"] != "passed"]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Hold a check that an animal makes fail, and of which kind its remedy has to be."""

    animal: Animal
    check: str

    @property
    def kind(self) -> str:
        return self.animal.elsewhere.get(self.check, SHELL)


def cases() -> list[Case]:
    """List every finding of every animal."""
    return [Case(one, check) for one in animals() for check in (*one.fails, *one.warns)]


def short_cases(all_of_them: list[Case]) -> list[Case]:
    """Choose a case of each kind, on the image that is checked fastest, of the matrix `cpu`."""
    found: dict[str, Case] = {}
    usual = [one for one in all_of_them if "/" not in one.animal.image]
    for case in sorted(usual, key=lambda one: one.animal.image != "small"):
        found.setdefault(case.kind, case)
    return [*found.values()]


def tried(zoo: Zoo, case: Case) -> Trial:
    """Break an image, do what the remedy of a check says, and look again.

    Raises AssertionError where the remedy is of another kind than expected, or where what is pasted
    ends the shell.
    """
    animal, check, kind = case.animal, case.check, case.kind
    ref = zoo.keeper.make(ZOO / animal.name, zoo.image(animal.image))
    try:
        spec = specified(zoo, ref)
        before = look(zoo, animal, ref, spec)
        found = next(one for one in before["checks"] if one["id"] == check)
        assert found["outcome"] in ("failed", "warned"), found
        assert found["remedy_kind"] == kind, found
        if kind == BUILD:
            assert found["remedy"].startswith(("imagegen ", "RUN ")), found
            after = rebuilt(zoo, animal)
            return Trial(before, after, check, found["remedy"])
        if kind == LAUNCH:
            after = look(zoo, animal, ref, relaunched(spec, found["remedy"]))
            return Trial(before, after, check, found["remedy"])
        assert kind == SHELL, found
        with container(zoo, spec) as one:
            validated(one, animal.run, "")  # as a person did who now reads the remedy
            after = validated(one, animal.run, found["remedy"])
        return Trial(before, after, check, found["remedy"])
    finally:
        zoo.keeper.remove(ref)


def rebuilt(zoo: Zoo, animal: Animal) -> Mapping[str, Any]:
    """Return what is said of the image without the break; of layers, what the host says."""
    if animal.in_the_image:
        return zoo.keeper.look(zoo.image(animal.image), animal.run, look_into_layers=True)
    return zoo.healthy(animal.image, animal.run)


def specified(zoo: Zoo, ref: str) -> LaunchSpec:
    image = local_images.find(zoo.keeper.engine, ref)
    assert image is not None
    return launch_spec(image.id, contract_of(ref, image.labels))


def look(zoo: Zoo, animal: Animal, ref: str, spec: LaunchSpec) -> Mapping[str, Any]:
    """Return what `validate` says in a new container; of layers, what the host says."""
    if animal.in_the_image:
        return zoo.keeper.look(ref, animal.run, look_into_layers=True)
    with container(zoo, spec) as one:
        return validated(one, animal.run, "")


@contextmanager
def container(zoo: Zoo, spec: LaunchSpec) -> Iterator[Container]:
    with started(zoo.keeper.engine, spec) as one:
        one.make_folder(FOLDER)
        yield one


def validated(one: Container, arguments: tuple[str, ...], pasted: str) -> Mapping[str, Any]:
    """Type lines into a shell and run `validate` in the same shell; return its report."""
    report = f"{FOLDER}/report.json"
    argv = shlex.join(["validate", *arguments, "--json", report])
    text = f"{pasted}\nrm -f {report}\n{argv} > {FOLDER}/table < /dev/null\ntrue\n"
    one.write_file(f"{FOLDER}/lines", text.encode())
    # From a file on its standard input bash reads line after line, as from a terminal.
    result = one.exec(["bash", "-c", f"exec bash < {FOLDER}/lines"], PASTE_SECONDS)
    said = result.out + result.err
    assert result.code == 0, said
    try:
        found: dict[str, Any] = json.loads(one.read_file(report))
    except FileNotFoundError:
        raise AssertionError(said) from None
    return {**found, "said": said[-4000:]}


def relaunched(spec: LaunchSpec, remedy: str) -> LaunchSpec:
    """Return the start of a container that a line `docker run OPTIONS IMAGE` describes."""
    words = shlex.split(remedy, comments=True)
    assert words[:2] == ["docker", "run"], remedy
    assert words[-1] == "IMAGE", remedy
    for option in words[2:-1]:
        name, _, value = option.partition("=")
        if name == "--shm-size":
            spec = replace(spec, shm_bytes=int(value[:-1]) * SIZES[value[-1]])
        elif name == "--ulimit":
            limit, _, number = value.partition("=")
            spec = replace(spec, ulimits={**spec.ulimits, limit: int(number)})
        else:
            raise AssertionError(f"{option} of {remedy}")
    return spec
