"""Code without its checks of input: what is left computes the same, and fits on a page.

Which statements only check, `only_checks` tells, for the listings of the chapters, too. What
a check gives back is used on: `x = checks.real_array("rope", "x", x, "LK")` becomes
`x = 1.0 * np.asarray(x)`, so that lists and whole numbers stay welcome. Names that only checks
read go as well, and docstrings keep their first sentence. Numbers are taken as they are: a float64
of NumPy among float32 arrays is no longer made a float of Python, and may change the last bit.
So may `sinusoidal` and `rope` at many positions, whose short cut goes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

OURS = ("check_distance", "each_distance", "add_to")  # of pe_numpy.relative.distance
WINDOW = "_consecutive("  # asked before distances become a window
# Asked before what gives the same, except for rounding, in less time or memory.
SHORT_CUTS = ("is_run(", "is_grid(", "isinstance(scores, np.ndarray)")
FLOATS = "1.0 * {array}({2})"  # whole numbers become float64, a floating dtype stays what it is
LEFT = {  # what is left of a check; {0}, {1}, ... are its arguments
    "as_array": "{array}({0})",
    "whole_array": "{array}({2})",
    "real_array": FLOATS,
    "exact_shape": FLOATS,
    "head_table": FLOATS,
    "position_array": "{array}({2})",
    "pair_frequencies": "{array}({1})",
    "mask_array": "{array}({1})",
    "whole_numbers": "np.asarray({2}, np.int64)",
    "bias_distance": "np.asarray({1}, np.int64)",
    "check_distance": "np.asarray({1}, np.int64)",
    "each_distance": "{0}({1})",  # this and the next save time and memory, and change no bit
    "add_to": "{0} + {1}",
    "axis": "{3}",
    **dict.fromkeys(
        "integer even multiple_of_4 number positive above share flag choice".split(), "{2}"
    ),
}


class Edit(NamedTuple):
    """Bytes of a source, and what stands in their place."""

    start: int
    end: int
    new: bytes


def only_checks(node: ast.stmt) -> bool:
    r"""Whether a statement does nothing but refuse bad input, or make an array of a good one.

    Parameters
    ----------
    node : statement
        As Python's `ast` reads it.

    Returns
    -------
    True if a reader who has good arrays can do without it.

    Examples
    --------
    >>> code = "x = checks.real_array('f', 'x', x)\nif x.ndim < 2: raise ValueError\nx = x + 1"
    >>> [only_checks(statement) for statement in ast.parse(code).body]
    [True, True, False]
    """
    if isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
        given = [ast.unparse(argument) for argument in node.value.args]
        targets = [ast.unparse(x) for x in node.targets] if isinstance(node, ast.Assign) else []
        check = ast.unparse(node.value.func).startswith("checks.") or given[:1] == ["name"]
        return check and all(target in given for target in targets)
    if (isinstance(node, ast.If) and not node.orelse) or isinstance(node, ast.For):
        return all(isinstance(x, ast.Raise) or only_checks(x) for x in node.body)
    return False


def is_short_cut(node: ast.stmt) -> bool:
    """Whether a statement only gives the same, up to rounding, in less time."""
    return isinstance(node, ast.If) and any(s in ast.unparse(node.test) for s in SHORT_CUTS)


def plain(source: str, tape: bool = False, windows: bool = True) -> str:
    """Return the source of a module without checks of input, docstrings cut to a sentence.

    Parameters
    ----------
    source : str
        Of a module of this package.
    tape : bool
        Whether arrays may be those of `value_and_grad`, which `np.asarray` can't read.
    windows : bool
        Whether anything reads distances as a window of one line; else none is made.

    Returns
    -------
    The source. Functions that did nothing but check are empty, and no longer called.

    Examples
    --------
    >>> print(plain('''
    ... def double(x):
    ...     \"\"\"Twice x.
    ...
    ...     More of it.
    ...     \"\"\"
    ...     x = checks.real_array("double", "x", x)
    ...     if x.size == 0:
    ...         raise ValueError("double: x is empty")
    ...     return 2 * x''').strip())
    def double(x):
        \"\"\"Twice x.\"\"\"
        x = 1.0 * np.asarray(x)
        return 2 * x
    """
    code = _Code(source, tape, windows)
    checked = [n for n in code.functions if n.name == "__post_init__"]  # of frozen classes
    source = code.without(checked) or source
    code, before = _Code(source, tape, windows), ""
    read = [_names(node, ast.Load) for node in code.functions]
    source = code.without_checks()
    while source != before:
        code, before = _Code(source, tape, windows), source
        source = (
            code.without(_unneeded(code.functions, read))
            or code.shorter()
            or code.without_parameter(read)
        )
    return re.sub(r"\n\n\n( +)", r"\n\n\1", source)


def _names(node: ast.AST, kind: type[ast.expr_context]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, kind)}


def _unneeded(functions: Sequence[ast.FunctionDef], read: Sequence[set[str]]) -> Iterator[ast.stmt]:
    """Assignments to names that nothing reads any more, and what only checked and is empty."""
    empty = {node.name for node in functions if _is_empty(node)}
    for function, once in zip(functions, read, strict=True):
        lost = once - _names(function, ast.Load)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                parts = [x for target in node.targets for x in ast.walk(target)]
                into = [x for x in parts if isinstance(getattr(x, "ctx", None), ast.Store)]
                only_lost = all(
                    isinstance(x, ast.Tuple) or (isinstance(x, ast.Name) and x.id in lost)
                    for x in into
                )
                if only_lost or ast.unparse(node.targets[0]) == ast.unparse(node.value):
                    yield node
            elif isinstance(node, ast.For | ast.If) and not node.orelse:
                if all(isinstance(x, ast.Pass) for x in node.body):
                    yield node
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                if isinstance(node.value.func, ast.Name) and node.value.func.id in empty:
                    yield node


def _is_empty(function: ast.FunctionDef) -> bool:
    return all(isinstance(x, ast.Pass) or _is_docstring(x) for x in function.body)


class _Code:
    """A source to be edited: its tree, its bytes, and where each line begins."""

    def __init__(self, source: str, tape: bool, windows: bool) -> None:
        self.windows = windows
        self.data = source.encode()
        self.tree = ast.parse(source)
        self.functions: list[ast.FunctionDef] = []
        self.names: dict[str, int] = {}  # how often each is read
        self.calls: dict[str, list[ast.Call]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                self.functions.append(node)
            elif isinstance(node, ast.Name):
                self.names[node.id] = self.names.get(node.id, 0) + 1
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if not any(isinstance(argument, ast.Starred) for argument in node.args):
                    self.calls.setdefault(node.func.id, []).append(node)
        self.array = "checks.as_array" if tape else "np.asarray"
        self.starts = [0, *(m.end() for m in re.finditer(b"\n", self.data)), len(self.data)]

    def without_checks(self) -> str:
        """The source that is left."""
        return self.edited(list(self._body(self.tree.body)))

    def without(self, statements: Iterable[ast.stmt]) -> str:
        """The source without some simple statements; nothing if there are none."""
        gone, edits = list(statements), set()
        if not gone:
            return ""
        for node in ast.walk(self.tree):
            for block in _blocks(node):
                own = [statement for statement in block if statement in gone]
                edits |= set(self._emptied(block, node) if own == block else map(self.cut, own))
        return self.edited(edits)

    def shorter(self) -> str:
        """The source without one name that only holds a result, or one call that gives back x."""
        for function in self.functions:
            *before, last = function.body
            value = last.value if isinstance(last, ast.Return) else None
            if not isinstance(value, ast.Name):
                continue
            made = before[-1] if before else None
            if isinstance(made, ast.Assign) and ast.unparse(made.targets[0]) == value.id:
                start, end = self._span(made)[0], self._span(made.value)[0]
                return self.edited([Edit(start, end, b"return "), self.cut(last)])
            parameters = [parameter.arg for parameter in function.args.args]
            alone = all(map(_is_docstring, before))
            calls = self._calls_of(function)
            if alone and calls and value.id in parameters:
                call, n = calls[-1], parameters.index(value.id)
                if n < len(call.args):
                    given = _bracketed(self._text(call.args[n]))
                    return self.edited([Edit(*self._span(call), given.encode())])
        return ""

    def without_parameter(self, read: Sequence[set[str]]) -> str:
        """The source without one parameter of an inner function that only checks have read.

        Handing it on to itself, a function does not read it.
        """
        for function, once in zip(self.functions, read, strict=True):
            if not (calls := self._calls_of(function)):
                continue
            parameters = function.args.args
            named = len(parameters) - len(function.args.defaults)
            placed = min(named, *(len(call.args) for call in calls))  # never given by its name
            for n, parameter in enumerate(parameters[:placed]):
                passed = [call.args[n] for call in calls]
                names = [x for x in ast.walk(function) if isinstance(x, ast.Name)]
                unread = all(x in passed for x in names if x.id == parameter.arg)
                if unread and parameter.arg in once and len(parameters) > 1:
                    edits = [self._omit(call.args, n) for call in calls]
                    return self.edited([self._omit(parameters, n), *edits])
        return self.edited([])

    def _calls_of(self, function: ast.FunctionDef) -> list[ast.Call]:
        """All calls of an inner function; none if it is used in other ways, too."""
        calls = self.calls.get(function.name, [])
        inner = function.name[0] == "_" and len(calls) == self.names.get(function.name)
        return calls if inner else []

    def _omit(self, parts: Sequence[ast.expr | ast.arg], n: int) -> Edit:
        """Remove one of some parts with commas between them."""
        if n + 1 < len(parts):
            return Edit(self._span(parts[n])[0], self._span(parts[n + 1])[0], b"")
        return Edit(self._span(parts[n - 1])[1], self._span(parts[n])[1], b"")

    def edited(self, edits: Iterable[Edit]) -> str:
        """The source with some edits, which don't overlap."""
        data = self.data
        for edit in sorted(edits, reverse=True):
            data = data[: edit.start] + edit.new + data[edit.end :]
        return data.decode()

    def cut(self, node: ast.stmt) -> Edit:
        """Remove the lines of a statement, and the comment above it."""
        first = node.lineno - 1
        while self._line(first - 1).startswith(b"#"):
            first -= 1
        return Edit(self.starts[first], self.starts[node.end_lineno or node.lineno], b"")

    def _line(self, row: int) -> bytes:
        return self.data[self.starts[row] : self.starts[row + 1]].strip()

    def _span(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    def _text(self, node: ast.expr) -> str:
        """An expression, with what is left of the checks in it."""
        start, end = self._span(node)
        data = self.data[start:end]
        for edit in sorted(self._calls(node), reverse=True):
            data = data[: edit.start - start] + edit.new + data[edit.end - start :]
        return data.decode()

    def _calls(self, node: ast.AST, whole: bool = True) -> Iterator[Edit]:
        """What becomes of the checks in an expression; `whole` if nothing stands around it."""
        if isinstance(node, ast.Call) and (left := self._left(node)):
            yield Edit(*self._span(node), (left if whole else _bracketed(left)).encode())
            return
        for child in ast.iter_child_nodes(node):
            inside = isinstance(node, ast.Call | ast.GeneratorExp | ast.ListComp | ast.Tuple)
            inside &= not isinstance(node, ast.Call) or child is not node.func
            if not isinstance(child, ast.stmt):
                yield from self._calls(child, inside or isinstance(node, ast.stmt))

    def _left(self, call: ast.Call) -> str:
        """What is left of a call, if it is a check."""
        place, _, name = ast.unparse(call.func).rpartition(".")
        if place != ("" if name in OURS else "checks"):
            return ""
        if name == "common_batch":
            parts = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
            return f"np.broadcast_shapes({', '.join(map(self._text, parts))})"
        if name not in LEFT:
            return ""
        given = [self._text(argument) for argument in call.args]
        if name in OURS:
            given = [_bracketed(code) for code in given]
        return LEFT[name].format(*given, array=self.array)

    def _body(self, statements: Sequence[ast.stmt]) -> Iterator[Edit]:
        """Edits of some statements that follow each other."""
        for node in statements:
            if _is_docstring(node):
                yield from self._first_sentence(node)
            elif only_checks(node) or _refuses(node) or self._is_check(node):
                yield from self._check(node)
            elif not self.windows and isinstance(node, ast.If) and WINDOW in ast.unparse(node.test):
                yield self.cut(node)
            elif is_short_cut(node):
                yield self.cut(node)
            elif two := self._queries_and_keys(node):
                yield Edit(*self._span(node), two)
            else:
                for part in ast.iter_child_nodes(node):
                    if not isinstance(part, ast.stmt | ast.excepthandler):
                        yield from self._calls(part)
                for inner in _blocks(node):
                    edits = list(self._body(inner))
                    yield from edits if self._is_left(inner, edits) else self._emptied(inner, node)

    def _queries_and_keys(self, node: ast.stmt) -> bytes:
        """Two lines for `q, k, batch = checks.queries_and_keys(name, q, k)`; else none."""
        match node:
            case ast.Assign([ast.Tuple([*three])], ast.Call(ast.Attribute(attr=name), [_, x, y])):
                if name == "queries_and_keys":
                    q, k, batch = map(ast.unparse, three)
                    arrays = ", ".join(f"1.0 * {self.array}({self._text(z)})" for z in (x, y))
                    shapes = f"{batch} = np.broadcast_shapes({q}.shape[:-2], {k}.shape[:-2])"
                    return f"{q}, {k} = {arrays}\n{' ' * node.col_offset}{shapes}".encode()
        return b""

    def _check(self, node: ast.stmt) -> Iterator[Edit]:
        """Edits of a statement that only checks: what it gives back, if that is used."""
        if isinstance(node, ast.Assign):
            target, value = ast.unparse(node.targets[0]), self._text(node.value)
            if value == target:
                yield self.cut(node)
            else:
                yield Edit(*self._span(node), f"{target} = {value}".encode())
            return
        for inner in _blocks(node):
            edits = list(self._body(inner))
            if not isinstance(inner[-1], ast.Raise) and self._is_left(inner, edits):
                yield from edits
                return
        yield self.cut(node)

    def _is_check(self, node: ast.stmt) -> bool:
        """Whether a statement is a call whose result nobody uses."""
        value = node.value if isinstance(node, ast.Expr) else None
        return isinstance(value, ast.Call) and bool(self._left(value))

    def _is_left(self, block: Sequence[ast.stmt], edits: Sequence[Edit]) -> bool:
        """Whether anything of a block is left after these edits."""
        return not all(self.cut(node) in edits for node in block)

    def _emptied(self, block: Sequence[ast.stmt], node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.If) and block == node.orelse:  # with its line `else:`
            start, end = node.body[-1].end_lineno or 0, block[-1].end_lineno or 0
            yield Edit(self.starts[start], self.starts[end], b"")
            return
        first, *rest = map(self.cut, block)
        yield first._replace(new=b" " * block[0].col_offset + b"pass\n")
        yield from rest

    def _first_sentence(self, node: ast.stmt) -> Iterator[Edit]:
        start, end = self._span(node)
        text = self.data[start:end]
        sentence = text.partition(b"\n\n")[0]
        if sentence != text:
            yield Edit(start, end, sentence + text[-3:])


def _bracketed(code: str) -> str:
    """An expression that may stand beside an operator."""
    return code if re.fullmatch(r"[\w.]+(\([^()]*\)|\[[^][]*\])*", code) else f"({code})"


def _refuses(node: ast.stmt) -> bool:
    """Whether a statement tells what is wrong, in more than one."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.body[-1], ast.Raise):
        return False
    return all(isinstance(told, ast.Assign) for told in node.body[:-1])


def _is_docstring(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement: its body, the other branch, what handles errors."""
    for owner in (node, *getattr(node, "handlers", [])):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(owner, name, None), list) and block:
                yield block
