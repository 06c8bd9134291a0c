"""Validate containers and machines that run already (`validate --hosts`), through testinfra.

The checks are those that are installed with the tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from imagegen.config.payload import expose_validate
from imagegen.errors import ConfigError, ImagegenError, ValidationError
from imagegen.events.waiting import waiting_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from imagegen.model.validation import Report


def validate_hosts(
    hosts: str, arguments: Sequence[str], on_line: Callable[[str], None]
) -> list[Report]:
    """Validate the hosts and return their JSON reports; call `on_line` with each host's table.

    Raises ConfigError where testinfra is not installed, and ValidationError for hosts in which no
    command can run.
    """
    try:
        import testinfra  # noqa: F401
    except ImportError:
        raise ConfigError.of(
            "`--hosts` needs testinfra", hint="`pip install 'imagegen[hosts]'`"
        ) from None
    expose_validate()
    from validate.arguments import parsed
    from validate.outside.hosts import HINT, visits
    from validate.report.json_document import from_data
    from validate.report.report import summary
    from validate.report.table import as_table

    if not hosts.isprintable():
        raise ConfigError.of(f"`--hosts {hosts!a}` has characters that no host has", hint=HINT)
    asked = parsed(["--hosts", hosts, *arguments])
    with waiting_for(hosts):
        reports, problems = visits([one for one in hosts.split(",") if one.strip()], asked)
    for one in reports:
        on_line(f"{one['host']} ({one['how']})")
        report = from_data(one)
        for line in [*as_table(report, colour=False).splitlines(), summary(report)]:
            on_line(line)
    if problems:
        raise ValidationError.of(problems[0], evidence=problems[1:], hint=HINT)
    return cast("list[Report]", reports)


def failures(reports: Sequence[Report]) -> ImagegenError | None:
    """Make the error that names the hosts that did not pass, and their failed checks; else None."""
    ill = [one for one in reports if one["exit_code"]]
    if not ill:
        return None
    evidence = [
        f"{one['host']}: {check['id']}: {check['measured']}"
        for one in ill
        for check in one["checks"]
        if check["outcome"] in ("failed", "error")
    ]
    evidence += [f"{one['host']}: required, but it did not run: {name}" for one in ill
                 for name in one["missing"]]  # fmt: skip
    return ValidationError.of(f"{len(ill)} of {len(reports)} hosts did not pass", evidence=evidence)
