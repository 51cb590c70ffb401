"""Find the assertions of a chapter that nothing computed in the book can make fail.

A name is *of the book* if its value depends on the package, on a function of the chapter, on a
file, or on another name of the book. An assertion whose value depends on no such name tests typed
numbers, arithmetic or NumPy. It is listed; so is an equality whose two sides are one expression,
once each name is replaced by what it was assigned. What is listed is replaced, or has a reason in
`tests/book/reasons/STEM.txt`:

    # the reason, for all assertions below it
    assert 64 * 64 == 4096
"""

from __future__ import annotations

import ast
import re

FILES = {"load", "open", "read_text", "DictReader", "loadtxt"}
CLOSE = re.compile(r"\b(allclose|isclose|array_equal)$")
EMPTY = ("{}", "[]", "dict()", "list()")


class Reader(ast.NodeVisitor):
    """Reads the cells of a chapter in order: which names are of the book, what each stands for."""

    def __init__(self) -> None:
        self.book: set[str] = set()
        self.assigned: dict[str, ast.expr] = {}
        self.empty: set[str] = set()  # names of what was an empty list or dictionary when made
        self.within = False  # whether something of the book decides if this line runs
        self.listed: list[ast.Assert] = []

    def of_the_book(self, node: ast.AST) -> bool:
        """Whether a value depends on something that the book computes."""
        if isinstance(node, ast.Lambda):
            return True
        if isinstance(node, ast.Call):
            last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if last in FILES or (isinstance(node.func, ast.Name) and node.func.id in FILES):
                return True
        if isinstance(node, ast.Name):
            return node.id in self.book
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for generator in node.generators:
                self.bind(generator.target, self.of_the_book(generator.iter))
        return any(self.of_the_book(child) for child in ast.iter_child_nodes(node))

    def bind(self, target: ast.AST, computed: bool) -> None:
        """Give a name, or all names of a tuple, what was found of their value."""
        if isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self.bind(each, computed)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, computed)
        elif isinstance(target, ast.Name):
            self.assigned.pop(target.id, None)
            (self.book.add if computed or self.within else self.book.discard)(target.id)
        elif isinstance(target, ast.Subscript | ast.Attribute) and (computed or self.within):
            self.touch(target.value)

    def touch(self, node: ast.expr) -> None:
        """What is changed in place holds something of the book from now on."""
        while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name):
            self.assigned.pop(node.id, None)
            self.book.add(node.id)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if (node.module or "").split(".")[0] == "pe_numpy":
            self.book |= {alias.asname or alias.name for alias in node.names}

    def visit_Import(self, node: ast.Import) -> None:
        self.book |= {a.asname or a.name for a in node.names if a.name.startswith("pe_numpy")}

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        self.book.add(node.name)

    visit_ClassDef = visit_FunctionDef

    def visit_Call(self, node: ast.Call) -> None:
        """A function of the book may fill the empty dictionary that it is given."""
        if self.of_the_book(node.func):
            for each in [*node.args, *(keyword.value for keyword in node.keywords)]:
                if isinstance(each, ast.Name) and each.id in self.empty:
                    self.touch(each)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        computed = self.of_the_book(node.value)
        for target in node.targets:
            self.unpack(target, node.value, computed)
        for target in node.targets:
            if isinstance(target, ast.Name) and pure(node.value) and not self.within:
                self.assigned[target.id] = self.inlined(node.value)

    def unpack(self, target: ast.expr, value: ast.expr, computed: bool) -> None:
        """`a, b = 1, f()`: each name by its own value."""
        pairs = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        if pairs and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
            found = [self.of_the_book(each) for each in value.elts]  # type: ignore[attr-defined]
            for each, its in zip(target.elts, found, strict=True):  # type: ignore[attr-defined]
                self.bind(each, its)
        else:
            self.bind(target, computed)
        names = {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
        made = value.elts if isinstance(value, ast.Tuple) else [value]
        if all(ast.unparse(each) in EMPTY for each in made):
            self.empty |= names

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.bind(node.target, node.value is not None and self.of_the_book(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if self.of_the_book(node.value) or self.within:
            self.touch(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.bind(node.target, self.of_the_book(node.value))

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self.bind(node.target, self.of_the_book(node.iter))
        self.block(self.of_the_book(node.iter), [*node.body, *node.body, *node.orelse])

    def visit_If(self, node: ast.If | ast.While) -> None:
        self.visit(node.test)
        self.block(self.of_the_book(node.test), [*node.body, *node.body, *node.orelse])

    visit_While = visit_If

    def block(self, decided: bool, statements: list[ast.stmt]) -> None:
        """Statements that a condition or a loop runs: twice, for what the end changes."""
        before, self.within = self.within, self.within or decided
        for statement in statements:
            self.visit(statement)
        self.within = before

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self.bind(item.optional_vars, self.of_the_book(item.context_expr))
        for statement in node.body:
            self.visit(statement)

    def visit_Expr(self, node: ast.Expr) -> None:
        """`rows.append(f(x))` changes rows."""
        self.visit(node.value)
        call = node.value
        if isinstance(call, ast.Call) and (self.within or self.of_the_book(call)):
            if isinstance(call.func, ast.Attribute):
                self.touch(call.func.value)
            for argument in call.args:  # `shuffle(x)`, `np.copyto(x, y)`
                if isinstance(argument, ast.Name):
                    self.touch(argument)

    def visit_Assert(self, node: ast.Assert) -> None:
        if not self.of_the_book(node.test) or self.same_sides(node.test):
            self.listed.append(node)

    def same_sides(self, test: ast.expr) -> bool:
        """`x == y`, or np.allclose(x, y), with one expression on both sides."""
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            sides = [test.left, test.comparators[0]]
        elif isinstance(test, ast.Call) and CLOSE.search(ast.unparse(test.func)):
            sides = test.args[:2]
        else:
            return False
        if any(isinstance(side, ast.Starred) for side in sides):
            return False
        left, right = (ast.unparse(self.inlined(side)) for side in sides)
        return left == right

    def inlined(self, node: ast.expr) -> ast.expr:
        """An expression with each name in it replaced by what it was assigned."""
        reader = self

        class Names(ast.NodeTransformer):
            def visit_Name(self, name: ast.Name) -> ast.expr:
                return reader.assigned.get(name.id, name)

        return Names().visit(ast.parse(ast.unparse(node), mode="eval").body)


def pure(value: ast.expr) -> bool:
    """Whether an expression may stand for its name: short, and no random draw."""
    text = ast.unparse(value)
    return len(text) < 200 and "rng" not in text and "random" not in text


def without_tolerance(source: str) -> list[str]:
    """The comparisons of a cell that leave a tolerance to NumPy (1e-5 of the size)."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if re.search(r"\bnp\.(allclose|isclose)$", ast.unparse(call.func))
        and not {"rtol", "atol"} <= {keyword.arg for keyword in call.keywords}
    ]


def listed(cells: list[str]) -> list[str]:
    """The assertions of these cells, read in order, that nothing of the book can make fail."""
    reader = Reader()
    for source in cells:
        reader.visit(ast.parse(source))
    return list(dict.fromkeys(ast.unparse(node) for node in reader.listed))
