#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/range.hpp"
#include "weights/weight_source.hpp"

/// Loads weights from files into tensors piece by piece, converted to the tensors' types and devices, with the memory
/// of a few pieces.
namespace hortator::weights {

struct Filling {
  std::string stored = {};  ///< the name in the file
  at::Tensor tensor = {};
  std::optional<core::Range> elements = {};  ///< of the stored tensor, if `tensor` takes only these
};

/// Fills them on this rank only, in this order; the order of the files is the fastest. Ranks of one node that do so at
/// the same time share the page cache.
void fill(const weights::WeightSource& source, const std::vector<Filling>& fillings);

/// Returns a function that fills them: one rank reads each piece and broadcasts it. Every rank passes the same
/// fillings. This call is local and allocates memory, so agree on its success before you call the function, which is
/// @collective. A rank that cannot read or fill takes part to the end and throws then; the others do not notice, so an
/// agreement must follow.
std::function<void()> filling_together(comm::Communicator& comm, const weights::WeightSource& source,
                                       const std::vector<Filling>& fillings);

/// Whether the values in the file equal those of the tensor.
bool holds(const weights::WeightSource& source, const Filling& filling);

}  // namespace hortator::weights
