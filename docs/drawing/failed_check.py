"""A check that fails, with its cause and its remedy: a recorded report, as `validate` prints it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.text import Text
from screens import picture_of

from imagegen.config.payload import expose_validate

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = "validate --only mpi,lim"
COLUMNS = 132


def failed_check(recorded: Path) -> str:
    """Draw the table of a report."""
    expose_validate()
    from validate.report.json_document import from_data
    from validate.report.report import summary
    from validate.report.table import as_table

    report = from_data(json.loads(recorded.read_text(encoding="utf-8")))
    shown = f"$ {COMMAND}\n{as_table(report, colour=True)}\n\n{summary(report)}"
    title = "in a container that was started without --shm-size"
    return picture_of("failed-check", title, COLUMNS, Text.from_ansi(shown))
