#!/usr/bin/env python3
"""Prints a regular expression for ctest -R: the tests that a change can reach. Nothing if there is none.

    changed-tests.py ROOT BUILD [--files FILE...] [--tests JSON]

The change is that of the working tree against the merge base with main; --files names the changed files instead, --tests the output of
`ctest --show-only=json-v1`. On standard error: which tests are chosen, and why. When unsure, all are.

A test belongs to the folder below tests/ (tests/unit/<room>, tests/<area>) that defines it, batch.<room>... to tests/unit/<room>. A source of a room
reaches the tests of that room and of all rooms that may include it (.ci/checks/rooms.txt), and the tests that run whole programs.
"""

import argparse
import json
import os
import re
import subprocess
import sys

PROGRAMS = ["tests/" + name for name in ("consumer", "examples", "fuzz", "golden", "guide", "integration", "pairs", "portable", "sites")]
ALL = "all"  # instead of a list of folders
RULES = [  # the first that matches: a pattern of the path, then the folders whose tests it reaches
    (r"(.*/)?CMakeLists\.txt|CMakePresets\.json|share/cmake/.*", ALL),
    (r"share/doc/changelog\.md|share/doc/decisions\.md|LICENSE|\.clang-format|\.gitignore|\.github/workflows/.*", ["tests/guide"]),
    (r"share/doc/.*|README\.md|INSTALL|\.github/.*", ["tests/guide", "tests/pairs", "tests/consumer", "tests/portable"]),
    (r"\.ci/checks/rooms\.txt", ["tests/setup", "tests/guide"]),
    (r"share/setup/.*|jobs/quickstart\.sh|tests/run\.sh|\.ci/.*", ["tests/setup", "tests/consumer", "tests/packages"]),
    (r"share/packages/.*", ["tests/packages"]),
    (r"modules/.*", ["tests/modules", "tests/packages", "tests/consumer"]),
    (r"share/examples/.*", ["tests/examples", "tests/guide", "tests/consumer"]),
    (r"share/(sites|new|man|completion)/.*|jobs/.*", PROGRAMS + ["tests/unit/tools", "tests/packages"]),
]


class Project:
    def __init__(self, root):
        self.root = root
        self.above = {}  # room: the rooms that may include it, and itself
        below = {}
        for line in self.read(".ci/checks/rooms.txt").splitlines():
            room, *lower = line.split("#")[0].split() or [""]
            if room not in ("", "only", "name", "folder", "circle"):
                below[room] = lower

        def reach(room):
            return {room}.union(*(reach(next_room) for next_room in below[room]))

        for room in below:
            for lower in reach(room):
                self.above.setdefault(lower, set()).add(room)

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
            return file.read()

    def files(self, folder):
        for place, _, names in os.walk(os.path.join(self.root, folder)):
            for name in names:
                yield os.path.relpath(os.path.join(place, name), self.root)

    def room_tests(self, rooms):
        rooms = set().union(*(self.above[room] for room in rooms))
        unit = os.path.join(self.root, "tests/unit")
        others = {name for name in os.listdir(unit) if name not in self.above}  # such as sim, which use the whole library
        if rooms <= {"bench", "tools", "fortran"}:
            others = set()
        return [f"tests/unit/{name}" for name in sorted(rooms | others)] + PROGRAMS

    def rooms_that_include(self, header):
        """The rooms whose sources include the public header, also through others."""
        headers, rooms = {header.split("include/", 1)[1]}, set()
        public = {path.split("include/", 1)[1]: self.read(path) for path in self.files("include")}
        size = 0
        while size != len(headers):
            size = len(headers)
            headers |= {path for path, text in public.items() if any(f"<{name}>" in text for name in headers)}
        for folder in ("src", "share/bench"):
            for path in self.files(folder):
                if re.search(r"\.[ch]pp$", path) and any(f"<{name}>" in self.read(path) for name in headers):
                    rooms.add(room_of(path))
        return rooms & set(self.above)

    def that_mention(self, path):
        """The folders of tests, other than its own, with files that name this file, or its folder."""
        own, names = folder_of(path), {os.path.basename(path)} - {"CMakeLists.txt"}
        parts = path.split("/")
        if own:
            names |= {"/".join(parts[1:end]) for end in range(len(own.split("/")) + 1, len(parts))}
        found = set()
        for other in self.files("tests"):
            if folder_of(other) not in ("", own) and re.search(r"(CMakeLists\.txt|\.[ch]pp|\.sh|\.py|pairs\.tsv)$", other):
                text = self.read(other)
                if any(name in text for name in names):
                    found.add(folder_of(other))
        return sorted(found)


def room_of(path):
    match = re.match(r"src/([^/]+)/", path)
    return match[1] if match else "bench" if path.startswith("share/bench/") else None


def folder_of(path):
    """The folder that tests belong to, e.g. tests/unit/comm, tests/integration/jobs, tests/guide; empty for others."""
    match = re.match(r"tests/(unit/[^/]+|integration/[^/]+|[^/]+)/", path)
    return match[0][:-1] if match and match[1] not in ("support", "tools") else ""


def reached(project, path):
    """(why, ALL or folders) for one changed file."""
    room = room_of(path)
    if room in project.above:
        return f"room {room} and those above it", project.room_tests({room})
    if path.startswith("include/") and path.endswith((".hpp", ".h")):
        rooms = project.rooms_that_include(path)
        return "public header: " + (" ".join(sorted(rooms)) or "no room"), project.room_tests(rooms or {"core"})
    if path.startswith("tests/tools/"):
        return "tests that use this tool", project.that_mention(path)
    own = folder_of(path)
    if own == "tests/integration/scale":
        return "simulates nodes for other tests", ALL
    if own:
        return "tests, and those that use their files", [own] + project.that_mention(path)
    for pattern, folders in RULES:
        if re.fullmatch(pattern, path):
            return "by its place", folders
    return "not known what uses it", ALL


def changed_files(root):
    def git(*arguments):
        return subprocess.run(["git", "-C", root, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)

    for main in ("main", "origin/main"):
        base = git("merge-base", "HEAD", main)
        if base.returncode == 0:
            changed = git("diff", "--name-only", "--no-renames", base.stdout.strip()).stdout
            return (changed + git("ls-files", "--others", "--exclude-standard").stdout).split("\n")
    return None


def test_folders(listing, root):
    """{test: folder} from ctest's listing."""
    graph = listing["backtraceGraph"]
    folders = {}
    for test in listing["tests"]:
        batch = re.match(r"batch\.(\w+?)(_serial)?\.np\d+$", test["name"])
        if batch:
            folders[test["name"]] = "tests/unit/" + batch[1]
            continue
        place, node = "", test.get("backtrace")
        while node is not None and not place:
            node = graph["nodes"][node]
            place = folder_of(os.path.relpath(graph["files"][node["file"]], root))
            node = node.get("parent")
        folders[test["name"]] = place
    return folders


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("build")
    parser.add_argument("--files", nargs="*")
    parser.add_argument("--tests")
    options = parser.parse_args()

    def report(text):
        print("hortator: " + text, file=sys.stderr)

    if options.tests:
        with open(options.tests, encoding="utf-8") as file:
            listing = json.load(file)
    else:
        listing = json.loads(subprocess.run(["ctest", "--test-dir", options.build, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True).stdout)
    files = options.files if options.files is not None else changed_files(options.root)
    if files is None:
        report("--changed: all tests, because there is no branch main to compare with")
        print(".")
        return
    project = Project(options.root)
    folders, reasons, everything = set(), {}, False
    for path in sorted(set(filter(None, files))):
        why, reach = reached(project, path)
        everything = everything or reach == ALL
        folders.update([] if reach == ALL else reach)
        reasons.setdefault((why, reach if reach == ALL else tuple(reach)), []).append(path)
    belongs = test_folders(listing, options.root)
    chosen = sorted(test for test, folder in belongs.items() if everything or not folder or any(folder == f or folder.startswith(f + "/") for f in folders))
    for (why, reach), paths in reasons.items():
        shown = " ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        report(f"--changed: {shown} ({why}): " + ("all tests" if reach == ALL else " ".join(name.replace("tests/", "", 1) for name in reach) or "no test"))
    if not reasons:
        report("--changed: nothing has changed")
        return
    report(f"--changed: {len(chosen)} of {len(belongs)} tests (the long ones and those that other options leave out included)")
    if everything:
        print(".")
    elif chosen:
        print("^(" + "|".join(re.escape(test).replace("\\-", "-") for test in chosen) + ")$")


if __name__ == "__main__":
    main()
