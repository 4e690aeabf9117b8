# spack repo add share/packages/spack && spack install hortator
#
# Builds the clone that contains this file. LibTorch is that of py-torch: Spack adds it to CMAKE_PREFIX_PATH, where Hortator searches.
#
# SPDX-License-Identifier: Apache-2.0
import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Hortator(CMakePackage, CudaPackage):
    """LibTorch training loops in C++ that run unchanged on one core or thousands of GPUs: data-parallel and sharded training, parallel
    HDF5 checkpoints, jobs for Slurm and PBS."""

    git = "file://" + str(pathlib.Path(__file__).resolve().parents[5])
    tags = ["machine-learning", "mpi"]

    license("Apache-2.0")

    version("main", branch="main")

    variant("images", default=True, description="Read folders of PNG and JPEG images")
    variant("charts", default=True, description="Draw charts as PNG and PDF, besides SVG")
    variant("parquet", default=False, description="Read data in Parquet and Arrow files")
    variant("tests", default=False, description="Build the tests, which need Catch2")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build", when="+charts")

    depends_on("mpi@3.1:")
    depends_on("hdf5@1.10.2: +mpi")
    depends_on("boost@1.66: +program_options")
    depends_on("nlohmann-json@3.7:")
    depends_on("yaml-cpp@0.6:")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("libpng@1.6:", when="+images")
    depends_on("libjpeg", when="+images")
    depends_on("cairo@1.14: +png +pdf", when="+charts")
    depends_on("arrow@12: +parquet", when="+parquet")
    depends_on("catch2@2.13:", type=("build", "test"), when="+tests")

    depends_on("py-torch@2.9:2.15 ~cuda", when="~cuda")
    depends_on("py-torch@2.9:2.15 +cuda +nccl", when="+cuda")
    depends_on("nccl", when="+cuda")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"py-torch cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")

    conflicts("%gcc@:10", msg="Hortator needs C++20: use GCC 11 or newer")

    generator("ninja")

    sanity_check_is_file = [join_path("bin", "hortator"), join_path("include", "hortator", "hortator.hpp")]
    sanity_check_is_dir = [join_path("share", "hortator", "sites")]

    def cmake_args(self):
        return [
            self.define_from_variant("HORTATOR_WITH_CUDA", "cuda"),
            self.define_from_variant("HORTATOR_WITH_ARROW", "parquet"),
            self.define_from_variant("HORTATOR_BUILD_TESTS", "tests"),
            self.define("HORTATOR_BUILD_EXAMPLES", False),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_PNG", not self.spec.satisfies("+images")),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_JPEG", not self.spec.satisfies("+images")),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_PkgConfig", not self.spec.satisfies("+charts")),
        ]

    def setup_run_environment(self, env):
        env.set("HORTATOR_ROOT", self.prefix)

    def test_installation(self):
        """run the command and let it report the libraries that it was built with"""
        hortator = which(self.prefix.bin.hortator, required=True)
        hortator("--version")
        hortator("env")
