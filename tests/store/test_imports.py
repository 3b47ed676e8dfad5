"""The modules of the store import each other one way, those needed for types alone included."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

STORE = Path(__file__).parents[2] / "designopt" / "store"


def imported(path):
    """Modules of the store that `path` names in an import statement."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "designopt.store":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("designopt.store."):
            found.add(node.module.split(".")[2])
    return found


def test_there_is_no_circle_of_imports_in_the_store():
    graph = {path.stem: imported(path) for path in STORE.glob("*.py")}
    assert graph["result"] >= {"journal_reader", "table", "errors"}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle
    assert order.index("errors") < order.index("journal_reader") < order.index("result")
