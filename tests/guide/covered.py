"""Runs a test case for each row of coverage.tsv whose feature is there.

A case runs on the smallest number of ranks above one on which its source is tested, and on one rank where it checks nothing on more. Scripts that are long,
or that need something to themselves, are left to their own tests.
"""
import re
import tempfile

import ctest
import features
import test_cases


def checks_made(output):
    return sum(int(count) for count in re.findall(r"All tests passed \((\d+) assertion", output))


def run_case(row, candidates):
    """(state, reason) of a case of a test program: it ran, was skipped, or failed."""
    reasons = []
    for test in candidates:
        if test.is_own:
            reasons.append(f"{test.name} runs on its own")
            continue
        if test.missing():
            return "failed", f"{test.name}: its program is not built"
        with tempfile.TemporaryDirectory(prefix="hortator-covered-") as folder:
            code, output = test.run(test.command_of_case(row.test, row.case), folder)
        if code == 0 and checks_made(output):
            return "ran", test.name
        if code is None:
            return "failed", f"{test.name}: it took longer than {test.limit:.0f} s\n{output[-3000:]}"
        if code != 0 and "No tests ran" not in output:
            return "failed", f"{test.name}: exit code {code}\n{output[-3000:]}"
        reasons.append(f"{test.name} checks nothing in this case")
    nothing = [reason for reason in reasons if "checks nothing" in reason]
    return ("failed", "; ".join(nothing)) if nothing else ("skipped", "; ".join(reasons) or "this build has no test of it")


def run_script(row, candidates):
    for test in candidates:
        if test.is_own:
            return "skipped", f"{test.name} runs on its own"
        code, output = test.run(test.command, test.folder)
        if test.is_skipped(code, output):
            return "skipped", f"{test.name}: {output.strip().splitlines()[-1:]}"
        return ("ran", test.name) if code == 0 else ("failed", f"{test.name}: exit code {code}\n{output[-3000:]}")
    return "skipped", "this build has no test of it"


def check(root, build, chosen=()):
    """Runs the cases of all rows, or of those whose features contain one of the chosen texts."""
    rows, problems = features.rows_of(root)
    rows = [row for row in rows if row.state in features.TESTED and (not chosen or any(text in row.feature for text in chosen))]
    sources, tests = test_cases.Tests(root), ctest.listed_tests(build)
    done, counts = {}, {"ran": 0, "skipped": 0, "failed": 0}
    for row in rows:
        pair = (row.test, row.case)
        if pair not in done:
            of_source = row.test.endswith(".cpp")
            names = sources.tests_of.get((root / row.test).resolve(), []) if of_source else [row.case]
            done[pair] = (run_case if of_source else run_script)(row, ctest.tests_with(names, tests) if names else [])
            counts[done[pair][0]] += 1
            print(f"{done[pair][0]}: {row.test}: {row.case} ({done[pair][1].splitlines()[0]})", flush=True)
        state, reason = done[pair]
        if state == "failed":
            problems.append(f"coverage.tsv:{row.number}: {row.feature}: {row.test}: \"{row.case}\": {reason}")
    print(f"{len(rows)} features are there: " + ", ".join(f"{count} cases {state}" for state, count in counts.items()))
    if rows and not counts["ran"]:
        problems.append("no case ran")
    return problems
