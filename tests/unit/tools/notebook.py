"""Runs the cells of a notebook in order, as Jupyter would, without Jupyter: notebook.py FILE"""

import json
import sys

notebook = json.load(open(sys.argv[1], encoding="utf-8"))
names = {"display": print}
count = 0
for cell in notebook["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), f"cell {count}", "exec"), names)
        count += 1
assert count >= 5, count
assert names["axes"].lines or names["axes"].collections, "the last plot is empty"
print(f"{count} cells ran")
