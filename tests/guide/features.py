"""The table of features, share/doc/coverage.tsv: checks its rows, and that from-accelerate.md shows it."""
import collections
import re

import ctest
import test_cases

COLUMNS = ["section", "feature", "state", "path", "test", "case", "text"]
STATES = {"yes": "yes", "CPU": "CPU", "refused": "refused", "issue": "not yet"}  # and how the page calls them
TESTED = ("yes", "CPU")
FEWEST = 206  # fewer were there before
BEGIN, END = "<!-- coverage -->\n", "<!-- end of coverage -->"

Row = collections.namedtuple("Row", ["number"] + COLUMNS)


def rows_of(root):
    """The rows, with the numbers of their lines, and problems with their form."""
    header, *lines = [line.split("\t") for line in (root / "share/doc/coverage.tsv").read_text().splitlines()]
    if header != COLUMNS:
        return [], [f"coverage.tsv: expected the columns {', '.join(COLUMNS)}"]
    numbered = list(enumerate(lines, 2))
    problems = [f"coverage.tsv:{number}: {len(cells)} columns, expected {len(COLUMNS)}" for number, cells in numbered if len(cells) != len(COLUMNS)]
    return [Row(number, *cells) for number, cells in numbered if len(cells) == len(COLUMNS)], problems


def problem_of_script(row, listed):
    """What is wrong with a script as a test: those of ctest are known with their names only, because functions of CMake make many of them."""
    found = ctest.tests_with([row.case], listed)
    if not found:
        return f"there is no test {row.case}"
    return None if found[0].runs(row.test) else f"the test {row.case} does not run {row.test}"


def problems_of_row(tests, listed, row):
    problems = []
    if row.state not in STATES:
        problems.append(f"the state is '{row.state}', expected one of {', '.join(STATES)}")
    if not (tests.root / row.path).exists():
        problems.append(f"{row.path} does not exist")
    if bool(row.test) != bool(row.case):
        problems.append("the source of a test goes with the title of its case, and a script with the name of its test")
    elif row.test:
        is_script = tests.text(row.test) is not None and not row.test.endswith(".cpp")
        problems += filter(None, [problem_of_script(row, listed) if is_script else tests.problem_of_test(row.test, row.case)])
    elif row.state in TESTED:
        problems.append(f"a row with the state {row.state} needs a test and its case")
    if row.state not in TESTED and not row.text:
        problems.append("a feature that is missing needs a reason")
    return [f"coverage.tsv:{row.number}: {row.feature}: {problem}" for problem in problems]


def table_of(rows):
    table, section = "", ""
    for row in rows:
        if row.section != section:
            table += f"\n### Features: {row.section}\n\n| Accelerate | state | Hortator |\n|---|---|---|\n"
            section = row.section
        table += f"| {row.feature} | {STATES.get(row.state, row.state)} | {row.text} |\n"
    return table


def check_page(root, table, write):
    page = root / "share/doc/from-accelerate.md"
    content = page.read_text()
    if BEGIN not in content:
        return ["from-accelerate.md has no place for the table of coverage.tsv"]
    updated = re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: f"{BEGIN}{table}\n{END}", content, flags=re.S)
    if write:
        page.write_text(updated)
    return [] if write or updated == content else ["from-accelerate.md does not have the features as they are: pages.py coverage ROOT BUILD --write"]


def check(root, build, write):
    rows, problems = rows_of(root)
    tests, listed, seen = test_cases.Tests(root), ctest.listed_tests(build), set()
    for row in rows:
        problems += problems_of_row(tests, listed, row)
        problems += [f"coverage.tsv:{row.number}: {row.feature} is there twice"] if row.feature in seen else []
        seen.add(row.feature)
    if len(rows) < FEWEST:
        problems.append(f"coverage.tsv: {len(rows)} features: some were lost")
    counts = collections.Counter(row.state for row in rows)
    print(f"{len(rows)} features: " + ", ".join(f"{counts[state]} {name}" for state, name in STATES.items()))
    return problems + check_page(root, table_of(rows), write)
