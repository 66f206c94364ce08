"""Reads abi.h: sections, structs with their fields and comments, enums, macros. Used by generate.py and by the tests.

abi.h is written by hand in one style; anything outside that style is an error here rather than a guess.
"""

import re
from dataclasses import dataclass, field


@dataclass
class Field:
    name: str
    type: str  # as written, without the name; for a function pointer its whole signature
    array: int  # 0: no array
    comment: str
    is_function: bool
    line: int


@dataclass
class Struct:
    name: str
    kind: str  # "struct" or "union"
    comment: str
    fields: list[Field]
    section: "Section"
    line: int

    @property
    def frozen(self):
        return "frozen" in self.comment.lower()


@dataclass
class Enum:
    comment: str
    values: list[tuple[str, str, str]]  # name, value, comment
    line: int


@dataclass
class Section:
    title: str
    comment: str = ""
    items: list = field(default_factory=list)  # Struct, Enum, Macro, Opaque, Alias, Span


@dataclass
class Macro:
    name: str
    value: str
    comment: str


@dataclass
class Opaque:
    name: str
    comment: str


@dataclass
class Alias:
    name: str
    text: str
    comment: str


class AbiError(Exception):
    pass


COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
SECTION = re.compile(r"/\* ---- (\d+)\. (.*?) -*\s*\*/")


def clean(comment):
    """A comment's text as one paragraph per blank line, without the leading stars."""
    lines = [re.sub(r"^\s*\*? ?", "", line).rstrip() for line in comment.strip().split("\n")]
    return "\n".join(lines).strip()


def paragraph(comment):
    return " ".join(clean(comment).split())


def parse(text):
    """The sections of abi.h, in order."""
    sections = [Section("Preamble")]
    position = 0
    pending = ""  # the comment that stands before the next declaration
    section_end = 0  # where the last section title ended; None once something followed it

    def line_of(at):
        return text.count("\n", 0, at) + 1

    pattern = re.compile(
        r"(?P<section>/\* ---- \d+\. .*? -*\s*\*/)"
        r"|(?P<comment>/\*.*?\*/)"
        r"|(?P<span>CAIRN_DECLARE_SPAN\(\w+\);)"
        r"|(?P<macro>#define (?:\\.|[^\n\\])*)"
        r"|(?P<directive>#[^\n]*)"
        r"|(?P<record>(?:typedef )?(?:struct|union) \w+ \{)"
        r"|(?P<enum>enum \{)"
        r"|(?P<forward>(?:typedef )?struct \w+ ?\w*;)"
        r"|(?P<alias>typedef [^;{]*;)"
        r"|(?P<extern>extern \"C\" \{|\})"
        r"|(?P<function>CAIRN_EXPORT [^;]*;)",
        re.S,
    )
    while True:
        match = pattern.search(text, position)
        if match is None:
            break
        between = text[position : match.start()].strip()
        if between:
            raise AbiError(f"abi.h:{line_of(position)}: not understood: {between[:60]!r}")
        kind = match.lastgroup
        position = match.end()
        section = sections[-1]
        if kind == "section":
            number, title = SECTION.match(match.group()).groups()
            sections.append(Section(f"{number}. {title}"))
            pending, section_end = "", match.end()
            continue
        if kind == "comment":
            body = match.group()[2:-2]
            begin_of_line = text.rfind("\n", 0, match.start()) + 1
            if text[begin_of_line : match.start()].strip():  # behind a declaration on its line
                attach_trailing(section, body)
                continue
            if section_end is not None and "\n\n" not in text[section_end : match.start()]:
                section.comment = body  # right under the section's title: for all of it
                section_end = None
                continue
            pending = body
            continue
        if kind in ("directive", "extern"):
            continue
        comment, section_end = paragraph(pending), None
        if kind not in ("macro", "enum") or text[position:].startswith("\n\n"):
            pending = ""  # else it is about the whole paragraph: a service's names and its table
        if kind == "record":
            name = re.search(r"(?:struct|union) (\w+) \{", match.group()).group(1)
            end = matching_brace(text, match.end() - 1)
            fields = parse_fields(text, match.end(), end, line_of)
            tail = re.compile(r"[^;]*;").match(text, end + 1)
            section.items.append(
                Struct(name, "union" if "union" in match.group() else "struct", comment, fields, section, line_of(match.start()))
            )
            position = tail.end()
        elif kind == "enum":
            end = matching_brace(text, match.end() - 1)
            section.items.append(Enum(comment, parse_enum(text[match.end() : end]), line_of(match.start())))
            position = text.index(";", end) + 1
            if text[position:].startswith("\n\n"):
                pending = ""
        elif kind == "macro":
            body = re.sub(r"\\\n\s*", " ", match.group()[len("#define ") :])
            trailing = COMMENT.search(body)
            note = paragraph(trailing.group(1)) if trailing else ""
            body = COMMENT.sub("", body).strip()
            name = re.match(r"\w+(?:\([^)]*\))?", body).group()
            section.items.append(Macro(name, " ".join(body[len(name) :].split()), comment or note))
        elif kind == "forward":
            if match.group().startswith("typedef"):
                section.items.append(Opaque(match.group().split()[2].rstrip(";"), comment))
        elif kind == "alias":
            found = re.search(r"\(\*(\w+)\)|(\w+);$", match.group())
            section.items.append(Alias(found.group(1) or found.group(2), " ".join(match.group().split()), comment))
        elif kind == "span":
            section.items.append(Alias(match.group()[len("CAIRN_DECLARE_SPAN(") : -2] + "_span", "span", ""))
    return sections


def attach_trailing(section, body):
    if section.items:
        item = section.items[-1]
        if isinstance(item, (Opaque, Alias, Macro)) and not item.comment:
            item.comment = paragraph(body)


def matching_brace(text, at):
    depth = 0
    for i in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise AbiError("a brace is not closed")


def parse_fields(text, begin, end, line_of):
    fields = []
    pending = ""
    position = begin
    pattern = re.compile(r"(?P<comment>/\*.*?\*/)|(?P<declaration>[^;/]*;)", re.S)
    while True:
        match = pattern.search(text, position, end)
        if match is None:
            break
        position = match.end()
        if match.lastgroup == "comment":
            body = paragraph(match.group()[2:-2])
            begin_of_line = text.rfind("\n", 0, match.start()) + 1
            if text[begin_of_line : match.start()].strip() and fields:
                declared_line = line_of(match.start())
                for item in fields:
                    if item.line == declared_line and not item.comment:
                        item.comment = body
                if fields[-1].line != declared_line and not fields[-1].comment:
                    fields[-1].comment = body  # a signature of several lines
            else:
                pending = (pending + " " + body).strip()
            continue
        declaration = " ".join(match.group().rstrip(";").split())
        line = line_of(match.end() - 1)
        function = re.match(r"(.*?)\(\*(\w+)\)\((.*)\)$", declaration)
        if function:
            fields.append(Field(function.group(2), f"{function.group(1).strip()} ({function.group(3)})", 0, pending, True, line))
        else:
            found = re.match(r"((?:const |struct )*\w+(?:\s*\*\s*(?:const\s*)?)*)\s*(.*)$", declaration)
            if found is None:
                raise AbiError(f"abi.h:{line}: field not understood: {declaration!r}")
            for name in found.group(2).split(","):
                named = re.match(r"(\**)\s*(\w+)(?:\[(\w+)\])?$", name.strip())
                if named is None:
                    raise AbiError(f"abi.h:{line}: field not understood: {declaration!r}")
                fields.append(
                    Field(named.group(2), (found.group(1).strip() + named.group(1)).replace(" *", "*"), int(named.group(3) or 0), pending, False, line)
                )
        pending = ""
    return fields


def parse_enum(body):
    values = []
    number = 0
    for match in re.finditer(r"/\*(.*?)\*/|(\w+)(?:\s*=\s*(\w+))?\s*,?", body, re.S):
        if match.group(1) is not None:
            if values and not values[-1][2]:
                values[-1] = (values[-1][0], values[-1][1], paragraph(match.group(1)))
            continue
        if match.group(3):
            number = int(match.group(3), 0)
        values.append((match.group(2), str(number), ""))
        number += 1
    return values


def structs(sections):
    return [item for section in sections for item in section.items if isinstance(item, Struct)]


PRIMITIVES = {
    "char": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "int": 4, "float": 4,
    "int64_t": 8, "uint64_t": 8, "double": 8, "cairn_status": 4, "cairn_request": 8, "size_t": 8,
}


class Layouts:
    """Sizes and offsets by the rules of the 64-bit ABIs Cairn runs on, worked out here and not by a compiler."""

    def __init__(self, sections):
        self.structs = {item.name: item for item in structs(sections)}
        self.cache = {}

    def type_size(self, type_name, is_function):
        """(size, alignment)"""
        if is_function or type_name.endswith("*") or type_name.endswith("* const"):
            return 8, 8
        name = type_name.replace("const ", "").replace("struct ", "").strip()
        if name in PRIMITIVES:
            return PRIMITIVES[name], PRIMITIVES[name]
        if name in self.structs:
            size, alignment, _ = self.of(name)
            return size, alignment
        if name.endswith("_span"):
            return 24, 8
        raise AbiError(f"the size of type '{type_name}' is not known")

    def of(self, name):
        """(size, alignment, [(field, offset, size)])"""
        if name not in self.cache:
            at, alignment, rows = 0, 1, []
            struct = self.structs[name]
            for item in struct.fields:
                size, aligned = self.type_size(item.type, item.is_function)
                size *= item.array or 1
                alignment = max(alignment, aligned)
                offset = 0 if struct.kind == "union" else (at + aligned - 1) // aligned * aligned
                rows.append((item.name, offset, size))
                at = max(at, size) if struct.kind == "union" else offset + size
            self.cache[name] = ((at + alignment - 1) // alignment * alignment, alignment, rows)
        return self.cache[name]


TAG = re.compile(r"\[(thread|state): ([^\]]*)\]")


def tags(comment):
    return {name: value for name, value in TAG.findall(comment)}


def function_tags(struct, item):
    """A function's own tags, else its table's, else its section's."""
    found = tags(paragraph(struct.section.comment))
    found.update(tags(struct.comment))
    found.update(tags(item.comment))
    return found
