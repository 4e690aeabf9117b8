#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "formats/hdf5/library.hpp"
#include "mpi/library.hpp"
#include "runtime/compatibility.hpp"
#include "tools/doctor/libraries.hpp"

namespace hortator::tools::doctor {
namespace {

using enum Severity;

// The start of every program asks the same question; here the answer is a finding.
template <typename Check>
Finding judge_by(const char* name, std::string well, const Check& check) {
  try {
    check();
    return {name, ok, std::move(well)};
  } catch (const Error& error) {
    const std::string words = error.what();
    const auto end = words.find("). ");
    if (end == std::string::npos) return {name, Severity::error, words, "build Hortator with what is loaded"};
    return {name, Severity::error, words.substr(0, end + 1), words.substr(end + 3)};
  }
}

Finding judge_mpirun(const Libraries& libraries) {
  const auto& own = libraries.own_mpirun;
  if (libraries.mpirun.empty()) {
    if (!own.empty()) return {"mpirun", ok, text::concat("none on PATH; hortator launch takes ", own)};
    return {"mpirun", note, "there is none on PATH",
            "needed where there is no srun: load the MPI module that Hortator was built with"};
  }
  if (mpi::is_compatible(libraries.mpi_loaded, libraries.mpirun)) return {"mpirun", ok, libraries.mpirun};
  const auto says = text::concat("the one on PATH is of another MPI (", libraries.mpirun, ") than Hortator's (",
                                 libraries.mpi_loaded, "): each rank would think that it is alone");
  if (!own.empty()) {
    return {"mpirun", warning, says,
            text::concat("start by hortator launch, which takes ", own, ", or put that first on PATH")};
  }
  return {"mpirun", error, says, "load the MPI module that Hortator was built with, or put its mpirun first on PATH"};
}

std::vector<long long> numbers_of(const std::string& version) {
  std::vector<long long> numbers;
  for (const auto& part : text::split(version, '.')) text::parse_integer(part, numbers.emplace_back());
  return numbers;
}

long long first_number(const std::string& version) { return numbers_of(version).front(); }

// The oldest drivers that run programs of a toolkit's major release.
long long oldest_driver(long long toolkit) { return toolkit >= 13 ? 580 : toolkit == 12 ? 525 : 450; }

Finding judge_driver(const Libraries& libraries) {
  if (libraries.cuda_toolkit.empty()) return {"CUDA", ok, "built without"};
  if (libraries.nvidia_driver.empty()) {
    return {"CUDA", note, text::concat("built with toolkit ", libraries.cuda_toolkit, ", no NVIDIA driver here"),
            "needed on nodes with GPUs alone"};
  }
  const auto says = text::concat("built with toolkit ", libraries.cuda_toolkit, ", driver ", libraries.nvidia_driver);
  const auto oldest = oldest_driver(first_number(libraries.cuda_toolkit));
  if (first_number(libraries.nvidia_driver) >= oldest) return {"CUDA", ok, says};
  return {"CUDA", error, says + " is too old for it",
          text::concat("ask for driver ", oldest, " or newer, or build with an older toolkit and LibTorch")};
}

Finding judge_nccl(const Libraries& libraries) {
  if (libraries.nccl_built.empty()) return {"NCCL", ok, "built without"};
  const auto& loaded = libraries.nccl_loaded;
  if (loaded.empty() || loaded == libraries.nccl_built) return {"NCCL", ok, libraries.nccl_built};
  const bool is_older = numbers_of(loaded) < numbers_of(libraries.nccl_built);
  if (!is_older && first_number(loaded) == first_number(libraries.nccl_built))
    return {"NCCL", ok, text::concat(loaded, ", built with ", libraries.nccl_built)};
  return {"NCCL", error, text::concat(loaded, " was loaded, Hortator was built with ", libraries.nccl_built),
          "take its folder out of LD_LIBRARY_PATH and its module out of the job, so that LibTorch's own is found"};
}

}  // namespace

Findings judge(const Libraries& libraries) {
  Findings findings;
  findings.push_back(judge_by("LibTorch", libraries.libtorch_loaded,
                              [&] { runtime::check_libtorch(libraries.libtorch_built, libraries.libtorch_loaded); }));
  if (!libraries.torch_in_path.empty()) {
    findings.push_back({"LD_LIBRARY_PATH", warning,
                        text::concat("it has a LibTorch in ", libraries.torch_in_path,
                                     ", which every program takes, Python's torch included"),
                        "take that folder out: Hortator finds its own"});
  }
  findings.push_back(judge_by("MPI", libraries.mpi_loaded, [&] {
    mpi::check_library(libraries.mpi_built, libraries.mpi_loaded, libraries.mpi_files);
  }));
  findings.push_back(judge_mpirun(libraries));
  findings.push_back(judge_by("HDF5", libraries.hdf5_loaded.version,
                              [&] { formats::check_hdf5(libraries.hdf5_built, libraries.hdf5_loaded); }));
  if (!libraries.hdf5_loaded.others.empty()) {
    findings.push_back({"HDF5 beside", note,
                        text::concat(text::join(libraries.hdf5_loaded.others), " beside ", libraries.hdf5_loaded.file),
                        "fine where both have versions in their symbols, as Debian's; else load no other"});
  }
  findings.push_back(judge_driver(libraries));
  findings.push_back(judge_nccl(libraries));
  return findings;
}

}  // namespace hortator::tools::doctor
