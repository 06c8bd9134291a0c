"""Run `validate --bandwidth`: an all_reduce sweep, its table, and what is wrong with it."""

from typing import Any, Callable, Dict, List, NamedTuple, Sequence

from validate.check import SKIPPED, CheckResult
from validate.network import reference, table
from validate.network.checks import NETWORK, REFERENCE, SUMS, SWEEP, bad, blocked, good
from validate.network.job import Job, described
from validate.network.measured import Row, Run
from validate.network.refused import Refused
from validate.network.sizes import in_units
from validate.network.transport import Effort
from validate.remedy import ASK, on_host

SWEEP_PACE, SWEEP_LIMIT = (300.0, 0.4), 600.0
MOST_NAMED = 4

Show = Callable[[str], None]


class Sweep(NamedTuple):
    """Hold a sweep, what it was measured on, the sizes that are slower, and the reference."""

    run: Run
    facts: Dict[str, Any]
    falls: Sequence[reference.Fall] = ()
    before: Dict[str, Any] = {}

    def _before(self, row: Row) -> Dict[str, float]:
        speed = reference.speeds_of(self.before).get(row.size)
        return {} if speed is None else {"reference_busbw_GB_s": speed}

    def as_data(self) -> Dict[str, Any]:
        """Return the sweep for a JSON document."""
        return dict(
            self.facts,
            schema=reference.REFERENCE_SCHEMA,
            host=self.run.hosts[0],
            rows=[dict(row.as_data(), **self._before(row)) for row in self.run.rows],
            wrong=sum(row.wrong for row in self.run.rows),
            left_out=list(self.run.left_out),
            problem=self.run.problem,
            slower=[one.size for one in self.falls],
        )


def measure_bandwidth(job: Job, arguments: Any, show: Show) -> Sweep:
    """Measure, and print the table as it comes. Raises Refused for a reference of another kind."""
    facts = described(job)
    before = reference.read_reference(arguments.reference) if arguments.reference else {}
    if before:
        reference.refuse_other(arguments.reference, facts, before)
        if not reference.common(arguments.sizes, before):
            text = "`{}` has none of these sizes".format(arguments.reference)
            raise Refused(text, "leave --sizes out, or name sizes of that file")
    for line in table.heading(facts):
        show(line)
    effort = Effort(arguments.sizes, SWEEP_PACE, SWEEP_LIMIT)
    (run,) = job.runs.measure(
        [tuple(job.hosts)], effort, lambda _, row: show(table.line_of(row, before))
    )
    falls = reference.fallen(run.rows, before) if before and not run.problem else []
    if falls:
        run, falls = _again(job, run, before, show)
    for line in table.ending(run.rows, run.left_out, falls):
        show(line)
    found = Sweep(run, facts, falls, before)
    if arguments.save_reference:
        _keep(found, arguments.save_reference)
    return found


def _again(job: Job, run: Run, before: Dict[str, Any], show: Show) -> Any:
    """Measure sizes that fell once more: a machine has bad moments."""
    sizes = [one.size for one in reference.fallen(run.rows, before)]
    show("# measured again, because they were slow: " + ", ".join(map(in_units, sizes)))
    effort = Effort(sizes, SWEEP_PACE, SWEEP_LIMIT)
    (second,) = job.runs.measure(
        [run.hosts], effort, lambda _, row: show(table.line_of(row, before))
    )
    rows = reference.better(run.rows, second.rows)
    wrong = {host: run.wrong.get(host, 0) + second.wrong.get(host, 0) for host in run.hosts}
    wrong = {host: count for host, count in wrong.items() if count}
    again = run._replace(rows=rows, problem=second.problem, wrong=wrong)
    return again, reference.fallen(rows, before)


def _keep(sweep: Sweep, path: str) -> None:
    """Write a reference. Raises Refused if the sweep is none, or the file cannot be written."""
    if sweep.run.problem or any(row.wrong for row in sweep.run.rows):
        raise Refused(
            "this sweep is no reference: {}".format(sweep.run.problem or "sums are wrong"),
            "repair that first; `{}` was not written".format(path),
        )
    reference.write_reference(path, sweep.as_data())


def judged(sweep: Sweep, compared: bool, seconds: float) -> List[CheckResult]:
    """Return a result for each check of the sweep."""
    run = sweep.run
    if run.problem:
        found = [bad(SWEEP, run.problem, seconds=seconds)]
    else:
        found = [good(SWEEP, _best(run.rows, sweep.facts["transport"]), seconds)]
    if not run.rows:
        return found + [blocked(one, SWEEP) for one in (SUMS, REFERENCE)]
    found.append(_of_sums(run))
    if run.problem:
        return [*found, blocked(REFERENCE, SWEEP)]
    if not compared:
        why = "no --reference FILE was named"
        skipped = CheckResult(REFERENCE, NETWORK, SKIPPED, why, reason="not-applicable")
        return [*found, skipped]
    if not sweep.falls:
        return [*found, good(REFERENCE, "no size is slower than it was")]
    named = "; ".join(map(str, sweep.falls[:MOST_NAMED]))
    text = "{} of {} sizes are slower: {}".format(len(sweep.falls), len(run.rows), named)
    return [*found, bad(REFERENCE, text)]


def _best(rows: Sequence[Row], transport: str) -> str:
    best = max(rows, key=lambda row: row.busbw)
    text = "{} sizes over {}, busbw up to {:.3g} GB/s at {}"
    return text.format(len(rows), transport, best.busbw, in_units(best.size))


def _of_sums(run: Run) -> CheckResult:
    wrong = [row for row in run.rows if row.wrong]
    total = sum(row.size // 4 * row.ranks for row in run.rows)
    if not wrong:
        return good(SUMS, "0 of {:,} elements are wrong".format(total))
    counts = ", ".join("{} on {}".format(count, host) for host, count in run.wrong.items())
    sizes = ", ".join(in_units(row.size) for row in wrong[:MOST_NAMED])
    text = "{} of {:,} elements are wrong ({}), at {}"
    said = text.format(sum(row.wrong for row in wrong), total, counts, sizes)
    if len(run.wrong) == 1 < len(run.hosts):
        return bad(
            SUMS, said, "", on_host("start the job without {}".format(*run.wrong)).leads_to(ASK)
        )
    return bad(SUMS, said)
