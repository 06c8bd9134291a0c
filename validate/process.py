"""Run a command with a time limit that holds: nothing of it survives the end of it.

Output goes to files, not pipes: a grandchild that holds a pipe open cannot hold us up.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from typing import IO, Callable, Dict, Iterator, List, NamedTuple, Optional, Set

DEFAULT_SECONDS = 30.0
GRACE_SECONDS = 3.0
"""Between asking and killing: mpirun takes its ranks along when it is asked."""
MISSING = 127
MOST_PATIENCE = 5.0

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

OnLine = Callable[[str], None]


def patience() -> float:
    """By how much every limit is stretched: they are for a machine that has a processor for each
    process that wants one, and what is slow on another one is not broken."""
    try:
        wanting = os.getloadavg()[0]
    except OSError:
        return 1.0
    return min(MOST_PATIENCE, max(1.0, wanting / (os.cpu_count() or 1)))


class Result(NamedTuple):
    """How a command ended. `code` is 127 where there is no such program."""

    argv: List[str]
    code: int
    out: str
    err: str
    timed_out: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out

    def tail(self, lines: int = 6) -> str:
        """The last lines of what it printed, errors last; without the rules that frame a message,
        as mpirun's."""
        printed = (self.out + "\n" + self.err).splitlines()
        text = [line for line in printed if line.strip(" -=*#_")]
        return "\n".join(text[-lines:])

    def says(self) -> str:
        """Why it did not end well, in one line."""
        name = os.path.basename(self.argv[0])
        if self.timed_out:
            return "`{}` did not end within {:.0f} s".format(name, self.seconds)
        last = self.tail(1).strip() or "it said nothing"
        return "`{}` ended with exit code {}: {}".format(name, self.code, last)


class RunningCommand:
    """A command in a session of its own that runs beside us; `result` waits for its end.

    `timeout` is in seconds from the start, on an idle machine. Raises nothing of its own. Nothing
    of the session survives `result` or `end`, one of which has to be called.
    """

    def __init__(
        self,
        argv: List[str],
        timeout: float = DEFAULT_SECONDS,
        env: Optional[Dict[str, str]] = None,
        stdin: Optional[IO[bytes]] = None,
    ) -> None:
        self._argv, self._timeout = argv, timeout
        self._started = time.monotonic()
        self._files = contextlib.ExitStack()
        self._out, self._err = (self._files.enter_context(_file()) for _ in range(2))
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
                    cwd="/",
                    start_new_session=True,
                )
                _RUNNING.add(self._child)
        except OSError as error:
            self._problem = "{}: {}".format(argv[0], error.strerror)
        except BaseException:
            self.end()
            raise

    def result(self, on_line: Optional[OnLine] = None) -> Result:
        """How it ended; `on_line` is told each line of stdout as it comes."""
        try:
            if self._child is None:
                return Result(self._argv, MISSING, "", self._problem)
            left = self._started + self._timeout * patience() - time.monotonic()
            try:
                timed_out = _wait(self._child, left, _Tail(self._out, on_line) if on_line else None)
            finally:
                _end(self._child)
            took = time.monotonic() - self._started
            out, err = _text(self._out), _text(self._err)
            return Result(self._argv, self._child.returncode, out, err, timed_out, took)
        finally:
            self._files.close()

    def end(self) -> None:
        """Whether it is done or not; nothing happens after `result`."""
        if self._child is not None and not self._out.closed:
            _end(self._child)
        self._files.close()


def run(
    argv: List[str],
    timeout: float = DEFAULT_SECONDS,
    env: Optional[Dict[str, str]] = None,
    on_line: Optional[OnLine] = None,
    stdin: Optional[IO[bytes]] = None,
) -> Result:
    """Run a command in a session of its own; `timeout` in seconds. Raises nothing of its own.

    `env` replaces the environment where it is given; `on_line` is told each line of stdout as
    it comes; `stdin` is an open file, else there is none.
    """
    return RunningCommand(argv, timeout, env, stdin).result(on_line)


@contextlib.contextmanager
def background(argv: List[str]) -> Iterator[None]:
    """A service that runs for as long as the block lasts; nothing of its session survives that.
    Raises OSError where it does not start."""
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


def end_all() -> None:
    """End every command that still runs, for a run that is asked to end."""
    for child in list(_RUNNING):
        _end(child)


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Keep back a signal that ends the run until the command that starts is noted: one that comes
    between the two would leave the command running."""
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


def _file() -> IO[bytes]:
    """For what a command prints; without a name, so that nothing of it can be left."""
    return tempfile.TemporaryFile()


def _quiet(env: Optional[Dict[str, str]]) -> Dict[str, str]:
    """A check leaves no byte code behind in the image that it looks at."""
    return dict(os.environ if env is None else env, PYTHONDONTWRITEBYTECODE="1")


class _Tail:
    """Hands on the lines of a growing file."""

    def __init__(self, file: IO[bytes], on_line: OnLine) -> None:
        self._file = file
        self._on_line = on_line
        self._told = 0

    def tell(self, last: bool) -> None:
        size = os.fstat(self._file.fileno()).st_size - self._told
        data = os.pread(self._file.fileno(), size, self._told)
        end = len(data) if last else data.rfind(b"\n") + 1
        for line in data[:end].splitlines():
            self._on_line(line.decode("utf-8", "replace"))
        self._told += end


def _wait(child: "subprocess.Popen[bytes]", timeout: float, tail: Optional[_Tail]) -> bool:
    """Wait for the end of the child; True if the time was up first."""
    deadline = time.monotonic() + timeout
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(min(0.2, left) if tail else left)
        ended = child.poll() is not None
        if tail:
            tail.tell(ended)
        if ended or time.monotonic() >= deadline:
            return not ended


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Ask, then kill its process group; then what is left of its session, also after a normal
    end."""
    if child.poll() is None:
        _signal_group(child.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE_SECONDS)
    _signal_group(child.pid, signal.SIGKILL)
    for pid in _session(child.pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    child.wait()
    _RUNNING.discard(child)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _session(leader: int) -> List[int]:
    """Processes of a session: the ranks of mpirun have process groups of their own."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/{}/stat".format(name)) as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[3] == str(leader) and int(name) != leader:
            found.append(int(name))
    return found


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
