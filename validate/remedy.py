"""Define remedies: what corrects a finding, where that has to be done, and what only looks.

A remedy is text with a kind. `shell` is a line for a shell of the container that was checked: it
corrects the container, and the check passes after it. The other kinds cannot be done there, and
the reports say so: `launch` is another start of the container, `build` another image, `host` a
command on the machine. What only looks is in `look`, never in the text. A remedy of the kind `look`
has no text: the looking has to tell what corrects it.
"""

from typing import Tuple

SHELL, LAUNCH, BUILD, HOST, LOOK = "shell", "launch", "build", "host", "look"
KINDS = (SHELL, LAUNCH, BUILD, HOST, LOOK)

RELAUNCH, REBUILD, DRAIN, ASK = "relaunch", "rebuild", "drain", "ask"
ACTIONS = {LAUNCH: RELAUNCH, BUILD: REBUILD, SHELL: REBUILD, HOST: DRAIN, LOOK: ASK}
"""Kind -> what the start of a job has to lead to. `relaunch` is another launch on the same host,
`rebuild` another image (a line for a shell corrects one container, and the next one has the fault
again), `drain` another host, `ask` a person: the network's where a peer or a link is at fault.
"""

PLACES = {LAUNCH: "at launch", BUILD: "in the image", HOST: "on the host"}
"""Kind -> where it has to be done; a line of any other kind is for the container itself."""


class Remedy(str):
    """Hold the text of a remedy with its kind, and a command that only looks (or none)."""

    kind = ""
    look = ""
    _action = ""

    def __new__(cls, text: str = "", kind: str = "", look: str = "", action: str = "") -> "Remedy":
        """Make a remedy. Raises ValueError for an unknown kind."""
        if kind and kind not in KINDS:
            raise ValueError("unknown kind of remedy {}".format(kind))
        made = super().__new__(cls, text)
        made.kind, made.look, made._action = kind, look, action
        return made

    @property
    def action(self) -> str:
        """Return what the start of a job has to lead to: that of its kind, or its own."""
        return self._action or ACTIONS.get(self.kind, ASK)

    def leads_to(self, action: str) -> "Remedy":
        """Return the remedy with an action of its own. Raises ValueError for an unknown one."""
        if action not in ACTIONS.values():
            raise ValueError("unknown action {}".format(action))
        return Remedy(self, self.kind, self.look, action)

    @property
    def given(self) -> bool:
        """Return whether there is anything to do or to look at."""
        return bool(self) or bool(self.look)


NO_REMEDY = Remedy()
"""What a check has that says in each of its ends what corrects it."""


def in_shell(text: str, look: str = "") -> Remedy:
    """Return a line that corrects the container when it is pasted in one of its shells."""
    return Remedy(text, SHELL, look)


def at_launch(text: str, look: str = "") -> Remedy:
    """Return how the container has to be started instead."""
    return Remedy(text, LAUNCH, look)


def in_image(text: str, look: str = "") -> Remedy:
    """Return what has to change in the matrix or the recipe, or how the image is built again."""
    return Remedy(text, BUILD, look)


def on_host(text: str, look: str = "") -> Remedy:
    """Return what has to be done on the machine that the container runs on."""
    return Remedy(text, HOST, look)


def only_look(text: str) -> Remedy:
    """Return a command that corrects nothing and shows what is wrong."""
    return Remedy("", LOOK, text)


def as_remedy(text: str) -> Remedy:
    """Return a text as a remedy: a check of a user's own suite may give a plain string."""
    return text if isinstance(text, Remedy) else Remedy(text)


def lines(text: str, kind: str, looking: str) -> Tuple[Tuple[str, str], ...]:
    """Return what reports print: pairs of a label, such as `remedy at launch`, and its text."""
    label = " ".join(filter(None, ("remedy", PLACES.get(kind, ""))))
    return tuple(pair for pair in ((label, text), ("look", looking)) if pair[1])
