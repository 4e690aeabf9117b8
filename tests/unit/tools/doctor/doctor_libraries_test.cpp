#include "unit/tools/doctor/doctor_fixture.hpp"

using namespace hortator::test;

TEST_CASE("incompatible libraries are reported with both versions") {
  const auto with = [](auto change) {
    auto libraries = good_libraries();
    change(libraries);
    return libraries;
  };
  const auto mismatch = [&](auto change, const char* check, const char* built, const char* loaded) {
    const auto one = finding(with(change), check);
    CHECK(one.severity == Severity::error);
    CHECK_THAT(one.message, ContainsSubstring(built) && ContainsSubstring(loaded));
    CHECK(!one.remedy.empty());
  };
  mismatch([](LibraryFacts& all) { all.libtorch_loaded = "2.14.0"; }, "LibTorch", "2.15.0", "2.14.0");
  mismatch([](LibraryFacts& all) { all.mpi_loaded = "Open MPI v5.0.7"; }, "MPI", "Open MPI v4.1.4", "Open MPI v5.0.7");
  mismatch([](LibraryFacts& all) { all.hdf5_loaded.version = "HDF5 1.14.5"; }, "HDF5", "HDF5 1.10.8", "HDF5 1.14.5");
  mismatch([](LibraryFacts& all) { all.mpirun = "HYDRA build details:"; }, "mpirun", "Open MPI v4.1.4", "HYDRA");
  mismatch([](LibraryFacts& all) { all.mpirun = "mpirun (Open MPI) 5.0.7"; }, "mpirun", "4.1.4", "5.0.7");
  expect_finding(with([](LibraryFacts& all) { all.mpi_files.emplace_back("/opt/libmpi.so.12"); }), "MPI",
                 Severity::error, "/opt/libmpi.so.12", "no other");
  expect_finding(with([](LibraryFacts& all) { all.hdf5_loaded.others.emplace_back("/opt/libhdf5.so.310"); }),
                 "HDF5 beside", Severity::note, "/opt/libhdf5.so.310 beside /usr/lib/libhdf5.so.103", "no other");
  expect_finding(with([](LibraryFacts& all) { all.hdf5_loaded.is_parallel = false; }), "HDF5", Severity::error,
                 "is serial", "load the HDF5 module");
  expect_finding(with([](LibraryFacts& all) { all.mpirun = ""; }), "mpirun", Severity::note, "none", "module");
  expect_ok(with([](LibraryFacts& all) { all.mpirun = "", all.own_mpirun = "/opt/mpirun"; }));
  expect_finding(with([](LibraryFacts& all) { all.mpirun = "HYDRA build details:", all.own_mpirun = "/opt/mpirun"; }),
                 "mpirun", Severity::warning, "every rank would run as a separate one-rank job",
                 "hortator launch, which uses /opt/mpirun");
  expect_finding(with([](LibraryFacts& all) { all.torch_in_path = "/opt/torch/lib"; }), "LD_LIBRARY_PATH",
                 Severity::warning, "/opt/torch/lib", "remove that folder");
}

TEST_CASE("driver and NCCL are checked in builds with CUDA") {
  const auto cuda = [](const char* toolkit, const char* driver) {
    auto libraries = good_libraries();
    libraries.cuda_toolkit = toolkit;
    libraries.nvidia_driver = driver;
    return finding(libraries, "CUDA");
  };
  CHECK(cuda("13.0", "580.65.06").severity == Severity::ok);
  CHECK(cuda("12.4", "525.60").severity == Severity::ok);
  CHECK(cuda("13.0", "").severity == Severity::note);
  CHECK(cuda("13.0", "570.10").severity == Severity::error);
  CHECK_THAT(cuda("13.0", "570.10").remedy, ContainsSubstring("580"));
  CHECK(cuda("12.4", "470.1").severity == Severity::error);
  CHECK(parse_driver("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27") == "580.65.06");
  CHECK(parse_driver("").empty());

  const auto nccl = [](const char* built, const char* loaded) {
    auto libraries = good_libraries();
    libraries.nccl_built = built;
    libraries.nccl_loaded = loaded;
    return finding(libraries, "NCCL").severity;
  };
  CHECK(nccl("2.30.7", "2.30.7") == Severity::ok);
  CHECK(nccl("2.9.7", "2.28.0") == Severity::ok);
  CHECK(nccl("2.30.7", "2.28.9") == Severity::error);
  CHECK(nccl("2.30.7", "3.0.0") == Severity::error);

  const auto runtime = [](const char* built, const char* loaded) {
    auto libraries = good_libraries();
    libraries.cuda_runtime_built = built;
    libraries.cuda_runtime_loaded = loaded;
    libraries.cuda_runtime_in_path = "/usr/local/cuda/lib64";
    return finding(libraries, "CUDA runtime");
  };
  CHECK(runtime("", "").severity == Severity::ok);
  CHECK(runtime("13.2", "13.2").severity == Severity::ok);
  CHECK(runtime("13.0", "13.2").severity == Severity::ok);
  CHECK(runtime("13.2", "13.0").severity == Severity::error);
  CHECK_THAT(runtime("13.2", "13.0").message, ContainsSubstring("13.0 was loaded, LibTorch was built with 13.2"));
  CHECK_THAT(runtime("13.2", "13.0").remedy, ContainsSubstring("remove /usr/local/cuda/lib64 from LD_LIBRARY_PATH"));

  // The remedy blames LD_LIBRARY_PATH only if there is an NCCL in it.
  auto libraries = good_libraries();
  libraries.nccl_built = "2.30.7";
  libraries.nccl_loaded = "2.28.9";
  CHECK_THAT(finding(libraries, "NCCL").remedy, ContainsSubstring("LD_LIBRARY_PATH is not the cause"));
  libraries.nccl_in_path = "/opt/nccl/lib";
  CHECK_THAT(finding(libraries, "NCCL").remedy, ContainsSubstring("remove /opt/nccl/lib from LD_LIBRARY_PATH"));
}
