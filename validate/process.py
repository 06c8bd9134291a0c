"""Run commands with a firm time limit, and end every process that a command started.

Output goes to files, not pipes: a grandchild that keeps a pipe open would make us wait for it.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from typing import IO, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set

from validate import endings
from validate.growing_file import GrowingFile, OnLine
from validate.restrictions import ends_first
from validate.sessions import processes_of, wait_for_end
from validate.unnamed import unnamed_file

DEFAULT_SECONDS = 30.0
GRACE_SECONDS = 3.0
"""Seconds between SIGTERM and SIGKILL: on SIGTERM mpirun ends its ranks."""
MISSING = 127
MOST_PATIENCE = 5.0

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def patience() -> float:
    """Return the factor by which every time limit is stretched, 1 to 5.

    The limits are chosen for a machine with one processor for each process that wants one. A
    command that is slow on a busier machine is not broken.
    """
    try:
        wanting = os.getloadavg()[0]
    except OSError:
        return 1.0
    return min(MOST_PATIENCE, max(1.0, wanting / (os.cpu_count() or 1)))


class Result(NamedTuple):
    """Hold how a command ended. `code` is 127 if there is no such program.

    `err` is without the lines of the loader; `complaints` has what they say.
    """

    argv: List[str]
    code: int
    out: str
    err: str
    timed_out: bool = False
    seconds: float = 0.0
    complaints: Sequence[endings.Complaint] = ()

    @property
    def killed_by(self) -> int:
        """Return the signal that ended the command or its ranks before their time; 0 for none."""
        return 0 if self.timed_out else endings.signal_of(self.code, self.out + self.err)

    @property
    def broken(self) -> bool:
        """Return whether a signal ended the command, or the loader could not start it."""
        return bool(self.killed_by or endings.UNLOADED.search(self.err))

    @property
    def ok(self) -> bool:
        """Return whether the command ended in time with exit code 0."""
        return self.code == 0 and not self.timed_out

    def tail(self, lines: int = 6) -> str:
        """Return the last lines that the command printed, stderr last.

        Lines that only frame a message, such as mpirun's dashes, are left out.
        """
        printed = (self.out + "\n" + self.err).splitlines()
        text = [line for line in printed if line.strip(" -=*#_")]
        return "\n".join(text[-lines:])

    def says(self) -> str:
        """Explain in one line why the command did not end well."""
        name = os.path.basename(self.argv[0])
        if self.timed_out:
            return "`{}` did not end within {:.0f} s".format(name, self.seconds)
        last = self.tail(1).strip() or "it said nothing"
        last = "it said nothing" if endings.NO_REASON.search(last) else last
        if self.killed_by:
            how = endings.name_of(self.killed_by)
            return "`{}` was ended by {}: {}".format(name, how, last)
        return "`{}` ended with exit code {}: {}".format(name, self.code, last)


class RunningCommand:
    """Run a command in a session of its own, at the same time as this process.

    `timeout` is in seconds from the start, on an idle machine. A program that cannot be started
    raises nothing: `result` reports it. Call `result` or `end`: either one ends all processes of
    the session.
    """

    def __init__(
        self,
        argv: List[str],
        timeout: float = DEFAULT_SECONDS,
        env: Optional[Dict[str, str]] = None,
        stdin: Optional[IO[bytes]] = None,
        folder: str = "/",
    ) -> None:
        self._argv, self._timeout = argv, timeout
        self._started = time.monotonic()
        self._files = contextlib.ExitStack()
        self._out, self._err = (self._files.enter_context(unnamed_file()) for _ in range(2))
        self._child: Optional["subprocess.Popen[bytes]"] = None
        self._problem = ""
        try:
            with _signals_later():
                self._child = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL if stdin is None else stdin,
                    stdout=self._out,
                    stderr=self._err,
                    env=_quiet(env),
                    cwd=folder,
                    start_new_session=True,
                )
                _RUNNING.add(self._child)
                ends_first(self._child.pid)
        except OSError as error:
            self._problem = "{}: {}".format(argv[0], error.strerror)
        except BaseException:
            self.end()
            raise

    def result(self, on_line: Optional[OnLine] = None) -> Result:
        """Wait for the end of the command and return how it ended.

        `on_line` is called with each line of stdout as it comes.
        """
        try:
            if self._child is None:
                return Result(self._argv, MISSING, "", self._problem)
            left = self._started + self._timeout * patience() - time.monotonic()
            try:
                timed_out = _wait(self._child, left, self._out, on_line)
            finally:
                _end(self._child)
            took = time.monotonic() - self._started
            out, err = _text(self._out), _text(self._err)
            code, said = self._child.returncode, endings.complaints(err)
            err = endings.without_complaints(err) if said else err
            return noted(Result(self._argv, code, out, err, timed_out, took, said))
        finally:
            self._files.close()

    def end(self) -> None:
        """End the command, whether it is done or not. After `result` this does nothing."""
        if self._child is not None and not self._out.closed:
            _end(self._child)
        self._files.close()


def run(
    argv: List[str],
    timeout: float = DEFAULT_SECONDS,
    env: Optional[Dict[str, str]] = None,
    on_line: Optional[OnLine] = None,
    stdin: Optional[IO[bytes]] = None,
    folder: str = "/",
) -> Result:
    """Run a command in a session of its own and wait for its end; `timeout` is in seconds.

    A program that cannot be started raises nothing: the result reports it. `env` replaces the
    environment if it is given. `on_line` is called with each line of stdout as it comes. `stdin` is
    an open file; without it the command reads nothing. `folder` is the working directory.
    """
    return RunningCommand(argv, timeout, env, stdin, folder).result(on_line)


@contextlib.contextmanager
def background(argv: List[str]) -> Iterator[None]:
    """Run a service while the block lasts, then end all processes of its session.

    Raises OSError if it does not start.
    """
    quiet = subprocess.DEVNULL
    with _signals_later():
        child = subprocess.Popen(
            argv, stdin=quiet, stdout=quiet, stderr=quiet, env=_quiet(None), start_new_session=True
        )
        _RUNNING.add(child)
    try:
        yield
    finally:
        _end(child)


_RUNNING: "Set[subprocess.Popen[bytes]]" = set()

BROKEN: List[Result] = []
"""Every command of this run that a signal ended or that the loader could not start, in order."""


def noted(result: Result) -> Result:
    """Keep a result among the broken ones, if it is one, and return it."""
    if result.broken:
        BROKEN.append(result)
    return result


def end_all() -> None:
    """End every command that still runs. A run that is asked to end calls this."""
    for child in list(_RUNNING):
        _end(child)


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Hold back signals that end the run until the started command is in the list of running ones.

    A signal between the two would leave the command running.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []  # type: List[int]
    before = [(number, signal.getsignal(number)) for number in ENDING]
    for number in ENDING:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for ending in came[:1]:
            os.kill(os.getpid(), ending)


def _quiet(env: Optional[Dict[str, str]]) -> Dict[str, str]:
    """Return the environment of a command. Byte code is off: a check must not change the image."""
    return dict(os.environ if env is None else env, PYTHONDONTWRITEBYTECODE="1")


def _wait(
    child: "subprocess.Popen[bytes]", timeout: float, out: IO[bytes], on_line: Optional[OnLine]
) -> bool:
    """Wait for the end of the child; return True if the time limit came first."""
    deadline = time.monotonic() + timeout
    tail = GrowingFile(out, on_line) if on_line else None
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        ended = wait_for_end(child, min(0.2, left) if tail else left)
        if tail:
            tail.tell(ended)
        if ended or time.monotonic() >= deadline:
            return not ended


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End a child: SIGTERM, then SIGKILL to its process group and to the rest of its session.

    The rest of the session is killed also when the child has ended normally.
    """
    if child.poll() is None:
        _signal_group(child.pid, signal.SIGTERM)
        wait_for_end(child, GRACE_SECONDS)
    _signal_group(child.pid, signal.SIGKILL)
    for pid in processes_of(child.pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    child.wait()
    _RUNNING.discard(child)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
