"""Read what the image promises from /etc/imagegen/image.json, schema 1.

Top level: schema, tool, image, matrix, cell, profile, device (`cpu` or `gpu`), os {id, ID,
VERSION_ID, arch, glibc, lib_dir}, env {name: value}, components {name: {version, variant, origin,
source, via, facts}}, omitted {component: reason}, suites [name], contract {caps, devices, ulimits,
shm_bytes, network}, patched [{path, reason}]: files of packages that the recipe itself changes. It
is written by imagegen/renderer/image_json.py. An image of another maker has none: discovery writes
one of what is there, with `inferred` (discovery/infer.py).
"""

import io
import json
from typing import Any, Dict, List, NamedTuple

DEFAULT_PATH = "/etc/imagegen/image.json"
SCHEMA = 1


class ExpectationError(Exception):
    """Signal that there is no usable expectation file. The message is written for a user."""


class Expected(NamedTuple):
    """Hold the data of the expectation file, with the lookups that checks need."""

    data: Dict[str, Any]
    path: str

    @property
    def components(self) -> Dict[str, Dict[str, Any]]:
        """Return the components of the image by name."""
        found: Dict[str, Dict[str, Any]] = self.data["components"]
        return found

    def has(self, component: str) -> bool:
        """Return whether the image has a component."""
        return component in self.components

    def version(self, component: str) -> str:
        """Return the promised version of a component. Raises KeyError if the image lacks it."""
        return str(self.components[component]["version"])

    def fact(self, component: str, name: str, default: Any = None) -> Any:
        """Return a fact of a component, or `default` if the component or the fact is missing."""
        return self.components.get(component, {}).get("facts", {}).get(name, default)

    def omission(self, component: str) -> str:
        """Return why the image lacks a component; empty if the file gives no reason."""
        return str(self.data.get("omitted", {}).get(component, ""))

    @property
    def inferred(self) -> bool:
        """Return whether no recipe wrote this: it says what was found in an image."""
        return bool(self.data.get("inferred", False))

    @property
    def suites(self) -> List[str]:
        """Return the names of the suites that apply to the image."""
        return [str(name) for name in self.data["suites"]]

    @property
    def env(self) -> Dict[str, str]:
        """Return the environment variables that the recipe sets."""
        return {str(name): str(value) for name, value in self.data.get("env", {}).items()}

    @property
    def os(self) -> Dict[str, str]:
        """Return the facts about the distribution, such as `ID`, `glibc` and `lib_dir`."""
        return {str(name): str(value) for name, value in self.data["os"].items()}

    @property
    def device(self) -> str:
        """Return the device that the image is for: `cpu` or `gpu`."""
        return str(self.data.get("device", "cpu"))

    @property
    def contract(self) -> Dict[str, Any]:
        """Return what a launch has to give the container; empty if the file does not say."""
        return dict(self.data.get("contract", {}))

    @property
    def user(self) -> str:
        """Return the name of the user that the image was made for; empty for root."""
        return str(self.data.get("user", {}).get("name", ""))

    @property
    def patched(self) -> Dict[str, str]:
        """Return the files of packages that the recipe itself changes, each with the reason."""
        return {str(one["path"]): str(one["reason"]) for one in self.data.get("patched", [])}


def load(path: str = DEFAULT_PATH) -> Expected:
    """Read and check an expectation file. Raises ExpectationError with a message for a user."""
    try:
        with io.open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (IOError, OSError) as error:
        raise ExpectationError("cannot read `{}`: {}".format(path, error.strerror)) from None
    except ValueError as error:
        raise ExpectationError("`{}` is not JSON: {}".format(path, error)) from None
    problem = _problem(data)
    if problem:
        raise ExpectationError("{}: {}".format(path, problem))
    return Expected(data, path)


def same_version(promised: str, measured: str) -> bool:
    """Return whether a measured version agrees with the promised one.

    A promise may leave out the last parts: `3.11` agrees with 3.11.2. A suffix after `+` counts
    only if the promise has one too (`1.11.0+cu113`).
    """
    if "+" not in promised:
        measured = measured.partition("+")[0]
    return measured == promised or measured.startswith(promised + ".")


def _problem(data: Any) -> str:
    if not isinstance(data, dict):
        return "not a JSON object"
    if data.get("schema") != SCHEMA:
        return "schema {!r}; this validate reads schema {}".format(data.get("schema"), SCHEMA)
    wanted = {"components": dict, "os": dict, "suites": list}
    wrong = [k for k, kind in sorted(wanted.items()) if not isinstance(data.get(k), kind)]
    wrong += [
        k for k in ("contract", "env", "omitted", "user") if not isinstance(data.get(k, {}), dict)
    ]
    if wrong:
        return "{} missing or of the wrong kind".format(", ".join(wrong))
    patched = data.get("patched", [])
    if not isinstance(patched, list) or not all(map(_is_patch, patched)):
        return "patched is not a list of objects with `path` and `reason`"
    for name, row in data["components"].items():
        if not isinstance(row, dict) or not row.get("version"):
            return "component `{}` has no version".format(name)
        if not isinstance(row.get("facts", {}), dict):
            return "the facts of component `{}` are not an object".format(name)
    return ""


def _is_patch(one: Any) -> bool:
    return isinstance(one, dict) and bool(one.get("path")) and bool(one.get("reason"))
