"""The tests of a build, as `ctest -C single` lists them: their commands, environments, limits, and how they say that they are skipped."""
import json
import os
import pathlib
import re
import signal
import subprocess


class Test:
    """A test of ctest."""

    def __init__(self, listed):
        self.name, self.command = listed["name"], listed.get("command", [])
        properties = {entry["name"]: entry["value"] for entry in listed.get("properties", [])}
        self.labels = properties.get("LABELS", [])
        self.environment = dict(entry.partition("=")[::2] for entry in properties.get("ENVIRONMENT", []))
        self.folder, self.limit = properties.get("WORKING_DIRECTORY", "."), properties.get("TIMEOUT", 1500)
        self.skip_code, self.skip_texts = properties.get("SKIP_RETURN_CODE"), properties.get("SKIP_REGULAR_EXPRESSION", [])
        self.is_own = "long" in self.labels or "RESOURCE_LOCK" in properties
        self.ranks = int((re.search(r"\.np(\d+)$", self.name) or [0, 1])[1])

    def program(self):
        """The position of the test program in the command, which a launcher begins."""
        return next((place for place, word in enumerate(self.command) if "/tests/test" in word), None)

    def missing(self):
        program = self.program()
        return program is None or not os.access(self.command[program], os.X_OK)

    def command_of_case(self, path, title):
        """The command that runs one case of a source: of a batch the filter of the source, otherwise the test's own arguments, and the title."""
        program = self.program()
        arguments = self.command[program + 1 :]
        if "-#" in arguments:
            arguments = ["-#", f"[#{pathlib.Path(path).stem}]"]
        return self.command[: program + 1] + arguments + [re.sub(r'([\\,"\[])', r"\\\1", title)]

    def runs(self, script):
        return any(word.endswith("/" + script) for word in self.command)

    def run(self, command, folder):
        """(exit code, output); the exit code is None after the time limit."""
        process = subprocess.Popen(command, cwd=folder, env=os.environ | self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        try:
            output, _ = process.communicate(timeout=self.limit)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # mpirun ends its ranks
            try:
                output, _ = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
            return None, output

    def is_skipped(self, code, output):
        return (self.skip_code is not None and code == self.skip_code) or any(re.search(text, output) for text in self.skip_texts)


def listed_tests(build):
    listing = subprocess.run(["ctest", "--test-dir", build, "-C", "single", "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
    return [Test(listed) for listed in json.loads(listing)["tests"]]


def tests_with(names, tests):
    """The tests of these names, also NAME.np<ranks> or NAME.<variant>.np<ranks>, one for each number of ranks: on few ranks, on one, then on more."""
    pattern = re.compile("(" + "|".join(map(re.escape, names)) + r")((\.\w+)?\.np\d+)?")
    found = [test for test in tests if pattern.fullmatch(test.name)]
    found.sort(key=lambda test: (test.is_own, test.name.count("."), test.ranks))
    of_ranks = {}
    for test in found:
        of_ranks.setdefault((test.is_own, test.ranks), test)
    one, few = ([test for test in of_ranks.values() if (test.ranks == 1) is alone] for alone in (True, False))
    return few[:1] + one + few[1:]
