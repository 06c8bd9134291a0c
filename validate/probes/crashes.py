"""Explain why a signal ended a command: memory, a damaged file, a limit, or the processor."""

import os
import resource
import signal
from typing import Callable, Dict

from validate import endings
from validate.fixtures import Situation
from validate.probes import limits
from validate.probes.aside import one_line
from validate.probes.damage import damaged
from validate.probes.files import read, under
from validate.probes.import_errors import Why
from validate.probes.memory import free_on_host, memory
from validate.process import Result
from validate.remedy import at_launch, in_image, in_shell, on_host, only_look

MIB = 1 << 20
SMALL_STACK = 1 * MIB
FULL = 0.98
"""The share of a file system in use at which a page of a mapped file finds no room."""
FAULT = only_look(
    "python3 -X faulthandler -c 'import torch'   # says in which function a program crashes"
)
MORE_MEMORY = at_launch("docker run --memory 16g IMAGE   # a pod: resources.limits.memory")


def explain(image: Situation, result: Result) -> Why:
    """Return cause and remedy of a command that a signal ended."""
    number = result.killed_by
    known = _REASONS.get(number, _unknown)
    return known(image, result)


def _killed(image: Situation, _: Result) -> Why:
    """Explain SIGKILL: the kernel sends it for want of memory; nothing else here does."""
    found = memory(image.root)
    if found.ran_out:
        return Why("out of memory: {}".format(found), MORE_MEMORY)
    left = limits.bytes_in_words(free_on_host(image.root))
    text = "it was killed from outside: {}; the machine has {} free"
    remedy = "dmesg | grep -i -A3 'out of memory'   # is it the machine that ran out of memory?"
    return Why(text.format(found, left), on_host(remedy))


def _broken_file(image: Situation, result: Result) -> Why:
    """Explain a signal that a damaged file causes: its pages are missing, or are no code."""
    files = damaged(image, result.argv, result.out + result.err)[:3]
    if files:
        text = "truncated or damaged file: {}".format(", ".join(map(str, files)))
        lines = [one.remedy for one in files]
        again = one_line(dict.fromkeys(lines)) if all(lines) else ""
        return Why(text, in_shell(again) if again else in_image("imagegen build"))
    found = _no_room(image, result)
    return found if found.cause else _whole(result)


def _no_room(image: Situation, result: Result) -> Why:
    """Explain a crash by a limit: a full place for mapped files, or a small stack."""
    stack = limits.soft_limit("stack")
    if result.killed_by == signal.SIGSEGV and limits.UNLIMITED != stack < SMALL_STACK:
        text = "the stack may have {} only".format(limits.bytes_in_words(stack))
        return Why(text, at_launch("docker run --ulimit stack=67108864 IMAGE"))
    full = [place for place in ("/dev/shm", "/tmp") if _share_used(under(image.root, place)) > FULL]
    if result.killed_by == signal.SIGBUS and full:
        text = "{} is full: a file that is mapped into memory finds no room there"
        remedy = "docker run --shm-size=32g IMAGE   # or remove what fills {}"
        return Why(text.format(full[0]), at_launch(remedy.format(full[0])))
    return Why()


def _share_used(place: str) -> float:
    try:
        found = os.statvfs(place)
    except OSError:
        return 0.0
    return 1 - found.f_bavail / found.f_blocks if found.f_blocks else 0.0


def _whole(result: Result) -> Why:
    """Say that the program itself crashed: what it loads is as its packages installed it."""
    text = "it crashed by itself ({}): its files are whole, as far as packages know them"
    return Why(text.format(endings.name_of(result.killed_by)), FAULT)


def _processor(image: Situation, result: Result) -> Why:
    found = _broken_file(image, result)
    if found.cause.startswith("truncated"):
        return found
    text = "it was compiled for another processor: {} does not know one of its instructions"
    return Why(
        text.format(_processor_name(image.root)), in_image("imagegen build   # on this kind")
    )


def _processor_name(root: str) -> str:
    lines = read(under(root, "/proc/cpuinfo")).splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or ["unknown"])[0]


def _aborted(image: Situation, result: Result) -> Why:
    found = out_of_memory(image.root, result.out + result.err)
    last = result.tail(1).strip() or "it said nothing"
    return found if found.cause else Why("it ended itself: {}".format(last), FAULT)


def _limited(words: str, kind: int, ulimit: str) -> Callable[[Situation, Result], Why]:
    def why(_: Situation, __: Result) -> Why:
        text = "it reached its limit of {}, {}"
        value = resource.getrlimit(kind)[0]
        return Why(
            text.format(words, value), at_launch("docker run --ulimit {}=-1 IMAGE".format(ulimit))
        )

    return why


def _forbidden(_: Situation, __: Result) -> Why:
    text = "a filter of system calls (seccomp) forbids one that it makes"
    return Why(text, at_launch("docker run --security-opt seccomp=unconfined IMAGE"))


def _unknown(_: Situation, result: Result) -> Why:
    text = "something sent it {}".format(endings.name_of(result.killed_by))
    return Why(text, on_host("dmesg | tail   # what the kernel says of it"))


OUT_OF_MEMORY = (
    *("MemoryError", "bad_alloc", "Cannot allocate memory", "out of memory", "OutOfMemory"),
    *("ENOMEM", "can't allocate memory", "failed to map segment from shared object"),
)


def out_of_memory(root: str, said: str) -> Why:
    """Explain a message about memory; both texts are empty if it is not about memory."""
    if not any(words in said for words in OUT_OF_MEMORY) or "CUDA out of memory" in said:
        return Why()
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if space != resource.RLIM_INFINITY:
        text = "out of memory: a process may use {} of addresses (ulimit -v)"
        return Why(text.format(limits.bytes_in_words(space)), in_shell("ulimit -v unlimited"))
    return Why("out of memory: {}".format(memory(root)), MORE_MEMORY)


_REASONS: Dict[int, Callable[[Situation, Result], Why]] = {
    signal.SIGKILL: _killed,
    signal.SIGBUS: _broken_file,
    signal.SIGSEGV: _broken_file,
    signal.SIGILL: _processor,
    signal.SIGABRT: _aborted,
    signal.SIGXCPU: _limited("processor time", resource.RLIMIT_CPU, "cpu"),
    signal.SIGXFSZ: _limited("the size of a file", resource.RLIMIT_FSIZE, "fsize"),
    signal.SIGSYS: _forbidden,
}
