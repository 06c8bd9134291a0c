"""Write a run of a verb into the journal, from its begin to its exit code."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.config.state import state_folder
from imagegen.errors import ImagegenError, Interrupted
from imagegen.journal.locks import holding_lock, run_lock_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from imagegen.journal.journal import Journal


@contextmanager
def journal_run(journal: Journal, verb: str, argv: Sequence[str] = ()) -> Iterator[int]:
    """Write a run into the journal: yield its id, and write the exit code at the end.

    `argv` is needed only where it differs from the arguments of this process.
    """
    run_id = journal.start_run(verb, argv or sys.argv[1:], str(Path.cwd()))
    code = 1
    try:
        with holding_lock(run_lock_path(state_folder(), run_id), lambda _: None):
            yield run_id
        code = 0
    except ImagegenError as error:
        code = error.exit_code
        raise
    except KeyboardInterrupt:
        code = Interrupted.exit_code
        raise
    finally:
        journal.end_run(run_id, code)
