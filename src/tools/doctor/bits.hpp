#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"
#include "tools/doctor/finding.hpp"

/// Whether the nodes of a job compute the same bits.
namespace hortator::tools::doctor {

/// What one kernel of LibTorch makes of fixed inputs.
struct KernelBits {
  std::string kernel;  ///< "softmax bfloat16"
  std::string bits;    ///< a hash, or the error that the kernel ended with

  friend bool operator==(const KernelBits&, const KernelBits&) = default;
};

/// The kernels as one rank computes them.
struct RankBits {
  std::string host;
  std::string processor;  ///< "AMD EPYC 9554: AVX2 FMA AVX512F; LibTorch uses AVX512"
  std::vector<KernelBits> kernels = {};
};

/// By rank.
struct BitsFacts {
  std::vector<RankBits> ranks = {};
};

/// For each kernel, what most ranks have is right, and of equal numbers what the first rank has. Names the kernels and
/// the hosts that differ; ranks as well if those of one host do. @see inspect_bits()
Findings judge(const BitsFacts& facts);

/// One hash of all kernels, to compare with another job's. Pure.
std::string hash_of(const std::vector<KernelBits>& kernels);

/// Runs the kernels on this rank's CPU, with one thread. An error of a kernel is its result.
std::vector<KernelBits> probe_kernels();

/// This rank's processor, the instructions that kernels choose by, and what LibTorch has chosen.
std::string processor_features();

/// Runs the probe on all ranks; the result is on rank 0, and empty on others. @collective
BitsFacts inspect_bits(const mpi::Communicator& comm);

}  // namespace hortator::tools::doctor
