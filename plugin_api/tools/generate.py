#!/usr/bin/env python3
"""Generates what follows from abi.h: docs/abi-reference.md and include/cairn/abi_layout_1_0.h.

    generate.py           writes both
    generate.py --check   fails when one is not what abi.h says now, or when a function lacks its thread or state tag
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from abi_parser import AbiError, Alias, Enum, Layouts, Macro, Opaque, Struct, TAG, clean, function_tags, parse, paragraph, structs

API = Path(__file__).resolve().parent.parent
HEADER = API / "include/cairn/abi.h"
LAYOUT = API / "include/cairn/abi_layout_1_0.h"
REFERENCE = API.parent / "docs/abi-reference.md"


def layout_header(sections):
    lines = [
        "/* Generated from abi.h by plugin_api/tools/generate.py: do not edit. clang-format off",
        " * The sizes and offsets of plugin ABI 1.0 on 64-bit machines. Including it, in C or C++, is the test. */",
        "#ifndef CAIRN_ABI_LAYOUT_1_0_H",
        "#define CAIRN_ABI_LAYOUT_1_0_H",
        "",
        '#include "cairn/abi.h"',
        "",
        "#if UINTPTR_MAX == 0xffffffffffffffffu",
        "#ifdef __cplusplus",
        "#define CAIRN_LAYOUT_ASSERT(condition) static_assert(condition, #condition)",
        "#else",
        "#define CAIRN_LAYOUT_ASSERT(condition) _Static_assert(condition, #condition)",
        "#endif",
        "#define CAIRN_AT_OFFSET(type, field, at, bytes)            \\",
        "  CAIRN_LAYOUT_ASSERT(offsetof(type, field) == (at));      \\",
        "  CAIRN_LAYOUT_ASSERT(sizeof(((type*)0)->field) == (bytes))",
        "",
    ]
    layouts = Layouts(sections)
    for struct in structs(sections):
        size, _, rows = layouts.of(struct.name)
        for name, offset, field_size in rows:
            lines.append(f"CAIRN_AT_OFFSET({struct.name}, {name}, {offset}u, {field_size}u);")
        lines.append(f"CAIRN_LAYOUT_ASSERT(sizeof({struct.name}) == {size}u);")
    lines += ["", "#undef CAIRN_AT_OFFSET", "#undef CAIRN_LAYOUT_ASSERT", "#endif", "", "#endif", ""]
    return "\n".join(lines)


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def without_tags(text):
    return cell(TAG.sub("", text)).rstrip("; ")


def code_type(item):
    array = f"[{item.array}]" if item.array else ""
    return f"`{item.type}{array}`"


def reference(sections):
    out = [
        "# Plugin ABI 1.0: reference",
        "",
        "Generated from `plugin_api/include/cairn/abi.h` by `plugin_api/tools/generate.py`; do not edit. Sizes and offsets are those of",
        "64-bit machines. How to use all this is told in [write-a-plugin.md](write-a-plugin.md).",
        "",
    ]
    out += ["## Rules that hold everywhere", ""]
    for line in clean(sections[0].comment).split("\n"):
        out.append(line)
    out.append("")
    layouts = Layouts(sections)
    for section in sections[1:]:
        out += [f"## {section.title}", ""]
        for item in section.items:
            if isinstance(item, Struct):
                size = layouts.of(item.name)[0]
                out += [f"### {item.name}", "", f"{without_tags(item.comment)}".strip(), "", f"{item.kind}, {size} bytes.", ""]
                offsets = {name: offset for name, offset, _ in layouts.of(item.name)[2]}
                plain = [f for f in item.fields if not f.is_function]
                functions = [f for f in item.fields if f.is_function]
                if plain:
                    out += ["| offset | field | type | |", "|---|---|---|---|"]
                    out += [f"| {offsets[f.name]} | `{f.name}` | {code_type(f)} | {cell(f.comment)} |" for f in plain]
                    out.append("")
                for f in functions:
                    result, arguments = f.type.split(" (", 1)
                    found = function_tags(item, f)
                    out += [
                        f"**`{f.name}`** (offset {offsets[f.name]}; thread: {found['thread']}; state: {found['state']})",
                        "",
                        "```c",
                        f"{result} {f.name}({arguments};",
                        "```",
                        "",
                    ]
                    if without_tags(f.comment):
                        out += [without_tags(f.comment), ""]
            elif isinstance(item, Enum):
                if item.comment:
                    out += [without_tags(item.comment), ""]
                out += ["| name | value | |", "|---|---|---|"]
                out += [f"| `{name}` | {value} | {cell(comment)} |" for name, value, comment in item.values]
                out.append("")
            elif isinstance(item, Macro) and item.name not in ("CAIRN_ABI_H", "CAIRN_EXPORT"):
                value = f" = `{item.value}`" if item.value and len(item.value) < 60 else ""
                out += [f"`{item.name}`{value}" + (f": {without_tags(item.comment)}" if item.comment else ""), ""]
            elif isinstance(item, Opaque):
                out += [f"`{item.name}`: opaque." + (f" {cell(item.comment)}" if item.comment else ""), ""]
            elif isinstance(item, Alias) and item.text != "span":
                out += [f"`{item.text}`" + (f" {without_tags(item.comment)}" if item.comment else ""), ""]
    return "\n".join(line.rstrip() for line in out).rstrip() + "\n"


def untagged(sections):
    missing = []
    for struct in structs(sections):
        for item in struct.fields:
            if not item.is_function:
                continue
            found = function_tags(struct, item)
            for tag in ("thread", "state"):
                if tag not in found:
                    missing.append(f"abi.h:{item.line}: {struct.name}.{item.name} has no [{tag}: ...] tag")
    return missing


def main(arguments):
    sections = parse(HEADER.read_text(encoding="utf-8"))
    problems = untagged(sections)
    if problems:
        raise AbiError("\n".join(problems))
    generated = {LAYOUT: layout_header(sections), REFERENCE: reference(sections)}
    if arguments == ["--check"]:
        stale = [str(path) for path, text in generated.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        if stale:
            raise AbiError(f"not what abi.h says now: {', '.join(stale)}. Run plugin_api/tools/generate.py and commit the result.")
        return
    if arguments:
        raise AbiError(__doc__)
    for path, text in generated.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except AbiError as error:
        sys.exit(str(error))
