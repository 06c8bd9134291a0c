"""Write the report of a nightly: JSON for programs, Markdown for a ticket or a chat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from imagegen.model.night import NightReport


def as_json(report: NightReport) -> str:
    """Write the report for programs."""
    return json.dumps(
        {
            "matrices": list(report.matrices),
            "headline": report.headline,
            "broken": len(report.broken),
            "changed": report.changed,
            "cells": [
                {
                    "cell": cell.cell,
                    "image": cell.image,
                    "build": cell.build,
                    "seconds": round(cell.seconds, 1),
                    "image_id": cell.image_id,
                    "validation": cell.validation,
                    "publication": cell.publication,
                    "digest": cell.digest,
                    "detail": list(cell.detail),
                    "warnings": list(cell.warnings),
                }
                for cell in report.cells
            ],
        },
        indent=2,
        sort_keys=True,
    )


def as_markdown(report: NightReport) -> str:
    """Write the report for a ticket or a chat."""
    lines = [
        f"# Nightly {', '.join(report.matrices)}",
        "",
        f"{report.headline[:1].upper()}{report.headline[1:]}.",
        "",
        "| cell | build | validation | publication | digest |",
        "| --- | --- | --- | --- | --- |",
    ]
    for cell in report.cells:
        build = f"{cell.build} ({cell.seconds:.0f} s)" if cell.seconds else cell.build
        row = (
            cell.cell,
            build,
            cell.validation or "-",
            cell.publication or "-",
            cell.digest or "-",
        )
        lines.append(f"| {' | '.join(row)} |")
    for cell in report.broken:
        lines += ["", f"## {cell.cell}", "", "```", *cell.detail, "```"]
    for cell in report.cells:
        if cell.warnings:
            lines += ["", f"## Warning: {cell.cell}", "", "```", *cell.warnings, "```"]
    return "\n".join(lines) + "\n"
