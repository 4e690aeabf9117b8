#!/usr/bin/env python3
"""Checks the user documents: README.md and those of the folders in share, the guides in share/doc, the pages in .github.

  pages.py marks ROOT                  every code block has a mark, and every block of its kind is what it claims to be
  pages.py links ROOT                  links between the pages lead to files and headings that exist
  pages.py commands ROOT HORTATOR      options of `hortator` in blocks that are not run exist, and scripts that they name as well
  pages.py messages ROOT               the messages in troubleshooting.md are in the sources
  pages.py settings ROOT HORTATOR [--write]   environment.md lists all settings and all variables of the sources
  pages.py coverage ROOT BUILD [--write]      the table of features in from-accelerate.md is that of coverage.tsv, whose paths, tests and cases exist
  pages.py covered ROOT BUILD [TEXT...]       runs a test case for each feature of coverage.tsv that is there, or that has one of the texts in its name
  pages.py interfaces ROOT [--write]   c-interface.md and fortran-interface.md describe all calls with all arguments
  pages.py folders ROOT [--write]      architecture.md lists all folders of src, and the paths that it names exist
  pages.py tests ROOT                  the tests that guarantees.md and parallelism.md name exist
  pages.py run ROOT PREFIX FOLDER PAGE...     runs the marked blocks of pages in FOLDER, with the installation in PREFIX

A mark follows the language of a fenced block: `cpp` (compiled by tests/guide), `cpp|cmake|yaml file=NAME` (written to a file and used by the
blocks after it), `sh run [exits=N]`, `sh cluster` (needs a scheduler or a fabric), `sh setup` (installs), `sh script` (a job script), `text` (lines that
the last run printed; numbers may differ), `yaml` (a settings file), `python`, `fortran`, `diff`.
"""
import ast
import os
import pathlib
import re
import subprocess
import sys

import covered
import features
import folders
import interfaces
from test_cases import declared_tests, has_case, is_declared, joined

RUN_PAGES = ["tutorial", "jobs", "sites", "troubleshooting", "environment", "performance", "benchmarking", "checkpoint-format"]
OTHER_PAGES = ["index", "guarantees", "from-accelerate", "from-accelerate-launch", "models", "exported", "parallelism", "planning", "simulations", "c-interface", "fortran-interface", "changelog", "release-notes-0.2", "security"]
MARKS = [r"cpp( file=\S+)?", r"cmake file=\S+", r"yaml( file=\S+)?", r"sh (run( exits=\d+)?|cluster|setup|script)", "text", "python", "fortran", "diff"]


def guide_pages(root):
    pages = [root / "README.md", *[root / f"share/doc/{name}.md" for name in RUN_PAGES + OTHER_PAGES]]
    return pages + sorted((root / ".github").glob("*.md")) + sorted((root / "share").glob("*/**/README.md"))


class Block:
    def __init__(self, page, line, info, text):
        self.page, self.line, self.info, self.text = page, line, info, text
        self.kind, *marks = info.split() or [""]
        self.marks = dict(mark.partition("=")[::2] for mark in marks)

    def __str__(self):
        return f"{self.page.name}:{self.line}"


def blocks_of(page):
    blocks, inside, start, info = [], None, 0, ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if inside is None and line.startswith("```"):
            inside, start, info = [], number, line[3:].strip()
        elif inside is not None and line.startswith("```"):
            blocks.append(Block(page, start, info, "\n".join(inside) + "\n"))
            inside = None
        elif inside is not None:
            inside.append(line)
    if inside is not None:
        sys.exit(f"{page}:{start}: the block has no end")
    return blocks


def without_blocks(page):
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)


def indented_blocks(page):
    paragraphs = re.split(r"\n\s*\n", without_blocks(page))
    after_list = False
    for paragraph in paragraphs:
        if re.match(r"( {4}|\t)\S", paragraph) and not after_list:
            yield paragraph.splitlines()[0].strip()
        if not paragraph.startswith(" "):
            after_list = bool(re.match(r"([-*]|\d+\.) ", paragraph))


def bash_accepts(block):
    return subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True)


def check_block(block, ran):
    if not any(re.fullmatch(mark, block.info) for mark in MARKS):
        return f"unknown mark '{block.info}'"
    if block.kind == "python":
        try:
            ast.parse(block.text)
        except SyntaxError as error:
            return f"not Python: {error}"
    if block.kind == "sh":
        answer = bash_accepts(block)
        if answer.returncode:
            return answer.stderr
    if block.kind == "text" and not ran:
        return "output without a run before it"
    if block.kind == "sh" and "run" in block.marks and block.page.stem not in RUN_PAGES:
        return "this page is not run: add it to RUN_PAGES"
    return None


def marks(root):
    problems, counts = [], {}
    for page in guide_pages(root):
        ran = False
        problems += [f"{page.name}: an indented block, which has no mark: {line}" for line in indented_blocks(page)]
        for block in blocks_of(page):
            ran = ran or "run" in block.marks
            problem = check_block(block, ran)
            if problem:
                problems.append(f"{block}: {problem}")
            counts[block.info.split("=")[0]] = counts.get(block.info.split("=")[0], 0) + 1
    lines = len((root / "README.md").read_text().splitlines())
    if lines > 90:
        problems.append(f"README.md has {lines} lines, more than one screen: at most 90")
    tutorial = {block.marks.get("file"): block.text for block in reversed(blocks_of(root / "share/doc/tutorial.md"))}
    difference = next(block for block in blocks_of(root / "README.md") if block.kind == "diff")
    after = "".join(line[1:] + "\n" for line in difference.text.splitlines() if line[0] in "+ ")
    if after.strip() != tutorial["train.cpp"].strip():
        problems.append("the program of README.md is not the first one of tutorial.md")
    print(", ".join(f"{count} {mark}" for mark, count in sorted(counts.items())))
    return problems


def anchors_of(page):
    anchors = set()
    for heading in re.findall(r"^#+ +(.*)$", without_blocks(page), re.M):
        name = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")
        anchors.add(name)
    return anchors


def links(root):
    problems = []
    for page in guide_pages(root) + [root / f"share/doc/{name}.md" for name in ("architecture", "decisions", "gpu", "testing")]:
        text = re.sub(r"`[^`\n]*`", "", without_blocks(page))
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if target.startswith(("http://", "https://")):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists():
                problems.append(f"{page.name} links to '{target}', which does not exist")
            elif anchor and anchor not in anchors_of(file):
                problems.append(f"{page.name} links to '{target}', which has no such heading")
    return problems


def options_of_help(hortator, verb):
    text = subprocess.run([hortator, *verb, "--help"], capture_output=True, text=True).stdout
    return set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text))


def missing_scripts(root, text):
    found = re.findall(r"(?<![\w/.-])(?:\./)?((?:jobs|tests|share)/[\w./-]+\.(?:sh|py|md|def))\b", text)
    return [script for script in found if not (root / script).exists()]


def commands(root, hortator):
    problems, known = [], {}
    problems += [f"INSTALL: no file {script}" for script in missing_scripts(root, (root / "INSTALL").read_text())]
    for page in guide_pages(root):
        for block in blocks_of(page):
            if block.kind != "sh" or "run" in block.marks:
                continue
            for line in block.text.splitlines():
                line = line.split(" #")[0]
                problems += [f"{block}: no script {script}" for script in missing_scripts(root, line)]
                for call in re.findall(r"\bhortator ([a-z][^|;&>]*)", line):
                    parts = call.split(" -- ")[0].split()
                    options = known.setdefault(parts[0], options_of_help(hortator, parts[:1]))
                    if not options:
                        problems.append(f"{block}: no verb '{parts[0]}'")
                    for part in parts[1:]:
                        if not part.startswith("-"):
                            if parts[0] == "launch" and "/" in part:
                                break
                            continue
                        if part.partition("=")[0] not in options:
                            problems.append(f"{block}: 'hortator {parts[0]}' has no option {part}")
    return problems


def messages(root):
    text = ""
    for folder in ("src", "jobs", "share/cmake", "share/setup"):
        for file in sorted((root / folder).rglob("*")):
            if file.is_file():
                text += file.read_text(errors="replace") + "\n"
    text = joined(text)
    problems, count = [], 0
    for line in (root / "share/doc/troubleshooting.md").read_text().splitlines():
        found = re.match(r"\| `([^`]+)` \|", line)
        if not found or re.fullmatch(r"[\d +N]+", found[1]):
            continue
        count += 1
        for part in found[1].split("…"):
            # values stand between the parts, and sometimes counts in them
            if len(part.strip()) > 2 and part.strip() not in text:
                problems.append(f"troubleshooting.md: the sources have no message with '{part.strip()}'")
    if count < 30:
        problems.append(f"troubleshooting.md: only {count} messages were found: has its form changed?")
    return problems


def settings(root, hortator, write):
    page = root / "share/doc/environment.md"
    text = page.read_text()
    help_text = subprocess.run([hortator, "config", "--help"], capture_output=True, text=True, check=True).stdout
    keys = re.findall(r"^  ([a-z0-9_]+) +(.*) \((HORTATOR_[A-Z0-9_]+)\)$", help_text, re.M)
    if len(keys) < 30:
        return [f"`hortator config --help` lists only {len(keys)} keys: has its form changed?"]
    table = "| variable | key | meaning |\n|---|---|---|\n"
    table += "".join(f"| `{variable}` | `{key}` | {what} |\n" for key, what, variable in keys)
    begin, end = "<!-- settings -->\n", "<!-- end of settings -->"
    updated = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: f"{begin}\n{table}\n{end}", text, flags=re.S)
    if write:
        page.write_text(updated)
        return []
    problems = [] if updated == text else ["environment.md does not list the settings as they are: pages.py settings ROOT HORTATOR --write"]
    used = set()
    for file in (root / "src").rglob("*.?pp"):
        used |= set(re.findall(r'"(HORTATOR_[A-Z0-9_]+)"', file.read_text(errors="replace")))
    used -= {"HORTATOR_WITH_CUDA", "HORTATOR_WITH_ROCM", "HORTATOR_WITH_XPU"}
    named = set(re.findall(r"HORTATOR_[A-Z0-9_]+", text))
    problems += [f"environment.md does not name {name}" for name in sorted(used - named)]
    return problems


def tests(root):
    names, cases = declared_tests(root)
    problems = []
    for page, minimum in (("guarantees", 30), ("parallelism", 20)):
        cells = re.findall(r"^\|.*\| (`[\w.*]+`.*) \|$", (root / f"share/doc/{page}.md").read_text(), re.M)
        if len(cells) < minimum:
            problems.append(f"{page}.md: only {len(cells)} rows name tests: has its form changed?")
        for name, title in [found for cell in cells for found in re.findall(r'`([^`]+)`(?:: "([^"]*)")?', cell)]:
            if not is_declared(name, names):
                problems.append(f"{page}.md: no CMakeLists.txt of tests/ adds a test '{name}'")
            if title and not has_case(title, cases.get(name, "")):
                problems.append(f"{page}.md: the test '{name}' has no case \"{title}\"")
    return problems


def normal(line):
    """A line without what differs between machines: numbers, bars and repeated blanks."""
    line = re.sub(r"[\d][\d.:]*", "#", line)
    return " ".join(line.split())


def script_of(pages):
    lines = ["set -u"]
    for page in pages:
        for block in blocks_of(page):
            if "file" in block.marks:
                lines += [f"cat >'{block.marks['file']}' <<'END_OF_FILE'", block.text + "END_OF_FILE"]
            if block.kind == "yaml" and "file" not in block.marks:
                lines += [f"printf '\\n@@ {block}\\n'", "cat >settings.yaml <<'END_OF_FILE'", block.text + "END_OF_FILE",
                          "hortator config validate settings.yaml || { echo '@@failed'; exit 1; }"]
            if "run" not in block.marks:
                continue
            wanted = block.marks.get("exits", "0")
            lines += [f"printf '\\n@@ {block}\\n'", "set -e" if wanted == "0" else "set +e", block.text, "code=$?; set +e",
                      f"[ $code = {wanted} ] || {{ echo \"@@failed: exit code $code, expected {wanted}\"; exit 1; }}"]
    return "\n".join(lines + ["printf '\\n@@ done\\n'"])


def outputs_of(printed):
    parts = re.split(r"^@@ (.*)\n", printed, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def run(root, prefix, folder, names):
    pages = [root / f"share/doc/{name}.md" for name in names]
    own = {name: value for name, value in os.environ.items() if not re.match(r"(HORTATOR|SLURM|PBS|XDG|HF)_", name)}
    environment = own | {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "HOME": folder}
    script = pathlib.Path(folder) / "blocks.sh"  # a file: mpirun would read the rest of standard input
    script.write_text(script_of(pages))
    answer = subprocess.run(["bash", script], text=True, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    outputs = outputs_of(answer.stdout)
    if "done" not in outputs:
        return [f"a block failed, the last of these:\n{answer.stdout[-6000:]}"]
    problems = []
    for page in pages:
        last = None
        for block in blocks_of(page):
            if "run" in block.marks:
                last = str(block)
            if block.kind != "text":
                continue
            seen = [normal(line) for line in outputs[last].splitlines()]
            for line in block.text.splitlines():
                if normal(line) and not any(normal(line) in other for other in seen):
                    problems.append(f"{block}: '{line}' is not in the output of {last}:\n{outputs[last][-3000:]}")
    print(f"{len(outputs) - 1} blocks ran")
    return problems


def main(arguments):
    verb, root = arguments[0], pathlib.Path(arguments[1]).resolve()
    verbs = {
        "marks": lambda: marks(root),
        "links": lambda: links(root),
        "commands": lambda: commands(root, arguments[2]),
        "messages": lambda: messages(root),
        "settings": lambda: settings(root, arguments[2], "--write" in arguments),
        "coverage": lambda: features.check(root, arguments[2], "--write" in arguments),
        "covered": lambda: covered.check(root, arguments[2], arguments[3:]),
        "interfaces": lambda: interfaces.check(root, "--write" in arguments),
        "folders": lambda: folders.check(root, "--write" in arguments),
        "tests": lambda: tests(root),
        "run": lambda: run(root, arguments[2], arguments[3], arguments[4:]),
    }
    problems = verbs[verb]()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
