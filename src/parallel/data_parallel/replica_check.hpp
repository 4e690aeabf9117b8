#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::parallel {

struct NamedParameter {
  std::string name;
  at::Tensor tensor;
};

/// A hash of the values' bits.
std::uint64_t fingerprint(const at::Tensor& tensor);

struct Divergence {
  int rank = 0;
  std::size_t parameter = 0;
  bool is_outvoted = true;  ///< more than half of the ranks agree with each other
};
/// Returns the lowest rank that differs from most ranks (from rank 0 if there is no majority), and its first parameter
/// that does. `fingerprints` are those of each rank's parameters.
std::optional<Divergence> find_divergence(const std::vector<std::vector<std::uint64_t>>& fingerprints);

/// Throws on all ranks unless they hold the same parameters, bit for bit. Costs reading them, and two reductions of 8
/// bytes if they do. @collective
void check_replicas(const std::vector<NamedParameter>& parameters, const std::string& model,
                    const mpi::Communicator& host);

}  // namespace hortator::parallel
