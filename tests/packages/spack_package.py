"""Runs the Spack package against a stand-in for Spack's package API. Directives and helpers that Spack does not have are errors, and so are
versions, variants and options that do not exist. Usage: spack_package.py PACKAGE_PY SOURCES"""

import pathlib
import re
import sys
import types

package_file, sources = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
seen = {"version": [], "variant": {}, "depends_on": [], "conflicts": [], "license": [], "generator": []}
spec_pattern = re.compile(r"^(?P<name>[a-z][a-z0-9-]*)?(@[0-9.:,=a-z]+)?((\s*)[+~][a-z_]+|\s+[a-z_]+=[a-z0-9]+|\s*%[a-z]+(@[0-9.:]+)?)*$")


def check_spec(text):
    if not spec_pattern.match(text):
        sys.exit(f"Invalid spec '{text}'")


def check_when(when):
    if when:
        check_spec(when)
        for name in re.findall(r"[+~]([a-z_]+)", when):
            if name not in seen["variant"]:
                sys.exit(f"when='{when}': unknown variant '{name}'")


def version(name, *, branch=None, tag=None, commit=None, sha256=None, url=None, preferred=False, deprecated=False):
    if not (branch or tag or commit or sha256):
        sys.exit(f"Version {name} has neither branch, tag, commit nor sha256")
    seen["version"].append(name)


def variant(name, *, default=None, description="", values=None, multi=None, when=None):
    if not description:
        sys.exit(f"Variant {name} has no description")
    seen["variant"][name] = default


def depends_on(spec, *, type=("build", "link"), when=None, patches=None):
    check_spec(spec)
    check_when(when)
    kinds = {type} if isinstance(type, str) else set(type)
    if not kinds <= {"build", "link", "run", "test"}:
        sys.exit(f"depends_on {spec}: unknown type in {kinds}")
    seen["depends_on"].append(spec)


def conflicts(spec, *, when=None, msg=None):
    check_spec(spec)
    check_when(when)
    seen["conflicts"].append(spec)


def license(name, *, checked_by=None, when=None):
    seen["license"].append(name)


def generator(*names, default=None):
    if not set(names) <= {"ninja", "make"}:
        sys.exit(f"Unknown generator in {names}")
    seen["generator"] += names


class CMakePackage:
    @staticmethod
    def define(name, value):
        return f"-D{name}={'ON' if value is True else 'OFF' if value is False else value}"

    @classmethod
    def define_from_variant(cls, name, variant):
        if variant not in seen["variant"]:
            sys.exit(f"{name}: unknown variant '{variant}'")
        return cls.define(name, bool(seen["variant"][variant]))


class CudaPackage:
    cuda_arch_values = ("80", "90")


class Environment:
    def __init__(self):
        self.variables = {}

    def set(self, name, value):
        self.variables[name] = value


class Spec:
    def __init__(self, true):
        self.true = true

    def satisfies(self, text):
        check_when(text)
        return text in self.true


api = types.ModuleType("spack.package")
for name in ("version", "variant", "depends_on", "conflicts", "license"):
    setattr(api, name, globals()[name])
api.which = None
api.join_path = lambda *parts: "/".join(parts)
cmake = types.ModuleType("spack_repo.builtin.build_systems.cmake")
cmake.CMakePackage, cmake.generator = CMakePackage, generator
cuda = types.ModuleType("spack_repo.builtin.build_systems.cuda")
cuda.CudaPackage = CudaPackage
parts = ["spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"]
sys.modules.update({part: types.ModuleType(part) for part in parts})
sys.modules.update({module.__name__: module for module in (api, cmake, cuda)})
seen["variant"]["cuda"] = False  # CudaPackage's

names = {"__file__": str(package_file), "__name__": "package"}
exec(compile(package_file.read_text(), str(package_file), "exec"), names)
package = names["Hortator"]
missing = {"mpi", "hdf5", "boost", "nlohmann-json", "yaml-cpp", "py-torch", "cmake"} - {
    spec_pattern.match(spec)["name"] for spec in seen["depends_on"]}
if missing:
    sys.exit(f"The build needs {missing}, which the package does not depend on")
if not package.git.startswith("file://") or not pathlib.Path(package.git[7:], "CMakeLists.txt").exists():
    sys.exit(f"git: expected the folder of the sources, got '{package.git}'")

unknown = {name for name in vars(package) if not name.startswith("__")} - {
    "git", "homepage", "url", "tags", "sanity_check_is_file", "sanity_check_is_dir", "arch", "cmake_args", "setup_run_environment", "test_installation"}
if unknown:
    sys.exit(f"Spack's packages have no {unknown}")
environment = Environment()
package.prefix = "/prefix"
package().setup_run_environment(environment)
if environment.variables != {"HORTATOR_ROOT": "/prefix"}:
    sys.exit(f"The run environment has {environment.variables}")
if {f"py-torch cuda_arch={arch}" for arch in CudaPackage.cuda_arch_values} - set(seen["depends_on"]):
    sys.exit("cuda_arch is not passed on to py-torch")

known = "".join(path.read_text() for path in [sources / "CMakeLists.txt", *(sources / "share/cmake").glob("*.cmake")])
for true in (set(), {"+cuda", "+images"}):
    package.spec = Spec(true)
    for argument in package.cmake_args(package()):
        option = re.match(r"-D([A-Za-z0-9_]+)=(ON|OFF)$", argument)
        if not option:
            sys.exit(f"Invalid CMake option '{argument}'")
        name = option[1].removeprefix("CMAKE_DISABLE_FIND_PACKAGE_")
        if not re.search(rf"\b{name}\b", known):
            sys.exit(f"The build has no option {option[1]}")
print(f"{len(seen['depends_on'])} dependencies, {len(seen['variant'])} variants")
