"""The rules of a master, checked before anything runs.

The one rule that lets a test cell run apart from the student's kernel: names that the cell imports
or defines are its own, every other name is the student's; and what is the student's is plain data,
or a function that the cell may call.
"""

import ast
import builtins
import symtable
from collections.abc import Iterator

from nbformat import NotebookNode

from autograde.master import items, secret_lines, settings
from course_lib.teaching.misconceptions import named

SCOPE_READERS = {"globals", "locals", "vars", "dir", "eval", "exec", "compile", "__import__"}
OBJECT_READERS = {"IPython", "builtins", "dis", "gc", "inspect", "linecache", "sys"}


def lint_master(notebook: NotebookNode) -> list[str]:
    """What is wrong with a source notebook, one sentence each; empty if nothing is.

    >>> from nbformat.v4 import new_code_cell, new_notebook
    >>> test = dict(grade_id="test_f", grade=True, solution=False, points=1)
    >>> lint_master(new_notebook(cells=[new_code_cell("", metadata={"nbgrader": test})]))
    ["test_f: there is no answer cell 'f' before it; write one or correct the name."]
    """
    problems = [*_structure(notebook)]
    students: set[str] = set()
    for cell in notebook.cells:
        if settings(cell).get("solution") and cell.cell_type == "code":
            try:
                students |= student_names(cell.source)
            except SyntaxError as error:
                problems.append(f"{cell.id}, line {error.lineno}: {error.msg}; correct it.")
    for cell in notebook.cells:
        if settings(cell).get("grade") and not settings(cell)["solution"]:
            problems += [
                f"{settings(cell)['grade_id']}, line {line}: {text}"
                for line, text in sorted(_test_cell(cell.source, students))
            ]
    return problems


def student_names(source: str) -> set[str]:
    """The names an answer cell defines or assigns; what it only imports is not an answer."""
    return bound_names(source) - _imported(source)


def _structure(notebook: NotebookNode) -> Iterator[str]:
    seen: set[str] = set()
    tested = {item.answer for item in items(notebook)}
    for cell in notebook.cells:
        name = settings(cell).get("grade_id")
        if name is None:
            continue
        if name in seen:
            yield f"{name}: two cells have this name; rename one."
        if name.startswith("test_"):
            answer = name.removeprefix("test_").split("__")[0]
            if answer not in seen:
                yield (
                    f"{name}: there is no answer cell {answer!r} before it; "
                    "write one or correct the name."
                )
        elif settings(cell)["solution"] and cell.cell_type == "code":
            if not secret_lines(cell.source, ("SOLUTION",))[0]:
                yield f"{name}: it has no ### BEGIN SOLUTION ... ### END SOLUTION; add them."
            if tested and name not in tested:  # a level without points is tried, not tested
                yield f'{name}: no cell tests it; add one with test="{name}" points=NUMBER.'
        seen.add(name)


def _test_cell(source: str, students: set[str]) -> Iterator[tuple[int, str]]:
    """The line and the sentence of every breach of the one rule in a test cell."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        yield error.lineno or 1, f"{error.msg}; a test is plain Python, without magics."
        return
    allowed = students | set(dir(builtins)) - SCOPE_READERS
    for name in sorted(free_names(source) - allowed):
        yield (
            _line_of(tree, name),
            f"{name!r} is neither imported or defined here nor set by an answer cell; "
            "import or define it in this cell.",
        )
    for name in sorted(bound_names(source) & students):
        yield (
            _line_of(tree, name),
            f"{name!r} is the student's name, and this cell sets it; choose another name.",
        )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                named(node.value)
            except LookupError as error:
                yield node.lineno, f"{error}; correct the id."
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in students:
                yield (
                    node.lineno,
                    f"'{node.value.id}.{node.attr}' looks inside what is the student's; "
                    "call it or compare it as plain data.",
                )
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for module in _modules(node) & OBJECT_READERS:
                yield (
                    node.lineno,
                    f"{module!r} looks into the running process, which here is not the "
                    "student's; test what a call returns.",
                )


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def free_names(source: str) -> set[str]:
    """The names a cell reads but doesn't bind at its top level."""
    top = symtable.symtable(source, "cell", "exec")
    read = {
        symbol.get_name()
        for table in _scopes(top)
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (table is top or symbol.is_global())
    }
    return read - bound_names(source)


def bound_names(source: str) -> set[str]:
    """The names a cell assigns, defines or imports at its top level."""
    symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def _imported(source: str) -> set[str]:
    symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_imported()}


def _modules(node: ast.Import | ast.ImportFrom) -> set[str]:
    names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return {name.split(".")[0] for name in names}


def _line_of(tree: ast.AST, name: str) -> int:
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == name)
        or (isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name)
    ]
    return min(lines, default=1)
