"""Start an agent on every host of a job, over ssh or here, and exchange messages with them."""

import contextlib
import inspect
import json
import os
import queue
import sys
import threading
import time
from shlex import quote
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from validate.network import agent, sweep
from validate.process import Result, RunningCommand, end_all, patience

FORWARDED = ("NCCL_", "GLOO_", "UCX_", "UCC_", "TP_", "OMP_", "MKL_", "CUDA_VISIBLE_DEVICES")
"""Ranks get variables that begin like this, and the two of mpirun's `-x`, as ranks of a launch."""
PATHS = ("LD_LIBRARY_PATH", "PATH")
LOGIN_SECONDS, LIFE_SECONDS, ENDING_SECONDS = 20.0, 1800.0, 3.0
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "ServerAliveInterval=3")
BOOT = "import sys; exec(sys.stdin.buffer.raw.readline().decode())"
PROGRAM = """\
import sys, types
for name, text in {modules!r}:
    module = types.ModuleType(name)
    module.__path__ = []
    sys.modules[name] = module
    exec(compile(text, name, "exec"), module.__dict__)
module.main()
"""

Message = Dict[str, Any]


def agent_program() -> str:
    """Return the agent as one line of Python, so that a host needs nothing of ours."""
    ours = [(one.__name__, inspect.getsource(one)) for one in (sweep, agent)]
    modules = [(name, "") for name in ("validate", "validate.network")] + ours
    return "exec({!r})\n".format(PROGRAM.format(modules=modules))


def variables_of_ranks(env: Dict[str, str]) -> List[str]:
    """Name the variables that ranks get from here."""
    return sorted(name for name in env if name in PATHS or name.startswith(FORWARDED))


def remote_command(pythons: Sequence[str], env: Dict[str, str]) -> str:
    """Return the line for a shell of another host: the first of these Pythons starts the agent."""
    pairs = " ".join("{}={}".format(name, quote(env[name])) for name in variables_of_ranks(env))
    run = 'command -v "$p" > /dev/null 2>&1 && exec env {} "$p" -u -c {}'.format(pairs, quote(BOOT))
    names = " ".join(map(quote, pythons))
    none = "echo no Python 3 is there to run the ranks >&2; exit 127"
    return "for p in {}; do {}; done; {}".format(names, run, none)


class Agent:
    """Hold the agent on one host."""

    def __init__(
        self, name: str, argv: List[str], env: Dict[str, str], inbox: "queue.Queue[Any]"
    ) -> None:
        self.name, self._inbox = name, inbox
        self.result: Optional[Result] = None
        self.facts: Message = {}
        reading, self._writing = os.pipe()
        with os.fdopen(reading, "rb") as stdin:
            self._command = RunningCommand(argv, LIFE_SECONDS, env, stdin)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        self._write(agent_program())

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # it has ended: its result tells why
            os.write(self._writing, text.encode())

    def tell(self, command: Message) -> None:
        """Send a command."""
        self._write(json.dumps(command) + "\n")

    def _read(self) -> None:
        self.result = self._command.result(self._line)
        self._inbox.put((self.name, None))

    def _line(self, line: str) -> None:
        if line.startswith(sweep.MARK):
            self._inbox.put((self.name, json.loads(line[len(sweep.MARK) :])))

    def close(self) -> None:
        """Ask it to end."""
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1

    def ended(self, seconds: float) -> bool:
        """Return whether it ended within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


class Cluster:
    """Hold the agents of a job: this host first, the others in the order of their names.

    `lost` has the hosts that cannot be used, each with the reason.
    """

    def __init__(self, peers: Sequence[str], pythons: Sequence[str], env: Dict[str, str]) -> None:
        self._inbox: "queue.Queue[Tuple[str, Optional[Message]]]" = queue.Queue()
        self.me = os.uname().nodename
        self.lost: Dict[str, str] = {}
        self.agents: Dict[str, Agent] = {}
        here = [pythons[0], "-u", "-c", BOOT]
        line = remote_command(pythons, env)
        for name in [self.me, *(one for one in dict.fromkeys(peers) if one != self.me)]:
            argv = here if name == self.me else [*SSH, name, line]
            self.agents[name] = Agent(name, argv, env, self._inbox)

    def login(self) -> None:
        """Wait for the facts of every host; a name that leads back here takes our place."""
        answers = self.ask(list(self.agents), None, lambda said: "facts" in said, LOGIN_SECONDS)
        for name, said in answers.items():
            self.agents[name].facts = said["facts"]
        same = [n for n in self.names() if n != self.me and self.facts(n)["host"] == self.me]
        for name in same:
            self.agents.pop(name).close()
        if same and self.me in self.agents:
            mine = self.agents.pop(self.me)
            self.me = mine.name = same[0]
            self.agents = {mine.name: mine, **self.agents}

    def names(self) -> List[str]:
        """List the hosts that can be used."""
        return [name for name in self.agents if name not in self.lost]

    def facts(self, name: str) -> Message:
        """Return the facts of a host."""
        return self.agents[name].facts

    def leave_out(self, name: str) -> None:
        """Use a host no more, without a word that it is lost."""
        self.agents.pop(name).close()

    def address(self, name: str) -> str:
        """Return the address of a host, as the others see it: that of the ssh connections."""
        if name != self.me:
            return str(self.facts(name)["address"] or name)
        seen = [str(self.facts(one)["from"]) for one in self.names() if one != self.me]
        return next(filter(None, seen), "127.0.0.1" if len(self.names()) < 2 else self.me)

    def ask(
        self,
        names: Sequence[str],
        commands: Optional[Dict[str, Message]],
        is_answer: Callable[[Message], bool],
        seconds: float,
        on_message: Optional[Callable[[str, Message], None]] = None,
    ) -> Dict[str, Message]:
        """Send each host its command, and wait for the answers; a host that gives none is lost."""
        for name in names if commands else ():
            self.agents[name].tell((commands or {})[name])
        answers: Dict[str, Message] = {}
        end = time.monotonic() + seconds * patience()
        while set(names) - set(answers) - set(self.lost):
            try:
                name, said = self._inbox.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                break
            if said is None:
                self._has_ended(name)
            elif is_answer(said) and name in names:
                answers[name] = said
            elif on_message:
                on_message(name, said)
        for name in set(names) - set(answers) - set(self.lost):
            self.lost[name] = "it did not answer within {:.0f} s".format(seconds * patience())
        return answers

    def _has_ended(self, name: str) -> None:
        one = self.agents.get(name)
        if one is not None and one.result is not None:
            self.lost[name] = one.result.says()

    def close(self) -> None:
        """End all agents, and what they started."""
        for one in self.agents.values():
            one.close()
        end = time.monotonic() + ENDING_SECONDS
        if not all(one.ended(max(end - time.monotonic(), 0.0)) for one in self.agents.values()):
            end_all()

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def interpreters(stated: str) -> List[str]:
    """List the Pythons that may run the agent, the one of the recipe first."""
    return list(dict.fromkeys([stated, sys.executable, "python3"]))
