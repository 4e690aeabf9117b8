#!/usr/bin/env python3
"""Checks the table of features that meet, pairs.tsv, and that guarantees.md shows it.

  pairs.py ROOT [--write]    --write puts the table into guarantees.md, and lowers the number of open pairs in pairs.tsv

Each pair of features has one row of pairs.tsv, in the order of FEATURES. Its outcome is one of these:

  test     `where`: a test's source, `what`: the title of its case. Or a script, and the name of its test.
  error    `where`: the source that refuses the pair, `what`: text of its message; … stands for a value. After ` | `: the test that expects it.
  reason   `what`: why the two cannot meet, or do not influence each other.
  open     `what`: what a test has to decide.

Several tests are separated by ` | ` in both columns. The first line of pairs.tsv has the number of open pairs, which may only fall.
"""
import itertools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "guide"))
import test_cases  # noqa: E402

FEATURES = {  # in the order of rows: the name in pairs.tsv, and in guarantees.md
    "zero": "ZeRO, stages 1 to 3",
    "tensor": "tensor parallelism",
    "context": "context parallelism",
    "experts": "expert parallelism",
    "accumulation": "gradient accumulation",
    "join_uneven_inputs": "join_uneven_inputs",
    "LocalSGD": "LocalSGD",
    "Ema": "Ema",
    "protection": "protection, with rollback",
    "clipping": "clipping",
    "scaler": "fp16 with the scaler",
    "own_optimizer": "an optimizer of your own class, or stepped past its handle",
    "hooks": "hooks of a model",
    "recomputation": "recomputation",
    "offload": "offloading, of ZeRO or of modules",
    "deferred": "construct_deferred",
    "capture": "capture",
    "free_memory": "free_memory, then further training",
    "load_state": "load_state after some updates",
    "exception": "an exception within a step, then further training",
    "two_models": "two models",
    "several_optimizers": "several optimizers",
    "exported": "exported models",
    "pipeline": "pipelines",
    "adapters": "LoRA adapters",
    "memory_checkpoint": "checkpoints in memory",
    "incremental": "incremental checkpoints",
    "fp8": "mixed_precision fp8",
    "record": "record, of the operators of a step",
    "power_sgd": "PowerSGD",
    "each_node": "checkpoints on each node",
}
MARKS = {"test": "T", "error": "E", "reason": "R", "open": "O"}
COLUMNS = ["first", "second", "outcome", "where", "what"]
BEGIN, END = "<!-- pairs -->\n", "<!-- end of pairs -->"


class Tree(test_cases.Tests):
    """The sources of the project, each read once."""

    def problem_of_message(self, path, message):
        text = self.text(path)
        if text is None:
            return f"{path} does not exist"
        if not path.startswith("src/"):
            return f"{path} is not a source of the library"
        missing = [part.strip() for part in message.split("…") if part.strip() and part.strip() not in text]
        return f"{path} has no message with '{missing[0]}'" if missing else None


def read(file):
    """The limit of open pairs, and the rows with their line numbers."""
    first, header, *lines = file.read_text().splitlines()
    limit = re.fullmatch(r"# open: (\d+)", first)
    if not limit or header.split("\t") != COLUMNS:
        sys.exit(f"{file}: expected '# open: NUMBER', then the columns {', '.join(COLUMNS)}")
    return int(limit[1]), [(number, line.split("\t")) for number, line in enumerate(lines, 3)]


def problems_of_row(tree, outcome, where, what):
    if outcome not in MARKS:
        return [f"the outcome is '{outcome}', expected one of {', '.join(MARKS)}"]
    if not what:
        return ["the last column is empty"]
    if outcome in ("reason", "open"):
        return ["expected no path"] if where else [] if what.endswith(".") else ["expected a sentence"]
    places, names = where.split(" | "), what.split(" | ")
    if len(places) != len(names):
        return [f"{len(places)} paths for {len(names)} names"]
    checks = [tree.problem_of_test] * len(places)
    if outcome == "error":
        checks[0] = tree.problem_of_message
    return [problem for check, place, name in zip(checks, places, names) if (problem := check(place, name))]


def check_rows(tree, rows):
    problems, seen = [], []
    for number, row in rows:
        if len(row) != len(COLUMNS):
            problems.append(f"pairs.tsv:{number}: {len(row)} columns, expected {len(COLUMNS)}")
            continue
        first, second, *others = row
        seen.append((first, second))
        unknown = [name for name in (first, second) if name not in FEATURES]
        found = [f"'{name}' is not a feature" for name in unknown] or problems_of_row(tree, *others)
        problems += [f"pairs.tsv:{number}: {first} and {second}: {problem}" for problem in found]
    expected = list(itertools.combinations(FEATURES, 2))
    problems += [f"pairs.tsv: no row for {first} and {second}" for first, second in expected if (first, second) not in seen]
    if not problems and seen != expected:
        problems.append("pairs.tsv: a row is there twice, or not in the order of the features")
    return problems


def table_of(rows):
    marks = {(row[0], row[1]): MARKS.get(row[2], "?") for _, row in rows if len(row) == len(COLUMNS)}
    names = list(FEATURES)
    lines = ["| | with | " + " | ".join(str(number) for number in range(1, len(names))) + " |", "|---" * (len(names) + 1) + "|"]
    for number, name in enumerate(names, 1):
        cells = [marks.get((other, name), "?") for other in names[: number - 1]]
        lines.append("| " + " | ".join([str(number), FEATURES[name], *cells]) + " |")  # renderers fill up the row
    return "\n".join(lines) + "\n"


def check_page(root, table, write):
    page = root / "share/doc/guarantees.md"
    text = page.read_text()
    if BEGIN not in text or END not in text:
        return ["guarantees.md has no place for the table of pairs.tsv"]
    updated = text.split(BEGIN)[0] + BEGIN + "\n" + table + "\n" + END + text.split(END)[1]
    if write:
        page.write_text(updated)
    return [] if write or updated == text else ["guarantees.md does not show pairs.tsv as it is: tests/pairs/pairs.py ROOT --write"]


def main(arguments):
    root, write = pathlib.Path(arguments[0]).resolve(), "--write" in arguments
    file = root / "tests/pairs/pairs.tsv"
    limit, rows = read(file)
    problems = check_rows(Tree(root), rows)
    still_open = [row for _, row in rows if row[2:3] == ["open"]]
    for first, second, _, _, what in still_open:
        print(f"open: {first} and {second}: {what}")
    counts = ", ".join(f"{sum(row[2:3] == [outcome] for _, row in rows)} {outcome}" for outcome in MARKS)
    print(f"{len(rows)} pairs: {counts}")
    if write and len(still_open) < limit:
        file.write_text(file.read_text().replace(f"# open: {limit}\n", f"# open: {len(still_open)}\n", 1))
    elif len(still_open) < limit:
        problems.append(f"pairs.tsv: only {len(still_open)} pairs are open: lower the number in its first line by pairs.py ROOT --write")
    elif len(still_open) > limit:
        problems.append(f"pairs.tsv: {len(still_open)} pairs are open, at most {limit} may be: give each a test, an error or a reason")
    problems += check_page(root, table_of(rows), write)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
