"""Test ELF files and the loader's cache: what an object needs, and what is missing."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.probes import (
    elf,
    ldcache,
)

if TYPE_CHECKING:
    from pathlib import Path


def _object(
    needed: list[str],
    soname: str,
    runpath: str = "",
    wants: dict[str, list[str]] | None = None,
    defines: list[str] | None = None,
) -> bytes:
    """Build the smallest shared object with a dynamic section, in one loaded segment."""
    names = b"\0"

    def name_of(text: str) -> int:
        nonlocal names
        names += text.encode() + b"\0"
        return len(names) - len(text) - 1

    tags = [(1, name_of(n)) for n in needed] + [(14, name_of(soname))]
    tags += [(29, name_of(runpath))] if runpath else []
    needs = _needs({name_of(n): [name_of(v) for v in vs] for n, vs in (wants or {}).items()})
    versions = _versions([name_of(version) for version in (defines or [])])
    tables = [(0x6FFFFFFE, needs, len(wants or {})), (0x6FFFFFFC, versions, len(defines or []))]
    tables = [table for table in tables if table[2]]
    dynamic_at = 64 + 2 * 56
    at = dynamic_at + 16 * (len(tags) + 2 + 2 * len(tables))
    for tag, data, count in tables:
        tags += [(tag, at), (tag + 1, count)]
        at += len(data)
    dynamic = b"".join(struct.pack("<qQ", *tag) for tag in [*tags, (5, at), (0, 0)])
    body = b"".join(data for _, data, _ in tables) + names
    total = dynamic_at + len(dynamic) + len(body)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQ", 3, 62, 1, 0, 64, 0)
    head += struct.pack("<IHHHHHH", 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, total, total, 4096)
    size = len(dynamic)
    dyn = struct.pack("<IIQQQQQQ", 2, 4, dynamic_at, dynamic_at, dynamic_at, size, size, 8)
    return head + load + dyn + dynamic + body


def _needs(wants: dict[int, list[int]]) -> bytes:
    """Build DT_VERNEED: libraries with their versions, by the offsets of their names."""
    table = b""
    for file, versions in wants.items():
        table += struct.pack("<HHIII", 1, len(versions), file, 16, 16 * (len(versions) + 1))
        table += b"".join(struct.pack("<IHHII", 0, 0, 2, name, 16) for name in versions)
    return table


def _versions(defined: list[int]) -> bytes:
    """Build DT_VERDEF from the offsets of the names of versions."""
    entry = "<HHHHIIIII"
    return b"".join(struct.pack(entry, 1, 0, 2, 1, 0, 20, 28, name, 0) for name in defined)


def test_an_object_says_what_it_is_and_needs(tmp_path: Path) -> None:
    path = tmp_path / "liba.so.1"
    path.write_bytes(_object(["libb.so.2", "libc.so.6"], "liba.so.1", "$ORIGIN/x:/opt/lib"))
    found = elf.read_elf(str(path))
    assert found == elf.Elf("liba.so.1", ("libb.so.2", "libc.so.6"), (), ("$ORIGIN/x", "/opt/lib"))


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01", _object([], "a")[:100]])
def test_what_is_no_whole_object_is_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    assert elf.read_elf(str(path)) is None


def test_the_loader_follows_needs_and_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    top, middle = tmp_path / "top.so", tmp_path / "x" / "libmiddle.so.1"
    top.write_bytes(_object(["libmiddle.so.1"], "", "$ORIGIN/x"))
    middle.write_bytes(_object(["libgone.so.3"], "libmiddle.so.1"))
    loader = ldcache.Loader({}, [], [])
    assert loader.missing([str(top)]) == {"libgone.so.3": str(middle)}


def test_a_name_that_the_same_process_loads_elsewhere_is_not_missing(tmp_path: Path) -> None:
    one, two = tmp_path / "one.so", tmp_path / "libtwo.so"
    one.write_bytes(_object(["libtwo.so.2"], ""))
    two.write_bytes(_object([], "libtwo.so.2"))
    assert ldcache.Loader({}, [], []).missing([str(one), str(two)]) == {}


def test_an_object_says_which_symbol_versions_it_needs_and_has(tmp_path: Path) -> None:
    path = tmp_path / "liba.so.1"
    wants = {"libc.so.6": ["GLIBC_2.34", "GLIBC_2.38"], "libm.so.6": ["GLIBC_2.29"]}
    path.write_bytes(_object(["libc.so.6", "libm.so.6"], "liba.so.1", "", wants, ["A_1", "A_2"]))
    found = elf.read_elf(str(path))
    assert found is not None
    assert dict(found.wants) == {name: tuple(versions) for name, versions in wants.items()}
    assert found.defines == {"A_1", "A_2"}


def test_a_version_that_the_library_lacks_is_named_with_the_newest_one(tmp_path: Path) -> None:
    extension, library = tmp_path / "_x.so", tmp_path / "libc.so.6"
    wants = {"libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.38"]}
    extension.write_bytes(_object(["libc.so.6"], "", "", wants))
    defines = ["GLIBC_2.2.5", "GLIBC_2.36", "GLIBC_2.9", "GLIBC_PRIVATE"]
    library.write_bytes(_object([], "libc.so.6", "", None, defines))
    loader = ldcache.Loader({}, [], [str(tmp_path)])
    (one,) = loader.load([str(extension)]).too_old
    text = "{} needs GLIBC_2.38 of {}, which has GLIBC_2.36 at most"
    assert str(one) == text.format(extension, library)


def test_a_library_without_versions_is_taken_as_it_is(tmp_path: Path) -> None:
    extension, library = tmp_path / "_x.so", tmp_path / "libz.so.1"
    extension.write_bytes(_object(["libz.so.1"], "", "", {"libz.so.1": ["ZLIB_1.2"]}))
    library.write_bytes(_object([], "libz.so.1"))
    assert ldcache.Loader({}, [], [str(tmp_path)]).load([str(extension)]).too_old == []


def test_a_program_with_an_rpath_lends_it_to_what_it_loads(tmp_path: Path) -> None:
    """The Python of conda-forge has a newer libstdc++ than an old distribution."""
    wants = {"libx.so.6": ["X_2"]}
    for folder, versions in (("old", ["X_1"]), ("conda", ["X_1", "X_2"])):
        (tmp_path / folder).mkdir()
        made = _object([], "libx.so.6", "", None, versions)
        (tmp_path / folder / "libx.so.6").write_bytes(made)
    extension, program = tmp_path / "_x.so", tmp_path / "python"
    extension.write_bytes(_object(["libx.so.6"], "", "", wants))
    made = _object([], "", "$ORIGIN/conda")
    program.write_bytes(made.replace(struct.pack("<q", 29), struct.pack("<q", 15)))
    defaults = [str(tmp_path / "old")]
    assert ldcache.Loader({}, [], defaults).load([str(extension)]).too_old != []
    loaded = ldcache.Loader({}, [], defaults).load([str(extension)], str(program))
    assert loaded.too_old == []


def test_the_cache_and_the_library_path_are_searched(tmp_path: Path) -> None:
    needy, there = tmp_path / "needy.so", tmp_path / "libthere.so.1"
    needy.write_bytes(_object(["libthere.so.1"], ""))
    there.write_bytes(_object([], "libthere.so.1"))
    cache = {"libthere.so.1": [str(there)]}
    assert ldcache.Loader(cache, [], []).missing([str(needy)]) == {}
    assert ldcache.Loader({}, [str(tmp_path)], []).missing([str(needy)]) == {}
    assert ldcache.Loader({}, [], []).missing([str(needy)]) == {"libthere.so.1": str(needy)}


def test_ldconfig_output_is_read_in_order() -> None:
    text = "2 libs found in cache\n\tliba.so.1 (libc6,x86-64) => /a/liba.so.1\n"
    text += "\tliba.so.1 (libc6,x86-64) => /b/liba.so.1\nCache generated by: x\n"
    assert ldcache.parse_cache(text) == {"liba.so.1": ["/a/liba.so.1", "/b/liba.so.1"]}


def test_loader_folders_come_from_included_files_too(tmp_path: Path) -> None:
    trees.write(tmp_path, "/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n/opt/a # x\n")
    trees.write(tmp_path, "/etc/ld.so.conf.d/z.conf", "/opt/z\n")
    assert ldcache.configured_folders(str(tmp_path)) == ["/opt/z", "/opt/a"]


def test_a_library_that_ldconfig_has_not_seen_is_found(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/libnew.so.1.2").write_bytes(_object([], "libnew.so.1"))
    root = str(tmp_path)
    assert ldcache.not_in_cache(root, ["/opt"], {}) == ["/opt/libnew.so.1.2"]
    assert ldcache.not_in_cache(root, ["/opt"], {"libnew.so.1": ["x"]}) == []


def test_a_link_that_leads_nowhere_is_shown_with_its_target(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/libx.so").symlink_to("libx.so.1")
    assert ldcache.broken_links(str(tmp_path), ["/opt"]) == ["/opt/libx.so -> libx.so.1"]


def test_entries_of_the_cache_and_lines_of_its_settings_that_lead_nowhere(tmp_path: Path) -> None:
    trees.write(tmp_path, "/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\ninclude /a.conf\n")
    lines = "/opt/gone\n/opt/there  # kept\n/usr/local/nvidia/lib\nhwcap 1 nosegneg\n"
    trees.write(tmp_path, "/etc/ld.so.conf.d/old.conf", lines)
    trees.write(tmp_path, "/etc/ld.so.conf.d/x86_64-linux-gnu.conf", "/usr/local/lib/x\n")
    trees.write(tmp_path, "/opt/there/liba.so.1")
    gone = [("/etc/ld.so.conf.d/old.conf", "/opt/gone"), ("/etc/ld.so.conf", "/a.conf")]
    assert ldcache.gone_lines(str(tmp_path)) == gone
    cache = {"liba.so.1": ["/opt/there/liba.so.1"], "libb.so.1": ["/opt/gone/libb.so.1"]}
    assert ldcache.gone_entries(str(tmp_path), cache) == [("libb.so.1", "/opt/gone/libb.so.1")]
