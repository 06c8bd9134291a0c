"""The flow of a build: what each stage makes of what the one before it gives."""

from __future__ import annotations

from svg import BOLD, GREY, ITALIC, Box, arrow, picture, text

PURE, ENGINE, REGISTRY = "#e8f1fb", "#eaf6ea", "#fdf3e1"
STAGES = (
    ("matrix", "matrices/*.yaml", "axes, excludes", "Cell", PURE),
    ("resolve", "catalog rows", "every version pinned", "ImageSpec", PURE),
    ("plan", "layer order", "cheapest for the family", "order", PURE),
    ("render", "Dockerfile", "context, image.json", "Recipe", PURE),
    ("build", "BuildKit", "docker SDK, no CLI", "BuildRecord", ENGINE),
    ("validate", "in a container", "versions are measured", "ValidationRecord", ENGINE),
    ("publish", "by digest", "tags move together", "Publication", REGISTRY),
)
WIDTH, HEIGHT, STEP, TOP = 160, 86, 186, 58
GREEN, BLUE = "#2a7", "#35c"


def flow() -> str:
    """Draw the stages from left to right, with the record that each one gives."""
    body: list[str] = []
    boxes: list[Box] = []
    for number, (name, one, two, record, fill) in enumerate(STAGES):
        box = Box(14 + STEP * number, TOP, WIDTH, HEIGHT, fill)
        body += [box.draw, text(box.middle, TOP + 28, name, 17, BOLD)]
        body += [text(box.middle, TOP + 50, one), text(box.middle, TOP + 68, two)]
        body.append(text(box.middle, TOP - 14, record, 12, ITALIC, GREY))
        if boxes:
            middle = TOP + HEIGHT / 2
            body.append(arrow([(boxes[-1].right + 2, middle), (box.x - 3, middle)]))
        boxes.append(box)
    build, validate = boxes[4], boxes[5]
    below = TOP + HEIGHT
    gate = [(validate.middle, below + 2), (validate.middle, below + 32)]
    body.append(arrow([*gate, (build.middle, below + 32), (build.middle, below + 6)], GREEN))
    between = (build.middle + validate.middle) / 2
    said = "gate: the tag moves after validate --static passed"
    body.append(text(between, below + 49, said, fill=GREEN))
    pure = "the same input gives the same bytes; no engine, no network"
    body.append(text(boxes[1].right + 10, below + 32, pure, fill=BLUE))
    width = boxes[-1].right + 14
    journal = "journal (SQLite): every run, step, result and digest, by the id of the image"
    body.append(text(width / 2, 236, journal, fill=GREY))
    names = ", ".join(name for name, *_ in STAGES)
    return picture(width, 250, f"The flow: {names}", body)
