"""Write reports to the files that the command line names; `-` is stdout."""

import os
import sys
from typing import Any

from validate.report.junit import as_junit
from validate.report.markdown import as_markdown
from validate.report.report import Report


def save_all(arguments: Any, document: str, *reports: Report) -> None:
    """Write the JUnit, JSON and Markdown files that the command line asks for.

    `document` is the JSON. Raises OSError.
    """
    page = "\n".join(as_markdown(one) for one in reports)
    texts = ((arguments.junit, as_junit(*reports)), (arguments.json, document))
    for path, text in (*texts, (arguments.markdown, page)):
        if path:
            save(path, text)


def save(path: str, text: str) -> None:
    """Write a file completely or not at all.

    A path that is not a regular file, such as a pipe or /dev/stderr, is written to directly. The
    OSError names the path that was asked for: that of a full disk names none.
    """
    if path == "-":
        sys.stdout.write(text)
        return
    direct = os.path.exists(path) and not os.path.isfile(path)
    written = path if direct else path + ".part"
    try:
        with open(written, "w", encoding="utf-8") as file:
            file.write(text)
        if not direct:
            os.rename(written, path)
    except OSError as error:
        if not direct and os.path.isfile(written):
            os.unlink(written)
        error.filename = path
        raise
