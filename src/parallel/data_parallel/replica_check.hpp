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

/// A number that changes with any bit of the values.
std::uint64_t fingerprint(const at::Tensor& tensor);

struct Divergence {
  int rank = 0;
  std::size_t parameter = 0;
};
/// The lowest rank that differs from what most ranks have (from the lowest rank's, where there is no majority), and its
/// first parameter that does. `fingerprints` are those of each rank's parameters.
std::optional<Divergence> find_divergence(const std::vector<std::vector<std::uint64_t>>& fingerprints);

/// Throws on all ranks unless they hold the same parameters, bit for bit. @collective Costs reading them, and two
/// reductions of 8 bytes when all is well.
void check_replicas(const std::vector<NamedParameter>& parameters, const std::string& model,
                    const mpi::Communicator& host);

}  // namespace hortator::parallel
