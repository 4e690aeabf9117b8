"""Makes the lists of c-interface.md and fortran-interface.md from what hortator.h and the Fortran module declare, and from the comments there. A comment
must name each argument that is not a handle."""
import re

HANDLES = ["run", "model", "batch", "buffer"]
HEADER, MODULE = "include/hortator/hortator.h", "src/fortran/hortator.f90"


def joined(lines):
    """The text of a comment, whose paragraphs stay apart."""
    return re.sub(r"\n{2,}", "\n\n", "\n".join(line.strip() for line in lines)).strip()


def comment_of_c(text):
    return joined(re.sub(r"^\s*\* ?", "", line) for line in text.strip().splitlines())


def one_line(text):
    return " ".join(text.split())


def as_markdown(text):
    """The comment's text with identifiers as code, which Markdown could otherwise take for marks, and links to guides."""
    text = re.sub(r"(?<![`\w])(?:\w*[a-zA-Z]_\w+|NULL|\w+%\w+)(?![`\w])", lambda found: f"`{found[0]}`", text)
    return re.sub(r"share/doc/(\w+)\.md", r"[\1](\1.md)", text)


def undescribed(name, arguments, comment):
    if not comment:
        return [f"{name} has no comment"]
    return [f"the comment of {name} does not say what '{argument}' is" for argument in arguments if not re.search(rf"\b{argument}\b", comment)]


def enumeration(name, body):
    lines, value = [f"### `{name}`", "", "| constant | value | meaning |", "|---|---|---|"], -1
    for constant, given, comment in re.findall(r"(HORTATOR_\w+)(?: = (\d+))?,?\s*(?:/\*(.*?)\*/)?", body, re.S):
        value = int(given) if given else value + 1
        meaning = one_line(re.sub(r"^\s*\* ?", "", comment, flags=re.M))
        lines.append(f"| `{constant}` | {value} | {as_markdown(meaning)} |")
    return lines


def structure(name, body):
    lines, members = [f"### `{name}`", "", "| member | type | meaning |", "|---|---|---|"], 0
    for kind, member, comment in re.findall(r"([\w ]+\*?) (\w+);\s*(?:/\*(.*?)\*/)?", body, re.S):
        meaning = one_line(re.sub(r"^\s*\* ?", "", comment, flags=re.M))
        lines.append(f"| `{member}` | `{kind.strip()}` | {as_markdown(meaning)} |")
        members += 1
    return lines, members


def types_of_c(text):
    lines = ["| handle | of |", "|---|---|"]
    for name, comment in re.findall(r"typedef struct (\w+) \1; +/\* (.*?) \*/", text):
        lines.append(f"| `{name}` | {comment} |")
    found = re.findall(r"(?:/\*((?:(?!\*/).)*)\*/\n)?typedef (enum|struct) (\w+) \{(.*?)\n\} \3;", text, re.S)
    for comment, kind, name, body in found:
        described = enumeration(name, body) if kind == "enum" else structure(name, body)[0]
        lines += [""] + described[:1] + ([""] + [as_markdown(comment_of_c(comment))] if comment else []) + described[1:]
    return lines


def functions_of_c(text):
    """(section, name, declaration, comment) of each."""
    functions, section = [], ""
    pattern = r"/\* --- (.*?) --- \*/|(?:/\*((?:(?!\*/).)*)\*/\n)?HORTATOR_C_API ([^;]*?)(\w+)\(([^;]*)\);"
    for title, comment, result, name, arguments in re.findall(pattern, text, re.S):
        if title:
            section = title
        else:
            functions.append((section, name, f"{one_line(result)} {name}({one_line(arguments)})", comment_of_c(comment)))
    return functions


def c_page(text):
    problems, lines, last = [], ["", "## Types", "", *types_of_c(text), "", "## The library"], ""
    functions = functions_of_c(text)
    for section, name, declaration, comment in functions:
        if section != last:
            lines += ["", f"## {section[0].upper()}{section[1:]}"]
            last = section
        lines += ["", f"### `{name}`", "", f"`{declaration}`", "", as_markdown(comment)]
        arguments = re.findall(r"(\w+)(?:,|$)", declaration.split("(")[1].rstrip(")"))
        problems += undescribed(name, [argument for argument in arguments if argument not in HANDLES + ["void"]], comment)
    if len(functions) != text.count("HORTATOR_C_API ") - text.count("#define HORTATOR_C_API "):
        problems.append(f"{HEADER}: only {len(functions)} functions were found: has its form changed?")
    return problems, "\n".join(lines) + "\n\n", [name for _, name, _, _ in functions]


class Procedure:
    def __init__(self, comment, header, body):
        self.comment = joined(re.sub(r"^\s*!> ?", "", line) for line in comment.splitlines())
        self.is_subroutine = bool(re.search(r"\bsubroutine \w+\(", header))
        self.name, arguments = re.search(r"(?:subroutine|function) (\w+)\(([^)]*)\)", header).groups()
        self.result_type = re.match(r"\s*(.*?) ?\bfunction \w+\(", header)[1] if not self.is_subroutine else ""
        self.result = (re.search(r"result\((\w+)\)", header) or [None, self.name])[1]
        self.arguments = [argument.strip() for argument in arguments.split(",") if argument.strip()]
        self.types = {}
        for declared, names in re.findall(r"^\s*([^!\n]*?) :: ([^!\n]*)$", body, re.M):
            for name in names.split(","):
                self.types[name.strip()] = declared
        if not self.result_type and not self.is_subroutine:
            self.result_type = self.types[self.result]
        self.calls = re.findall(r"\b(c_\w+)\(", body)

    def is_optional(self, argument):
        return "optional" in self.types[argument]

    def call(self, name):
        shown = [argument for argument in self.arguments if argument != "self"]
        text = ", ".join(f"[{argument}]" if self.is_optional(argument) else argument for argument in shown)
        return f"call {name}({text})" if self.is_subroutine else f"{name}({text})"

    def rows(self):
        for argument in self.arguments:
            if argument not in ("self", "status"):
                declared = self.types[argument]
                kind = "an array of any type and rank" if declared.startswith("type(*)") else f"`{re.match(r'[^,(]*(?:[(][^)]*[)])?', declared)[0]}`"
                intent = re.search(r"intent\((\w+)\)", declared)[1]
                yield f"| `{argument}` | {kind} | {intent}{', optional' if self.is_optional(argument) else ''} |"


def fortran_page(text, c_names):
    problems, lines = [], []
    c_of = dict(re.findall(r'(c_\w+)\([^\n]*?(?:&\s*\n\s*)?bind\(C, name="(\w+)"\)', text))
    pattern = r"((?:^ *!> [^\n]*\n)*)^ *([\w() ]*?(?:subroutine|function) \w+\([^)]*\)[^\n]*)\n(.*?)^ *end (?:subroutine|function)"
    contained = text.split("\ncontains\n", 1)[1]
    procedures = {found.name: found for found in (Procedure(*parts) for parts in re.findall(pattern, contained, re.M | re.S))}

    def describe(shown, procedure, is_collective):
        result = ["", f"### `{shown}`", "", f"`{procedure.call(shown)}`", ""]
        rows = list(procedure.rows())
        if rows:
            result += ["| argument | type | intent |", "|---|---|---|", *rows, ""]
        if not procedure.is_subroutine:
            result += [f"The result is of type `{procedure.result_type}`.", ""]
        names = [c_of.get(call, "") for call in procedure.calls]
        same = next((name for name in (re.sub(r"_f$", "", name) for name in names) if name in c_names and name != "hortator_report"), None)
        comment = procedure.comment + (" Collective." if is_collective and "ollective" not in procedure.comment else "")
        also = f" In C: [`{same}`](c-interface.md#{same})." if same else ""
        result.append(as_markdown(comment) + also)
        problems.extend(undescribed(procedure.name, [name for name in procedure.arguments if name not in HANDLES + ["self", "status"]], comment))
        return result

    shown_count = 0
    for comment, kind, body in re.findall(r"((?:^ *!> [^\n]*\n)*)^ *type :: (\w+)\n(.*?)^ *end type", text, re.M | re.S):
        lines += ["", f"## `type({kind})`", "", joined(re.sub(r"^\s*!> ?", "", line) for line in comment.splitlines())]
        for public, own, remark in re.findall(r"procedure :: (\w+) => (\w+) *(!<.*)?$", body, re.M):
            variable = kind.removeprefix("hortator_")
            lines += describe(f"{variable}%{public}", procedures[own], "collective" in remark)
            shown_count += 1
    lines += ["", "## Procedures of the module"]
    public = set(re.findall(r"\bhortator_\w+", " ".join(re.findall(r"^ *public :: (.*)$", text, re.M))))
    for name in sorted(public & set(procedures)):
        lines += describe(name, procedures[name], False)
        shown_count += 1
    if shown_count < 28:
        problems.append(f"{MODULE}: only {shown_count} procedures were found: has its form changed?")
    lines += ["", "## Constants", "", "| constant | value |", "|---|---|"]
    for declared in re.findall(r"integer, parameter, public :: ((?:[^\n]*&\n)*[^\n]*)", text):
        lines += [f"| `{name}` | {value} |" for name, value in re.findall(r"(HORTATOR_\w+) = (-?\d+)", declared)]
    return problems, "\n".join(lines) + "\n\n"


def compare(page, generated, write):
    begin, end = "<!-- calls -->\n", "<!-- end of calls -->"
    text = page.read_text()
    if begin not in text:
        return [f"{page.name} has no mark '{begin.strip()}'"]
    updated = text.split(begin)[0] + begin + generated + end + text.split(end, 1)[1]
    if write:
        page.write_text(updated)
    elif updated != text:
        return [f"{page.name} does not describe the interface as it is: pages.py interfaces ROOT --write"]
    return []


def check(root, write):
    problems, c_text, c_names = c_page((root / HEADER).read_text())
    more, fortran_text = fortran_page((root / MODULE).read_text(), c_names)
    return problems + more + compare(root / "share/doc/c-interface.md", c_text, write) + compare(root / "share/doc/fortran-interface.md", fortran_text, write)
