"""Find what keeps the image's Python from starting, or hides the modules that the image has.

Python is started as a training script starts it, and then without variables, the working folder and
start-up files. What heals it names the setting.
"""

import json
import os
import re
from typing import Any, Dict, List, NamedTuple, Sequence

from validate.fixtures import Situation
from validate.probes.aside import aside, export, unset
from validate.probes.crashes import of_files, out_of_memory
from validate.probes.damage import damaged
from validate.probes.files import names
from validate.probes.import_errors import SLOW, Why, why
from validate.probes.interpreter import IMPORT_SECONDS, Answer, find_python
from validate.process import MISSING, Result, run
from validate.remedy import Remedy, in_image, in_shell

SECONDS = 30.0
SCRIPT = """
import json, sys
sys.stdout.write("\\n" + json.dumps({
    "path": sys.path, "prefix": sys.prefix, "builtin": sys.builtin_module_names,
    "inspect": sys.flags.inspect, "files": [
        getattr(sys.modules.get(name), "__file__", "")
        for name in ("sitecustomize", "usercustomize")
    ],
}) + "\\n")
"""
NEVER_LOADED = (
    *("test", "tests", "this", "antigravity", "idlelib", "lib2to3", "turtledemo", "turtle"),
    *("ensurepip", "venv", "tkinter"),
)
"""Modules of the standard library that no framework loads: a file of that name is no problem."""
FRAMEWORKS = ("torch", "horovod", "numpy", "tensorflow", "mxnet", "keras", "torchvision", "yaml")
DAMAGED = re.compile(
    r"file too short|invalid ELF header|ELF load command|cannot read file data|ELF file|"
    r"cannot map zero-fill|bad marshal data|EOF read where|null bytes|SyntaxError|no loadable seg"
)
"""What the loader and Python say of a damaged file."""
MOST_TRIES = 12


class Hidden(NamedTuple):
    """Hold a module of the image that another file hides."""

    by: str
    module: str
    own: str
    folder: str

    def __str__(self) -> str:
        return "{} hides {}".format(self.by, self.own)


class Finding(NamedTuple):
    """Hold what was seen at the start of Python and why; all texts are empty if it starts well."""

    seen: str = ""
    cause: str = ""
    remedy: Remedy = Remedy()
    harmless: bool = False
    """Whether imports work all the same."""


def finding(image: Situation) -> Finding:
    """Return what is wrong with the start of the image's Python; looked up once in a run."""
    found: Finding = image.once("python start", lambda: _look(image))
    return found


def _look(image: Situation) -> Finding:
    python, here = find_python(image.env, image.expected), _folder()
    usual = run([python, "-c", SCRIPT], SECONDS, image.env, folder=here)
    if usual.timed_out or usual.code == MISSING:
        return Finding()  # py.version says that
    apart = run([python, "-I", "-c", SCRIPT], SECONDS, image.env)
    if usual.ok and not _facts(usual) and not _facts(apart):
        return Finding()  # it is no Python at all: py.version says that
    if not usual.ok or not _facts(usual):
        return _does_not_start(image, python, usual, apart)
    if not apart.ok:
        return Finding()
    return _differs(image, usual, _facts(usual), _facts(apart), here)


def _folder() -> str:
    """Return the working folder; `/` if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _facts(result: Result) -> Dict[str, Any]:
    for line in reversed(result.out.splitlines()):
        if line.startswith("{") and '"path": [' in line:  # before 3.6 keys have any order
            found: Dict[str, Any] = json.loads(line)
            return found
    return {}


def _does_not_start(image: Situation, python: str, usual: Result, apart: Result) -> Finding:
    if not apart.ok:
        return _start_up_file(image, python, apart)
    seen = _first_error(usual)
    names_ = sorted(name for name in image.env if name.startswith("PYTHON"))
    guilty = [n for n in names_ if _starts(python, _without(image.env, [n]))]
    if not guilty and names_ and _starts(python, _without(image.env, names_)):
        guilty = names_
    if guilty:
        said = " ".join("{}={}".format(name, image.env[name]) for name in guilty)
        cause = "Python does not start with {}".format(said)
        return Finding(seen, cause, unset(guilty))
    cause = "a file in the working folder {} has the name of a module that Python loads first"
    return Finding(seen, cause.format(_folder()), in_shell("cd /   # and train there"))


def _starts(python: str, env: Dict[str, str]) -> bool:
    return run([python, "-c", SCRIPT], SECONDS, env, folder=_folder()).ok


def _without(env: Dict[str, str], gone: Sequence[str]) -> Dict[str, str]:
    return {name: value for name, value in env.items() if name not in gone}


def _aside(image: Situation, path: str) -> Remedy:
    return in_shell(aside(image.root, os.path.realpath(path.rstrip("/"))))


def _first_error(result: Result) -> str:
    """Return the line that says what went wrong: Python prints more after it."""
    wanted = re.compile(r"^(Fatal Python error|[\w.]*(Error|Exit|Exception)\b).*")
    lines = [line for line in result.err.splitlines() if wanted.match(line)]
    # What site raised comes last; what the start itself says comes first.
    fatal = [line for line in lines if line.startswith("Fatal")]
    others = [line for line in lines if not line.startswith("Fatal")]
    return "; ".join(fatal[:1] + others[-1:]) or result.says()


def _start_up_file(image: Situation, python: str, apart: Result) -> Finding:
    """Explain that Python starts only without its start-up files, if that is so."""
    if not run([python, "-I", "-S", "-c", SCRIPT], SECONDS, image.env).ok:
        return Finding()  # py.version says that
    files = re.findall(r'File "(/[^"]+)", line|Error processing line \d+ of (/[^:]+):', apart.err)
    paths = [one or other for one, other in files]
    path = (paths or ["a .pth file"])[-1]
    cause = "{} runs at each start of Python, and ends it".format(path)
    remedy = _aside(image, path) if paths else in_image("imagegen build")
    return Finding(_first_error(apart), cause, remedy)


def _differs(
    image: Situation, usual: Result, facts: Dict[str, Any], apart: Dict[str, Any], here: str
) -> Finding:
    """Compare the start of a training script with one that nothing outside changes."""
    if facts["prefix"] != apart["prefix"]:
        home = image.env.get("PYTHONHOME", "")
        seen = "Python takes {} for its home, not {}".format(facts["prefix"], apart["prefix"])
        return Finding(seen, "PYTHONHOME={}".format(home), unset(["PYTHONHOME"]))
    hidden = _hidden(facts["path"], apart["path"], apart["builtin"], here)
    if hidden:
        return _by_hidden(image, hidden, here)
    if facts["inspect"]:
        cause = "PYTHONINSPECT={}".format(image.env.get("PYTHONINSPECT", ""))
        seen = "Python waits for input after each script"
        return Finding(seen, cause, unset(["PYTHONINSPECT"]))
    said = usual.out.partition('\n{"path"')[0].strip()
    if said:
        file = "".join(filter(None, facts["files"])) or "a .pth file"
        seen = "Python prints `{}` at each start".format(said.splitlines()[0])
        return Finding(seen, "{} prints".format(file), in_image("imagegen build"), harmless=True)
    return Finding()


def _hidden(
    path: Sequence[str], own: Sequence[str], builtin: Sequence[str], here: str
) -> List[Hidden]:
    """List the modules that a training script gets from elsewhere than the image.

    `path` is where it looks, `own` is where Python looks without settings.
    """
    used = [one or here for one in path]
    extra = [one for one in used if one not in own]
    if "" in path and here != "/":
        extra.append("/")  # the checks run there
        used.insert(0, "/")
    found = []
    for folder in dict.fromkeys(extra):
        after = [one for one in used[used.index(folder) + 1 :] if one in own]
        for module, file in sorted(_modules(folder).items()):
            if module in builtin or module in NEVER_LOADED:
                continue
            provider = next((one for one in after if module in _modules(one)), "")
            if provider and (module in FRAMEWORKS or not provider.endswith("-packages")):
                mine = os.path.join(provider, _modules(provider)[module])
                found.append(Hidden(os.path.join(folder, file), module, mine, folder))
    return found


def _modules(folder: str) -> Dict[str, str]:
    """Map the modules that a folder provides to their files; a folder needs an `__init__.py`."""
    found = {}
    for name in names(folder):
        stem, dot, ending = name.partition(".")
        if dot and ending.rpartition(".")[2] in ("py", "so", "pyc"):
            found[stem] = name
        elif not dot and os.path.isfile(os.path.join(folder, name, "__init__.py")):
            found[name] = name + "/"
    return found


def _by_hidden(image: Situation, hidden: List[Hidden], here: str) -> Finding:
    seen = "; ".join(map(str, hidden[:3]))
    more = len(hidden) - 3
    seen += " and {} more".format(more) if more > 0 else ""
    folders = list(dict.fromkeys(one.folder for one in hidden))
    listed = image.env.get("PYTHONPATH", "").split(":")
    named = [one for one in folders if one in listed]
    if named:
        rest = ":".join(one for one in listed if one and one not in named)
        remedy = export({"PYTHONPATH": rest}) if rest else unset(["PYTHONPATH"])
        return Finding(seen, "PYTHONPATH names {}".format(" and ".join(named)), remedy)
    if folders[0] in (here, "/"):
        cause = "Python looks for modules in the working folder first, and that is {}"
        away = in_shell("cd /   # or give {} another name".format(hidden[0].by))
        remedy = away if folders[0] != "/" else _all_aside(image, hidden)
        return Finding(seen, cause.format(folders[0]), remedy)
    cause = "somebody installed it in {}, where Python looks first".format(folders[0])
    return Finding(seen, cause, _all_aside(image, hidden))


def _all_aside(image: Situation, hidden: List[Hidden]) -> Remedy:
    return in_shell("; ".join(_aside(image, one.by) for one in hidden))


def guilty_setting(image: Situation, script: str) -> Why:
    """Explain why a script fails that imports something: try it without what the launch set.

    Both texts are empty if the script fails in the image's own environment too.
    """
    python = find_python(image.env, image.expected)
    promised = {**image.expected.env, "PATH": image.env.get("PATH", "")}
    if _runs([python, "-I", "-c", script], promised):
        return _guilty_variable(image, python, script, promised)
    own = run([python, "-I", "-c", SCRIPT], SECONDS, promised)
    facts = _facts(own)
    line = "import sys; sys.path[:] = {!r}\n".format([str(one) for one in facts.get("path", [])])
    files = [str(one) for one in facts.get("files", []) if one]
    if files and _runs([python, "-I", "-S", "-c", line + script], promised):
        cause = "{} runs at each start of Python, and changes what it imports"
        return Why(cause.format(" and ".join(files)), _aside(image, files[0]))
    return Why()


def _runs(argv: List[str], env: Dict[str, str]) -> bool:
    return run(argv, IMPORT_SECONDS / MOST_TRIES, env).ok


def _guilty_variable(image: Situation, python: str, script: str, promised: Dict[str, str]) -> Why:
    changed = [name for name, value in image.env.items() if promised.get(name) != value]
    first = ("PYTHON", "LD_", "MALLOC", "GLIBC", "TORCH", "OMP", "MKL", "OPENBLAS", "KMP")
    changed.sort(key=lambda name: (not name.startswith(first), name))
    for name in changed[:MOST_TRIES]:
        if _runs([python, "-c", script], _without(image.env, [name])):
            setting = "{}={}".format(name, image.env[name])
            return Why("it works without {}".format(setting), unset([name]))
    text = "it works in the environment of the image alone: {} are set beside it"
    return Why(text.format(", ".join(changed[:4])), unset(changed[:4])) if changed else Why()


def why_not(image: Situation, answer: Answer, script: str) -> Why:
    """Explain why a script that imports a framework failed; both texts are empty if unknown."""
    if answer.timed_out:
        return SLOW
    found = finding(image)
    if found.seen and not found.harmless:
        return Why(found.cause, found.remedy)
    known = out_of_memory(image.root, answer.problem)
    if not known.cause and not answer.killed:
        whole_search = DAMAGED.search(answer.problem)
        argv = [find_python(image.env, image.expected)] if whole_search else []
        known = of_files(damaged(image, argv, answer.said))
    known = known if known.cause else why(answer, image.env)
    return known if known.cause or answer.killed else guilty_setting(image, script)
