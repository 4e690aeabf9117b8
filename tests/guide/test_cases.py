"""The tests that CMake's files declare, their sources, and the titles of test cases."""
import re


def joined(text):
    """C++ in which string literals that stand on several lines are one."""
    return re.sub(r'"\s*\n\s*"', "", text)


def list_in(text, name, root):
    """The elements of a variable of CMake: those that set() and list(APPEND), in whatever branch, give it, as list(TRANSFORM) changes them."""
    values = [value for found in re.findall(rf"(?:set\({name}|list\(APPEND {name})\s([^)]*)\)", text) for value in re.findall(r"[\w./-]+", found)]
    for how, what in re.findall(rf'list\(TRANSFORM {name} (PREPEND|APPEND) "?([^")]*)"?\)', text):
        what = what.replace("${PROJECT_SOURCE_DIR}", str(root))
        values = [what + value if how == "PREPEND" else value + what for value in values]
    return values


def test_sources(root):
    """The name of each hortator_add_test(), with those of its sources that exist."""
    for file in sorted((root / "tests").rglob("CMakeLists.txt")):
        text = file.read_text()
        for name, arguments in re.findall(r"hortator_add_test\(\s*(\w+)\s([^)]*)\)", text):
            arguments = re.sub(r"\$\{(\w+)\}", lambda found: " ".join(list_in(text, found[1], root)), arguments)
            files = [file.parent / source for source in re.findall(r"[\w./-]+\.cpp", arguments)]
            yield name, [source for source in files if source.exists()]


def declared_tests(root):
    """The names in CMake's files, as regular expressions, and of hortator_add_test() the titles of its test cases."""
    names, cases = {}, {}
    for file in sorted((root / "tests").rglob("CMakeLists.txt")):
        text = file.read_text()
        found = re.findall(r"hortator_(?:add|mpi)_test\(\s*([^\s)]+)|NAME ([^\s)]+)", text)
        for name in [first or second for first, second in found] + [".".join(pair) for pair in re.findall(r"(\w+)_test\((\w+)", text)]:
            if not re.fullmatch(r"\$\{\w+\}", name):
                names[name] = re.sub(r"\\\$\\\{\w+\\\}", r"[\\w.]+", re.escape(name))
    for name, files in test_sources(root):
        cases[name] = joined("".join(file.read_text() for file in files))
    return names, cases


def is_declared(name, names):
    if name.endswith("*"):
        return any(known.startswith(name[:-1]) for known in names)
    return any(re.fullmatch(pattern + r"(\.np\d+)?", name) or re.fullmatch(pattern, name + ".np1") for pattern in names.values())


def has_case(title, text):
    """Whether C++ sources, joined(), have a test case with this title."""
    return f'TEST_CASE("{title}"' in re.sub(r"TEST_CASE\(\s+", "TEST_CASE(", text)


class Tests:
    """The tests of the project. Each source is read once."""

    def __init__(self, root):
        self.root = root
        self.names, _ = declared_tests(root)
        self.tests_of = {}  # the names of the tests that compile a source
        for name, files in test_sources(root):
            for file in files:
                self.tests_of.setdefault(file.resolve(), []).append(name)
        self.texts = {}

    def text(self, path):
        if path not in self.texts:
            file = self.root / path
            self.texts[path] = joined(file.read_text()) if file.is_file() else None
        return self.texts[path]

    def problem_of_test(self, path, title):
        """What is wrong with a test: a source and the title of its case, or a script and the name of its test."""
        text = self.text(path)
        if text is None:
            return f"{path} does not exist"
        if not path.startswith("tests/"):
            return f"{path} is not a test"
        if not path.endswith(".cpp"):
            return None if is_declared(title, self.names) else f"no CMakeLists.txt of tests/ adds a test '{title}'"
        if (self.root / path).resolve() not in self.tests_of:
            return f"no CMakeLists.txt of tests/ compiles {path}"
        return None if has_case(title, text) else f'{path} has no case "{title}"'
