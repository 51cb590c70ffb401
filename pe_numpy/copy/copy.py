"""Copy functions out of the package: one file, with exactly what they need, and only numpy.

The source is read, not run. From the names that are asked for, each name that their code or their
doctest takes from this package is looked up, and so on, until nothing is missing. A function that
is only needed by another keeps the first sentence of its docstring. `checks.even` becomes
`checks_even`; what two modules call by one name gets its module's name in front, too. The decorator
`differentiable` stays behind, unless the tape that it speaks to comes along.

The plain form of an exercise is the book's solution; of all else it is read from sources without
checks of input, see `plain`.
"""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pe_numpy
from pe_numpy.contents import chapter_of, known_name, source_of
from pe_numpy.copy.plain import plain as plain_source

HEADER = '''\
"""{names}: from pe_numpy {version}, a textbook that runs.

{sources}

This file needs numpy and nothing else. Licence: MIT, Copyright (c) 2026 The pe_numpy authors; keep
this notice. Cite the paper when you use a function, and the book if it helped.
"""'''
PLAIN_HEADER = '''\
"""{sources}

From pe_numpy {version}, without checks of input; with them: python -m pe_numpy copy {name}
Licence: MIT, Copyright (c) 2026 The pe_numpy authors; keep this notice.
"""'''
SOLUTIONS = Path(__file__).parent / "solutions"  # of the exercises, a file per chapter
SOLVED = f"{__package__}.{SOLUTIONS.name}."
PAGES = ("original", "decoder")  # of pe_numpy/transformer, handed out as they are
WHOLE = ("check", "load_model")  # the checker; and what looks up its pages by name
TAPE = "pe_numpy.training.autodiff"  # functions join its protocol by the decorator


class Form(NamedTuple):
    """How modules are read: as they are, or plain; see `plain` for the others."""

    plain: bool = False
    tape: bool = False
    windows: bool = True


AS_IT_IS = Form()


class Place(NamedTuple):
    """A definition at the top level of a module."""

    module: str
    name: str
    form: Form = AS_IT_IS


class Use(NamedTuple):
    """A name in the code that stands for something of another line: a definition or an import."""

    node: ast.expr
    target: Place | str  # an import is told by its statement


class Module:
    """A module of the package, read: what it defines and what it imports."""

    def __init__(self, name: str, form: Form) -> None:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        self.name, self.form = name, form
        self.source = Path(spec.origin).read_text(encoding="utf-8")
        if form.plain:
            self.source = plain_source(self.source, form.tape, form.windows)
        self.definitions: dict[str, ast.stmt] = {}
        self.elsewhere: dict[str, Place | str] = {}
        self.modules: dict[str, str] = {}  # modules of this package, by the name they have here
        self._known: dict[str, list[Use]] = {}
        for node in ast.parse(self.source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.definitions[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for name in _stored(node):
                    self.definitions[name] = node
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        origin = getattr(node, "module", None) or ""
        for alias in node.names:
            name = alias.asname or alias.name
            inner = f"{origin}.{alias.name}"
            if origin.split(".")[0] != "pe_numpy":
                self.elsewhere[name] = ast.unparse(_only(node, alias))
            elif _is_package(origin):
                self.modules[name] = inner
            else:
                self.elsewhere[name] = Place(origin, alias.name, self.form)

    def look_up(self, name: str) -> Place | str | None:
        """What a bare name stands for at the top level of this module."""
        if name not in self.definitions:
            return self.elsewhere.get(name)
        if self.name.startswith(SOLVED) and name in pe_numpy.__all__:
            return solution_of(name)  # there may be two
        return Place(self.name, name, self.form)

    def uses_of(self, name: str) -> list[Use]:
        """All uses of names from elsewhere within a definition, looked for once."""
        if name not in self._known:
            self._known[name] = list(self.uses(self.definitions[name]))
        return self._known[name]

    def uses(self, node: ast.AST) -> Iterator[Use]:
        """All uses of names from elsewhere within a piece of code."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in self.modules:  # checks.even
                yield Use(node, Place(self.modules[node.value.id], node.attr, self.form))
                return
        if isinstance(node, ast.Name) and (target := self.look_up(node.id)):
            yield Use(node, target)
        own = _bound(node) if isinstance(node, ast.FunctionDef) else set()
        for child in ast.iter_child_nodes(node):
            for use in self.uses(child):
                if not (isinstance(use.node, ast.Name) and use.node.id in own):
                    yield use


@cache
def read(module: str, form: Form = AS_IT_IS) -> Module:
    """Read a module once in each form."""
    return Module(module, form)


def _is_package(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def _only(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    if isinstance(node, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(node.module, [alias], 0)


def _stored(node: ast.AST) -> set[str]:
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


def _bound(function: ast.FunctionDef) -> set[str]:
    """Names that a function binds itself: arguments, variables, inner functions."""
    inner = [n for statement in function.body for n in ast.walk(statement)]
    names = {n.name for n in inner if isinstance(n, ast.FunctionDef)}
    names |= {n.arg for n in ast.walk(function.args) if isinstance(n, ast.arg)}
    return names | {name for statement in function.body for name in _stored(statement)}


# ---- what is needed -----------------------------------------------------------------------------


def closure(wanted: Sequence[Place]) -> tuple[list[Place], bool]:
    """All that some definitions need, in an order that can run; and whether the tape is in."""
    found = _closure(wanted, tape=False)
    tape = any(place.module == TAPE for place in found)
    windows = any(place.name == "is_window" for place in found)
    wanted = [
        place._replace(form=Form(True, tape, windows) if place.form.plain else AS_IT_IS)
        for place in wanted
    ]
    found = _closure(wanted, tape)
    return sorted(found, key=lambda place: (_depth(place.module), place.module, _line(place))), tape


def _closure(wanted: Iterable[Place], tape: bool) -> set[Place]:
    asked, found = set(wanted), set()
    todo = list(asked)
    while todo:
        place = todo.pop()
        if place in found:
            continue
        found.add(place)
        todo += [
            u.target for u in _uses(place, place in asked, tape) if isinstance(u.target, Place)
        ]
    return found


def _uses(place: Place, asked: bool, tape: bool) -> Iterator[Use]:
    """What a definition uses; with its doctest, if it was asked for."""
    module = read(place.module, place.form)
    node = module.definitions[place.name]
    skipped = set() if tape else {n for d in _plain_decorators(node) for n in ast.walk(d)}
    yield from (use for use in module.uses_of(place.name) if use.node not in skipped)
    if asked:
        for example in doctest.DocTestParser().get_examples(_docstring(node) or ""):
            tree = ast.parse(example.source)
            yield from module.uses(tree)
            for imported in (n for n in tree.body if isinstance(n, ast.ImportFrom)):
                if imported.module == "pe_numpy":
                    for alias in imported.names:
                        yield Use(ast.Name(alias.name), place_of(alias.name, place.form))


def _plain_decorators(node: ast.stmt) -> list[ast.expr]:
    decorators = getattr(node, "decorator_list", [])
    return [d for d in decorators if isinstance(d, ast.Name) and d.id == "differentiable"]


def _docstring(node: ast.stmt) -> str | None:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return ast.get_docstring(node, clean=False)
    return None


@cache
def _depth(module: str) -> int:
    """How many modules of this package stand below one: what it imports must come before it."""
    own = read(module)
    below = set(own.modules.values())
    below |= {target.module for target in own.elsewhere.values() if isinstance(target, Place)}
    return 1 + max(map(_depth, below), default=0)


def _line(place: Place) -> int:
    return read(place.module, place.form).definitions[place.name].lineno


def solved_in(name: str, chapter: int) -> Path | None:
    """The file that solves the exercise of this name, if one does: that of its chapter first."""
    own = f"{chapter:02}_"
    for path in sorted(SOLUTIONS.glob("*.py"), key=lambda path: (path.name[:3] != own, path.name)):
        if name in read(SOLVED + path.stem).definitions:
            return path
    return None


def solution_of(name: str) -> Place | None:
    """Where the book solves the exercise of this name, if it is one."""
    path = solved_in(name, chapter_of(name))
    return None if path is None else Place(SOLVED + path.stem, name)


def place_of(name: str, form: Form = AS_IT_IS) -> Place:
    """Where a public function or class is defined."""
    return Place(getattr(pe_numpy, name).__module__, name, form)


# ---- how it is written --------------------------------------------------------------------------


def copy(names: Sequence[str], plain: bool = False) -> str:
    """Return a file that holds public functions and what they need.

    Parameters
    ----------
    names : sequence of words
        Names of public functions or classes of `pe_numpy`; or "original", the Transformer of 2017
        on a page, or "decoder", one of today, which come alone.
    plain : bool
        The short form: no checks of input, and one sentence for a docstring. On good input it
        computes the same. If all names are exercises it is the book's solutions, which have the
        only the options of the exercise, and take arrays.

    Returns
    -------
    The text of the file.

    Raises
    ------
    ValueError
        If a name is unknown (the message suggests the nearest), or needs the whole package; if a
        page is not asked for alone.
    """
    for page in PAGES:
        if page in names:
            return _whole_page(names)
    names = [known_name(name) for name in dict.fromkeys(names)]
    for name in WHOLE:
        if name in names:
            raise ValueError(f"copy: {name} needs the whole package; install pe_numpy for it")
    solved = [place for name in names if plain and (place := solution_of(name))]
    asked = solved if len(solved) == len(names) else [place_of(n, Form(plain)) for n in names]
    places, tape = closure(asked)
    called = _out_names(places, asked)
    imports: set[str] = set()
    pieces: dict[tuple[str, int], str] = {}
    for place in places:
        uses = list(_uses(place, False, tape))
        imports |= {use.target for use in uses if isinstance(use.target, str)}
        edits = [(u.node, called[u.target]) for u in uses if isinstance(u.target, Place)]
        keep = plain or place in asked
        pieces[place.module, _line(place)] = _piece(place, edits, called, keep, tape)
    head = (PLAIN_HEADER if plain else HEADER).format(
        names=", ".join(names),
        name=names[0] if len(names) == 1 else "NAME",
        version=pe_numpy.__version__,
        sources="\n".join(f"{name}: {source_of(name)}." for name in names),
    )
    first = [] if asked is solved else ["from __future__ import annotations"]
    return (
        "\n\n".join([head, *first, _import_lines(imports)])
        + "\n\n\n"
        + "\n\n\n".join(pieces.values())
        + "\n"
    )


def _whole_page(names: Sequence[str]) -> str:
    if len(names) > 1:
        raise ValueError(
            f"copy: {' and '.join(PAGES)} are pages, each is copied alone; got {' '.join(names)}"
        )
    page = Path(pe_numpy.__file__).parent / "transformer" / f"{names[0]}.py"
    licence = f"From pe_numpy {pe_numpy.__version__}. Licence: MIT, Copyright (c) 2026 The pe_numpy"
    notice = f"\n{licence}\nauthors; keep this notice.\n" + '"""\n\nimport'
    return page.read_text(encoding="utf-8").replace('"""\n\nimport', notice, 1)


def _out_names(places: Sequence[Place], asked: Sequence[Place]) -> dict[Place, str]:
    names = [place.name for place in places]
    return {
        place: f"{place.module.rpartition('.')[2].lstrip('0123456789_')}_{place.name}"
        if (place.module == "pe_numpy.checks" and not place.form.plain)
        or (names.count(place.name) > 1 and place not in asked)
        else place.name
        for place in places
    }


def _import_lines(statements: set[str]) -> str:
    """Imports, sorted, one line per module; numpy last, and always there."""
    plain = {s for s in statements if s.startswith("import ")} | {"import numpy as np"}
    lines = list(plain)
    origins: dict[str, list[str]] = {}
    for statement in statements - plain:
        origin, _, name = statement.partition(" import ")
        origins.setdefault(origin, []).append(name)
    lines += [f"{origin} import {', '.join(sorted(own))}" for origin, own in origins.items()]
    third = [line for line in lines if "numpy" in line]
    standard = sorted(set(lines) - set(third), key=lambda line: (line[:4] == "from", line))
    return "\n\n".join("\n".join(part) for part in (standard, sorted(third, reverse=True)) if part)


def _piece(
    place: Place,
    edits: list[tuple[ast.expr, str]],
    called: dict[Place, str],
    asked: bool,
    tape: bool,
) -> str:
    """The code of one definition, under its new name and with the new names of what it uses."""
    module = read(place.module, place.form)
    node = module.definitions[place.name]
    lines = [line.encode() for line in module.source.splitlines()]  # ast counts bytes
    for used, name in sorted(edits, key=lambda e: (e[0].lineno, e[0].col_offset), reverse=True):
        row, start, end = used.lineno - 1, used.col_offset, used.end_col_offset
        lines[row] = lines[row][:start] + name.encode() + lines[row][end:]
    row = node.lineno - 1
    old, new = re.escape(place.name.encode()), called[place].encode()
    lines[row] = re.sub(rb"^(def |class |)" + old + rb"\b", rb"\g<1>" + new, lines[row])
    first, drop = _first_line(module, node), set()
    if not tape:
        drop |= {decorator.lineno - 1 for decorator in _plain_decorators(node)}
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part):
            _shorten(part, lines, drop, keep=asked)
    return "\n".join(
        line.decode()
        for n, line in enumerate(lines[: node.end_lineno])
        if n >= first and n not in drop
    )


def _first_line(module: Module, node: ast.stmt) -> int:
    """The line, from 0, where a definition begins: with its decorators and the comment above."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
    lines = module.source.splitlines()
    above = first
    while lines[above - 1].startswith("#"):
        above -= 1
    return first if "----" in "".join(lines[above:first]) else above


def _shorten(
    node: ast.FunctionDef | ast.ClassDef, lines: list[bytes], drop: set[int], keep: bool
) -> None:
    """Keep a docstring without its imports of the package; or only its first sentence."""
    text = node.body[0]
    rows = range(text.lineno - 1, text.end_lineno or 0)
    if keep:
        drop |= {n for n in rows if lines[n].strip().startswith(b">>> from pe_numpy import")}
        return
    blank = next((n for n in rows if not lines[n].strip()), None)
    if blank is not None:
        lines[blank - 1] += b'"""'
        drop |= set(range(blank, rows[-1] + 1))
