"""help() says something of every public name: what it does, its parameters, its errors."""

import ast
import pydoc
import re

import cistern
import cistern.torch
import pytest
from conftest import PACKAGE

ROOT = PACKAGE / "cistern"
#: Modules that users import, and those whose classes and functions they get from there.
MODULES = [*(path for path in sorted(ROOT.glob("*.py")) if not path.name.startswith("_")), ROOT / "__init__.py",
           ROOT / "_observed.py", ROOT / "_overflow.py", ROOT / "_history.py", ROOT / "_contents.py", ROOT / "_location.py",
           *(ROOT / f"torch/{name}.py" for name in ("__init__", "_enable", "_host_activations", "_host_memory", "_label_modules", "_mem_pool", "_overflow",
                                               "_regions"))]
#: Their functions are for the package's other modules.
WITHIN = {"errors.error_of", "pool.id_by", "statistics.read", "_overflow.read", "_overflow.set_to",
          "_overflow.host_bytes_left"}


def is_function(node):
    return isinstance(node, ast.FunctionDef)


def is_overload(node):
    return any(ast.unparse(each).endswith(("overload", ".setter")) for each in node.decorator_list)


def functions(path):
    """Each public function and method of a module: its name, and its node."""
    module = ast.parse(path.read_text())
    scopes = [(path.stem, module), *((f"{path.stem}.{node.name}", node) for node in module.body
                                     if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))]
    return [(f"{scope}.{node.name}", node) for scope, within in scopes for node in within.body
            if is_function(node) and not node.name.startswith("_") and not is_overload(node)]


def classes(path):
    return [(f"{path.stem}.{node.name}", node) for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


FUNCTIONS = [pair for path in MODULES for pair in functions(path) if pair[0] not in WITHIN]
CLASSES = [pair for path in MODULES for pair in classes(path)]


def named(pairs):
    return pytest.mark.parametrize("node", [node for _, node in pairs], ids=[name for name, _ in pairs])


def words(node):
    return re.findall(r"\w+", ast.get_docstring(node) or "")


def test_what_is_looked_at_is_the_package():
    names = {name for name, _ in FUNCTIONS + CLASSES}
    assert {"allocator.Allocator.allocate", "_observed.Observed.stats", "cupy.enable", "_enable.enable",
            "numba.MemoryManager.memalloc", "replay.Replay", "errors.OutOfMemoryError"} <= names
    defined = {name.split(".")[-1] for name in names}
    public = {*cistern.__all__, *cistern.torch.__all__} - {"Conf", "StreamLike", "Mode"}  # types
    assert public <= defined


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_each_module_has_a_docstring(path):
    assert len(words(ast.parse(path.read_text()))) >= 3


@named(FUNCTIONS + CLASSES)
def test_each_has_a_docstring_of_more_than_a_word(node):
    assert len(words(node)) >= 3


@named(FUNCTIONS)
def test_each_parameter_is_named(node):
    arguments = node.args
    names = {each.arg for each in arguments.posonlyargs + arguments.args + arguments.kwonlyargs} - {"self", "cls"}
    assert names <= set(words(node))


@named([(name, node) for name, node in FUNCTIONS if name.count(".") == 1 and node.args.args])
def test_each_function_names_its_errors(node):
    assert "Error" in ast.get_docstring(node)


@named([(name, node) for name, node in CLASSES if any(map(is_function, node.body)) and node.bases != []
        or name in ("pinned.Pinned", "allocator.Allocator")])
def test_each_class_with_methods_names_its_errors(node):
    assert "Error" in ast.get_docstring(node)


@named([(name, node) for name, node in CLASSES
        if any("dataclass" in ast.unparse(each) for each in node.decorator_list)])
def test_each_field_is_named(node):
    fields = {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}
    assert fields <= set(words(node))


def test_the_page_of_the_package_begins_with_what_is_needed():
    page = pydoc.render_doc(cistern, renderer=pydoc.plaintext).partition("PACKAGE CONTENTS")[0]
    assert all(len(line) <= 80 for line in page.splitlines())
    for name in ("Allocator", "buffer", "OutOfMemoryError", "replay(", "cistern.torch", "Conf", "StreamLike",
                 "python -m cistern info"):
        assert name in page
