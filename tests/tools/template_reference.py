#!/usr/bin/env python3
"""Renders the template tests with jinja2, set up as Hugging Face transformers does, and stores what it gives.

Usage: template_reference.py tests/unit/text/data/templates
Needs the PyPI package jinja2 (3.1). Writes <family>.json beside every <family>.jinja and expressions.json; the C++ tests
compare the engine with these files byte for byte. A case holds "out", or "raises" with jinja2's message.
"""

import datetime
import json
import pathlib
import random
import re
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = datetime.datetime(2025, 1, 2, 3, 4, 5)  # 1735787045 as seconds since the epoch


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(line)

    def _support(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


ENVIRONMENT = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
)
ENVIRONMENT.filters["tojson"] = tojson
ENVIRONMENT.globals["raise_exception"] = raise_exception
ENVIRONMENT.globals["strftime_now"] = NOW.strftime


def render(source, variables):
    """The outcome of one case: its text, or how it fails."""
    try:
        template = ENVIRONMENT.from_string(source)
    except Exception as error:
        return {"raises": str(error), "when": "load"}
    try:
        return {"out": template.render(**variables)}
    except Exception as error:
        return {"raises": str(error), "when": "render"}


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def call(name, arguments, number="call12345"):
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content, number="call12345"):
    return {"role": "tool", "tool_call_id": number, "name": "get_weather", "content": content}


TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Get the weather",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "City \"name\" <x> é"},
            "unit": {"type": "string", "enum": ["c", "f"]},
            "days": {"type": "array", "items": {"type": "integer"}}}, "required": ["city"]},
        "return": {"type": "string"}}},
    {"type": "function", "function": {
        "name": "noop", "description": "Nothing\nat all", "parameters": {"type": "object", "properties": {}}}},
]
ARGUMENTS = {"city": "Paris", "n": 1.5, "ok": True, "x": None, "list": [1, "a"], "deep": {"b": {}}}
CONVERSATIONS = {
    "user": [user("Hello")],
    "system": [system("Be nice."), user("Hello")],
    "several turns": [system("Sys"), user("a"), assistant("b"), user("c"), assistant("d"), user("e")],
    "white space": [user("  a \n"), assistant(" b\n"), user("c\r\n\r\nd")],
    "assistant last": [user("a"), assistant("I start")],
    "tool round": [user("w?"), assistant("", tool_calls=[call("get_weather", ARGUMENTS)]), result("{\"t\": 20}"),
                   assistant("20C"), user("thanks")],
    "tool result last": [system("s"), user("w?"), assistant(None, tool_calls=[call("get_weather", ARGUMENTS)]),
                         result("sunny")],
    "arguments as text": [user("w?"), assistant("", tool_calls=[call("get_weather", "{\"city\": \"Paris\"}")]),
                          result("x")],
    "two calls": [user("w?"), assistant("Both", tool_calls=[call("get_weather", ARGUMENTS),
                                                            call("noop", {}, "abcdefghi")]),
                  result("1"), result("2", "abcdefghi")],
    "bad call id": [user("w?"), assistant("", tool_calls=[call("noop", {}, "1")]), result("1", "1")],
    "thinking": [user("q"), assistant("<think>\nhmm\n</think>\n\nans"), user("q2 /no_think"),
                 assistant("a2", reasoning_content="because"), user("q3")],
    "thinking last": [user("q"), assistant("<think>\nhmm\n</think>\n\nans")],
    "parts": [user([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])],
    "parts everywhere": [system([{"type": "text", "text": "sys"}]), user([{"type": "text", "text": "hi"}]),
                         assistant([{"type": "text", "text": "yo"}]), user("x")],
    "image": [user([{"type": "image"}, {"type": "text", "text": "what?"}])],
    "audio": [user([{"type": "audio"}])],
    "empty content": [system(""), user(""), assistant(""), user("x")],
    "unicode": [system("日本 é"), user("😀 \"q\" <b>&amp;</b> \u2028 ÿ"), assistant("ß\\n\t"), user("Ω")],
    "null content": [user(None)],
    "no role": [{"content": "x"}],
    "no content": [{"role": "user"}],
    "assistant first": [assistant("hi"), user("a")],
    "two users": [user("a"), user("b")],
    "system later": [user("a"), system("mid"), user("b")],
    "developer": [{"role": "developer", "content": "dev"}, user("a")],
    "unknown role": [{"role": "wizard", "content": "z"}, user("a")],
    "nothing": [],
    "ipython": [user("a"), {"role": "ipython", "content": {"a": [1, 2]}}],
}
EXTRAS = [
    {},
    {"add_generation_prompt": False},
    {"enable_thinking": False, "thinking": True, "date_string": "26 Jul 2024", "reasoning_effort": "high",
     "builtin_tools": ["get_weather", "code_interpreter"],
     "documents": [{"title": "T1", "text": "doc <1>"}, {"title": "T2", "text": "doc2"}]},
]


def family_cases(source):
    for name, messages in CONVERSATIONS.items():
        for tools in (None, TOOLS):
            for number, extra in enumerate(EXTRAS):
                if tools and number and "call" not in name and "tool" not in name and name != "user":
                    continue
                variables = {"messages": messages, "tools": tools, "documents": None, "bos_token": "<s>",
                             "eos_token": "</s>", "add_generation_prompt": True, **extra}
                yield {"conversation": name, "tools": bool(tools), "extra": number, **render(source, variables)}


VALUES = [
    "none", "true", "false", "0", "1", "-3", "7", "2.5", "-0.5", "1e20", "1e-7", "''", "'abc'", "'Hello World'",
    "'ß straße ÉÀ'", "'  pad \\n'", "'a,b,,c'", "'42'", "' 3.7 '", "'x<y>&\"'", "[]", "[1,2,3]", "['b','A','c']",
    "[3,1,2,1]", "(1,2)", "()", "{}", "{'a':1,'b':2}", "{'b':'x','A':'y'}",
    "[{'n':1,'s':'b'},{'n':2,'s':'A'},{'n':1,'s':'c'}]", "range(4)", "undef", "'日本語テキスト'", "[[1,2],[3]]", "'-12'",
    "'0x1F'", "'a b c d e f g h i j'", "{'k':[1,{'z':none}]}", "'x'|safe", "[1,'a']", "12345678901",
    "'line1\\nline2\\n\\nline4'",
]
FILTERS = [
    "abs", "attr('a')", "batch(2)|list", "batch(2,'-')|list", "capitalize", "center(9)", "count", "default('D')",
    "d('D',true)", "dictsort", "dictsort(true)", "dictsort(by='value')", "dictsort(reverse=true)", "e", "filesizeformat",
    "filesizeformat(true)", "first", "float", "float(9.5)", "forceescape", "groupby('n')|list", "groupby('s')", "indent",
    "indent(2,true)", "indent('>',true,true)", "int", "int(5)", "int(0,16)", "items|list", "join('-')",
    "join('-',attribute='n')", "last", "length", "list", "lower", "map('upper')|list", "map(attribute='n')|list",
    "map(attribute='q',default='z')|list", "max", "min", "max(attribute='n')", "pprint", "reject('odd')|list",
    "reject|list", "rejectattr('n','eq',1)|list", "replace('a','X')", "replace('','.')", "replace('b','',1)",
    "reverse|list", "round", "round(1)", "round(1,'floor')", "round(2,'ceil')", "round(-1)", "safe",
    "select('string')|list", "select|list", "selectattr('n')|list", "selectattr('n','equalto',1)|list",
    "selectattr('s','in',['b','c'])|list", "slice(2)|list", "slice(3,'f')|list", "sort", "sort(reverse=true)",
    "sort(case_sensitive=true)", "sort(attribute='n')", "sort(attribute='n,s')", "string", "striptags", "sum",
    "sum(attribute='n')", "sum(start=[])", "title", "tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)",
    "tojson(separators=(',',':'))", "tojson(sort_keys=true)", "trim", "trim('a ')", "truncate(5)", "truncate(7,true)",
    "truncate(5,true,'',0)", "unique|list", "upper", "urlencode", "wordcount", "wordwrap(5)", "xmlattr", "nosuch",
    "format(1,2)",
]
TESTS = [
    "defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string", "mapping",
    "sequence", "iterable", "callable", "odd", "even", "divisibleby 3", "lower", "upper", "sameas none", "escaped",
    "in [1,'abc',none]", "in 'xabcx'", "eq 1", "ne 1", "gt 1", "lt 'b'", "ge 2.5", "le (1,2)", "filter", "test",
    "nosuch", "not none", "not defined",
]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
SUBSCRIPTS = [
    "[0]", "[-1]", "[5]", "['a']", "[1:]", "[:-1]", "[::-1]", "[::2]", "[-3:-1]", "[5:1:-2]", "[none:2]", "['x':]",
    "[::0]", ".a", ".upper()", ".b.c", ".items()", ".keys()|list", ".values()|list", ".get('a')", ".get('zz','d')",
    ".append(1)", ".pop()", ".__class__", "._x", ".copy()", ".count(1)", ".index(1)", "[true]", "[none]",
]
TEXT_METHODS = [
    "strip()", "lstrip(' a')", "rstrip('c\\n')", "split()", "split(',')", "split('a',1)", "rsplit(' ',2)", "rsplit('b')",
    "splitlines()", "splitlines(true)", "join(['x','y'])", "join('xyz')", "replace('a','bb')", "startswith('a')",
    "startswith(('H','x'))", "endswith('c')", "upper()", "lower()", "title()", "capitalize()", "swapcase()", "find('b')",
    "rfind('l')", "find('o',5)", "index('a')", "count('l')", "count('')", "format(1)", "isdigit()", "isalpha()",
    "isalnum()", "isspace()", "isupper()", "islower()", "istitle()", "zfill(9)", "center(11,'*')", "ljust(9,'.')",
    "rjust(9)", "removeprefix('a')", "removesuffix('c')", "partition(',')", "rpartition(' ')", "expandtabs(4)",
    "isnumeric()", "isdecimal()",
]
FORMATS = [
    "'%5d|%-5d|%05d|%+d' % (42,42,42,42)", "'%x %X %o %#x' % (255,255,8,255)", "'%.2f %e %g' % (3.14159,12345.678,0.0001)",
    "'%s %r %%' % ('a','b')", "'%(k)s' % {'k':'v'}", "'%5.1f|%-8s|%8s|' % (2.25,'ab','cd')", "'%s' % none", "'%d' % 'x'",
    "'%s %s' % 'a'", "'%s' % (1,2)", "'{} {}'.format(1,'a')", "'{0}{1}{0}'.format('a','b')", "'{a[k]} {a.k}'.format(a={'k':1})",
    "'{:>8}|{:<8}|{:^8}|{:*^9}'.format('a','b','c','d')", "'{:05d} {:+} {:,} {:_}'.format(42,7,1234567,1234567)",
    "'{:.3f} {:e} {:g} {:%}'.format(2.5,1234.5,0.00001,0.25)", "'{:x} {:#b} {:o} {:X}'.format(255,5,8,255)",
    "'{!r} {!s}'.format('a','b')", "'{{}} {}'.format(1)", "'{:{}}|'.format('a',5)", "'{} {0}'.format(1)", "'{'.format()",
    "'{:.2}'.format('abcdef')", "'{:d}'.format('a')", "'{x}'.format(x=[1])", "'{:8.2f}|{:<8}|{:08.1f}'.format(1.5,2.5,-3.25)",
]
STATEMENTS = [
    "{% for a, b in [(1,2),(3,4)] %}{{ a }}{{ b }}{{ loop.index }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }};{% endfor %}",
    "{% for x in [1,2,3,4,5] if x is odd %}{{ x }}/{{ loop.length }}/{{ loop.nextitem }}/{{ loop.previtem }} {% else %}none{% endfor %}",
    "{% for x in [] %}x{% else %}empty{% endfor %}",
    "{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }}{{ loop.cycle('a','b','c') }} {% endfor %}",
    "{% for n in [{'v':1,'c':[{'v':2,'c':[]}]},{'v':3,'c':[]}] recursive %}{{ n.v }}@{{ loop.depth }}({{ loop(n.c) }}){% endfor %}",
    "{% for n in [1] %}{{ loop([2]) }}{% endfor %}",
    "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = i + 10 %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}{{ ns }}",
    "{% set ns = namespace(go=true) %}{% for i in range(4) if ns.go %}{{ i }}{% if i == 1 %}{% set ns.go = false %}{% endif %}{% endfor %}",
    "{% set x %}a{{ 1 }}b{% endset %}{{ x }}{% set y | upper | replace('A','_') %}abc{% endset %}{{ y }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}{% set e = 1, %}{{ e }}",
    "{% set a, b = [1] %}", "{% set a, b = [1,2,3] %}", "{% set a.b = 1 %}", "{% set a, b = 5 %}",
    "{% macro m(a, b=2, c='x') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c='z') }}{{ m(b=5, a=6) }}{{ m() }}",
    "{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1,2,3,k=4) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1,2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}",
    "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(3) }}{{ m.name }}{{ m.arguments }}{{ m }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro w(t) %}<{{ t }}>{{ caller('v', 2) }}</{{ t }}>{% endmacro %}{% call(x, y) w('p') %}{{ x }}{{ y }}{% endcall %}",
    "{% macro w() %}{{ caller is defined }}{{ caller() }}{% endmacro %}{{ w() }}",
    "{% macro w() %}x{% endmacro %}{% call w() %}{% endcall %}",
    "{% filter upper | replace('B', '-') %}abc{{ 'abc' }}{% endfilter %}", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}",
    "{% raw %}{{ x }} {% if %}{% endraw %}", "a {#- c -#} b {# d #}\n e", "{% block x %}in{% endblock %}{% block y scoped %}{{ 1 }}{% endblock y %}",
    "{% if false %}{{ 1|nosuch }}{% endif %}ok", "{{ 1|nosuch if false }}", "{{ 1 is nosuch }}", "{{ 'a' if false }}|{{ ('a' if false) is defined }}",
    "{% set c = cycler('a','b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}", "{% set j = joiner('; ') %}{{ j() }}a{{ j() }}b{{ j() }}c",
    "{{ dict(a=1, b=2) }}{{ dict([('x', 1)]) }}{{ dict({'q': 1}, z=2) }}", "{{ range(5)|list }}{{ range(1,10,3)|list }}{{ range(5,0,-2)|list }}{{ range(3) }}",
    "{{ range(1000000) }}", "{{ messages.foo }}", "{{ undef.foo }}", "{{ undef['a'] }}", "{{ undef() }}", "{{ undef + 1 }}", "{{ none.a.b }}", "{{ {}.x.y }}",
    "{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 1 == 1.0 == true }}", "{{ 2 ** 3 ** 2 }}{{ -2 ** 2 }}{{ 7 // -2 }}{{ -7 % 3 }}{{ 7.5 // 2 }}{{ -7.5 % 2 }}",
    "{{ 1 + 2 ~ 3 * 4 }}{{ 'a' ~ 1 + 2 }}{{ not 1 == 2 }}{{ not true and false or true }}", "{{ -1|abs }}{{ (-1)|abs }}{{ -'a'|length }}", "{{ 'a' 'b' \"c\" }}",
    "{{ '\\n\\t\\x41\\u00e9\\101\\q\\\\' }}", "{{ 0x1F }}{{ 0b101 }}{{ 0o17 }}{{ 1_000 }}{{ 1e3 }}{{ 1.5e-3 }}{{ 12.0 }}{{ 1e16 }}{{ 123456789.123 }}",
    "{{ [1,2,][0] }}{{ (1,) }}{{ {'a':1,} }}{{ () }}", "{{ 'abc'.0 }}{{ [5].0 }}", "{{ 'x' in 'xyz' }}{{ 1 in [1] }}{{ 'a' not in {'a':1} }}", "{{ [1,2,3] | map('string') | join }}",
    "{{ messages|length if messages is defined else 'no' }}", "{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %B %a %A %j %y %-d %p %I %%') }}", "{{ raise_exception('stop: ' ~ 1) }}",
    "{% if x %}", "{% endif %}", "{% for x in %}{% endfor %}", "{{ }}", "{{ 1 + }}", "{% nosuch %}", "{{ 'abc }}", "{% break %}", "{{ [1,2 }}", "{{ (1 }}", "{{ a b }}", "{# open", "{% raw %}x",
    "{% set x = [1,2] %}{{ x.append(3) }}", "{% set d = {'a':1} %}{{ d.update({'b':2}) }}", "{{ ''.__class__ }}", "{{ ''.__class__.__mro__ }}", "{{ {'_p': 1}._p }}",
    "{% generation %}x{{ 1 }}{% endgeneration %}", "{% for x in 'añb' %}{{ x }}-{% endfor %}", "{% for k in {'a':1} %}{{ k }}{% endfor %}{% for k, v in {'a':1}.items() %}{{ k }}{{ v }}{% endfor %}",
    "{% set g = [1,2]|map('string') %}{{ g|list }}{{ g|list }}{{ 'T' if [] | select }}", "{{ [3,1]|sort|first }}{{ []|first }}{{ [] | last }}{{ []|max }}", "{% print 1, 2 %}",
    "{{ foo(*[1,2], **{'a': 1}) }}", "{{ dict(**{'a': 1}) }}{{ range(*[1,4])|list }}", "{% set s = 'abc' %}{% set u = s.upper %}{{ u() }}", "{{ {'a': {'b': [1, {'c': 2}]}}.a.b[1].c }}",
    "{% for a in [1,2] %}{% for b in [3,4] %}{{ loop.index }}{{ b }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for x in [1] %}{{ loop }}{% endfor %}", "{{ 'é'|upper ~ 'ŒUF'|lower ~ 'ﬁ'|upper ~ 'ΑΣ'|lower }}",
    "{{ 1 if 0 else 2 if 0 else 3 }}", "{{ [x for x in y] }}", "{{ 9223372036854775807 }}", "{{ 1/0 }}", "{{ 5 % 0 }}", "{{ 1.0 // 0 }}", "{{ {[1]: 2} }}", "{{ 'a' * 3 }}{{ [1] * 2 }}{{ 2 * 'b' }}{{ 'a' * -1 }}",
]
OPENINGS = ["{%", "{%-", "{%+"]
CLOSINGS = ["%}", "-%}", "+%}"]
SPACES = ["", " ", "\n", "  \n", "\n  ", " \n\n ", "\t"]


def white_space_sources():
    for before in SPACES:
        for after in SPACES:
            for opening in OPENINGS:
                for closing in CLOSINGS:
                    yield f"a{before}{opening} if true {closing}{after}b{before}{opening} endif {closing}{after}c"
            yield f"a{before}{{{{- 1 -}}}}{after}b{before}{{{{ 2 }}}}{after}c{before}{{#- x -#}}{after}d{before}{{# y #}}{after}"
            yield f"a{before}{{% raw -%}}{after}b{before}{{%- endraw %}}{after}c{before}{{% raw %}}{after}d{before}{{% endraw -%}}{after}e"


def expression_sources():
    rng = random.Random(7)
    yield from STATEMENTS
    yield from ("{{ %s }}" % one for one in FORMATS)
    yield from white_space_sources()
    texts = [value for value in VALUES if value.startswith("'") and "|" not in value]
    yield from ("{{ %s.%s }}" % (value, method) for value in texts for method in TEXT_METHODS)
    # A slice of a range is a list in the engine, which only printing it would show.
    yield from ("{{ (%s)%s }}" % (value, part) for value in VALUES for part in SUBSCRIPTS
                if not (value.startswith("range") and ":" in part))
    yield from ("{{ (%s) is %s }}" % (value, test) for value in VALUES for test in TESTS)
    yield from rng.sample(["{{ (%s)|%s }}" % (value, one) for value in VALUES for one in FILTERS], 1500)
    yield from rng.sample(
        # Python would really compute the products and powers of the large number, in gigabytes.
        ["{{ (%s) %s (%s) }}" % (a, op, b) for a in VALUES for op in OPERATORS for b in VALUES
         if not (op.startswith("*") and "12345678901" in (a, b))], 1500)
    for value in VALUES:
        yield "{{ %s }}|{{ [%s] }}|{{ '%%s %%r' %% (%s, %s) }}" % (value, value, value, value)
        yield "{%% for x in %s %%}[{{ x }}:{{ loop.index }}]{%% else %%}E{%% endfor %%}" % value
        yield "{%% if %s %%}T{%% else %%}F{%% endif %%}{{ 'a' if %s }}" % (value, value)


def left_out(source, outcome):
    """What prints an address, and integers beyond 64 bits, which the engine refuses on purpose."""
    if any(len(digits) > 18 for digits in re.findall(r"(?<![.e0-9])[0-9]+(?![.0-9e])", outcome.get("out", ""))):
        return True
    return " at 0x" in outcome.get("out", "") or " at 0x" in outcome.get("raises", "")


def write(path, content):
    rows = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in content)
    path.write_text("[\n" + rows + "\n]\n", encoding="utf-8")
    print(f"{path}: {len(content)} cases, {path.stat().st_size} bytes")


def main():
    folder = pathlib.Path(sys.argv[1])
    for source in sorted(folder.glob("*.jinja")):
        write(source.with_suffix(".json"), list(family_cases(source.read_text(encoding="utf-8"))))
    write(folder / "conversations.json", [{"name": name, "messages": messages} for name, messages in CONVERSATIONS.items()])
    write(folder / "tools.json", TOOLS)
    write(folder / "extras.json", EXTRAS)
    rows = []
    for source in dict.fromkeys(expression_sources()):
        outcome = render(source, {})
        if not left_out(source, outcome):
            rows.append([source, outcome["out"]] if "out" in outcome else [source, None, outcome["when"]])
    write(folder / "expressions.json", rows)


if __name__ == "__main__":
    main()
