"""Compares the table of folders in architecture.md with the tree and with .ci/checks/rooms.txt, and the paths that the page names with the tree."""
import re

BEGIN, END = "<!-- folders -->\n", "<!-- end of folders -->"
SOURCES = {".hpp", ".cpp", ".c", ".h", ".cu", ".inc", ".f90"}


def rooms_of(root):
    rules = [line.split() for line in (root / ".ci/checks/rooms.txt").read_text().splitlines()]
    return {rule[0]: rule[1:] for rule in rules if rule and rule[0] not in ("#", "only", "name", "folder", "circle", "top") and not rule[0].startswith("#")}


def folders_of(root, room):
    base = root / ("share" if room == "bench" else "src")
    found = {str(file.parent.relative_to(base)) for file in (base / room).rglob("*") if file.suffix in SOURCES}
    return [room] + sorted(found - {room})


def table_of(root, contents):
    lines, problems = ["| folder | contents | includes |", "|---|---|---|"], []
    for room, below in rooms_of(root).items():
        for folder in folders_of(root, room):
            if not contents.get(folder):
                problems.append(f"architecture.md does not say what '{folder}' contains")
            name, includes = (f"**`{room}`**", ", ".join(below)) if folder == room else (f"`{folder}`", "")
            lines.append(f"| {name} | {contents.get(folder, '')} | {includes} |")
    return "\n".join(lines) + "\n", problems


def missing_paths(root, text):
    """Paths in backticks that lead to nothing. A path may leave out src/, and the extension."""
    tops = ["src", "include", "tests", "share", ".ci", "jobs"]
    known = set(tops)
    for folder in tops:
        for file in (root / folder).rglob("*"):
            name = str(file.relative_to(root))
            known |= {name, name.rsplit(".", 1)[0], name.removeprefix("src/"), name.removeprefix("src/").rsplit(".", 1)[0]}
    rooms = "|".join(rooms_of(root))
    paths = re.findall(rf"`((?:src|include|tests|share|\.ci|jobs|{rooms})/[\w./-]*)`", text)
    names = {name.rsplit("/", 1)[-1] for name in known}
    files = re.findall(r"`(?:[\w./-]*/)?([\w-]+\.[hc]pp)`", text)
    return [path for path in paths if path.rstrip("/") not in known] + [file for file in files if file not in names]


def check(root, write):
    page = root / "share/doc/architecture.md"
    text = page.read_text()
    before, table, after = text.split(BEGIN)[0], *text.split(BEGIN)[1].split(END)
    contents = dict(re.findall(r"^\| \**`([^`]+)`\** \| (.*?) \|", table, re.M))
    updated, problems = table_of(root, contents)
    if write:
        page.write_text(before + BEGIN + updated + END + after)
    elif updated != table:
        problems.append("architecture.md does not list the folders as they are: pages.py folders ROOT --write")
    return problems + [f"architecture.md names '{path}', which does not exist" for path in missing_paths(root, before + after)]
