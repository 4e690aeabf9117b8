#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "formats/hdf5/library.hpp"
#include "mpi/environment.hpp"
#include "runtime/compatibility.hpp"
#include "tools/doctor/libraries.hpp"

namespace hortator::tools::doctor {
namespace {

using enum Severity;

// Turns the error of a check that every program makes at its start into a finding.
template <typename Check>
Finding judge_check(const char* name, std::string well, const Check& check) {
  try {
    check();
    return {name, ok, std::move(well)};
  } catch (const Error& error) {
    const std::string text = error.what();
    const auto end = text.find("); ");
    if (end == std::string::npos) return {name, Severity::error, text, "build Hortator with what is loaded"};
    return {name, Severity::error, text.substr(0, end + 1), text.substr(end + 3)};
  }
}

Finding judge_mpirun(const LibraryFacts& libraries) {
  const auto& own = libraries.own_mpirun;
  if (libraries.mpirun.empty()) {
    if (!own.empty()) return {"mpirun", ok, text::concat("none on PATH; hortator launch uses ", own)};
    return {"mpirun", note, "none on PATH", "needed without srun: load the MPI module that Hortator was built with"};
  }
  if (mpi::is_compatible(libraries.mpi_loaded, libraries.mpirun)) return {"mpirun", ok, libraries.mpirun};
  if (libraries.serves_mpirun)
    return {"mpirun", ok, text::concat(libraries.mpirun, ", for which this build has a library of its own")};
  const auto message = text::concat("the one on PATH belongs to another MPI (", libraries.mpirun, ") than Hortator's (",
                                    libraries.mpi_loaded, "): every rank would run as a separate one-rank job");
  if (!own.empty()) {
    return {"mpirun", warning, message,
            text::concat("start ranks by hortator launch, which uses ", own, ", or put that first on PATH")};
  }
  return {"mpirun", error, message,
          "load the MPI module that Hortator was built with, or put its mpirun first on PATH"};
}

std::vector<long long> numbers_of(const std::string& version) {
  std::vector<long long> numbers;
  for (const auto& part : text::split(version, '.')) text::parse_integer(part, numbers.emplace_back());
  return numbers;
}

long long first_number(const std::string& version) { return numbers_of(version).front(); }

// The oldest drivers that run programs of a toolkit's major release.
long long oldest_driver(long long toolkit) { return toolkit >= 13 ? 580 : toolkit == 12 ? 525 : 450; }

Finding judge_driver(const LibraryFacts& libraries) {
  if (libraries.cuda_toolkit.empty()) return {"CUDA", ok, "built without CUDA"};
  if (libraries.nvidia_driver.empty()) {
    return {"CUDA", note, text::concat("built with toolkit ", libraries.cuda_toolkit, ", no NVIDIA driver here"),
            "needed only on nodes with GPUs"};
  }
  const auto message =
      text::concat("built with toolkit ", libraries.cuda_toolkit, ", driver ", libraries.nvidia_driver);
  const auto oldest = oldest_driver(first_number(libraries.cuda_toolkit));
  if (first_number(libraries.nvidia_driver) >= oldest) return {"CUDA", ok, message};
  return {"CUDA", error, message + " is too old for it",
          text::concat("ask for driver ", oldest, " or newer, or build with an older toolkit and LibTorch")};
}

/// A library of NVIDIA that was loaded beside the one that `user` was built with.
struct LoadedBeside {
  const char* name;
  std::string_view user;
  const std::string& built;
  const std::string& loaded;
  const std::string& in_path;
};

// NVIDIA's libraries run programs that were built with an older minor release.
Finding judge_loaded(const LoadedBeside& library) {
  const auto& [name, user, built, loaded, in_path] = library;
  if (built.empty()) return {name, ok, text::concat("built without ", name)};
  if (loaded.empty() || loaded == built) return {name, ok, built};
  const bool is_older = numbers_of(loaded) < numbers_of(built);
  if (!is_older && first_number(loaded) == first_number(built))
    return {name, ok, text::concat(loaded, ", built with ", built)};
  const auto message = text::concat(loaded, " was loaded, ", user, " was built with ", built);
  if (!in_path.empty()) {
    return {name, error, message,
            text::concat("remove ", in_path, " from LD_LIBRARY_PATH, by its module if it has one, so that ",
                         "LibTorch's own is found")};
  }
  return {name, error, message,
          "LD_LIBRARY_PATH is not the cause: check LD_PRELOAD, and whether LibTorch's own is still where it was when "
          "Hortator was installed"};
}

}  // namespace

Findings judge(const LibraryFacts& libraries) {
  Findings findings;
  findings.push_back(judge_check("LibTorch", libraries.libtorch_loaded, [&] {
    runtime::check_libtorch(libraries.libtorch_built, libraries.libtorch_loaded);
  }));
  if (!libraries.torch_in_path.empty()) {
    findings.push_back({"LD_LIBRARY_PATH", warning,
                        text::concat("it has a LibTorch in ", libraries.torch_in_path,
                                     ", which every program loads, Python's torch included"),
                        "remove that folder: Hortator finds its own LibTorch"});
  }
  findings.push_back(judge_check("MPI", libraries.mpi_loaded, [&] {
    mpi::check_library(libraries.mpi_built, libraries.mpi_loaded, libraries.mpi_files);
  }));
  findings.push_back(judge_mpirun(libraries));
  findings.push_back(judge_check("HDF5", libraries.hdf5_loaded.version,
                                 [&] { formats::check_hdf5(libraries.hdf5_built, libraries.hdf5_loaded); }));
  if (!libraries.hdf5_loaded.others.empty()) {
    findings.push_back({"HDF5 beside", note,
                        text::concat(text::join(libraries.hdf5_loaded.others), " beside ", libraries.hdf5_loaded.file),
                        "harmless if both have versioned symbols, as Debian's have; otherwise load no other HDF5"});
  }
  findings.push_back(judge_driver(libraries));
  findings.push_back(judge_loaded({"CUDA runtime", "LibTorch", libraries.cuda_runtime_built,
                                   libraries.cuda_runtime_loaded, libraries.cuda_runtime_in_path}));
  findings.push_back(
      judge_loaded({"NCCL", "Hortator", libraries.nccl_built, libraries.nccl_loaded, libraries.nccl_in_path}));
  return findings;
}

}  // namespace hortator::tools::doctor
