#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/range.hpp"
#include "weights/weight_source.hpp"

/// How weights come from files into tensors, piece by piece: in the tensors' own types, on their devices, and with no
/// more memory than a few pieces.
namespace hortator::weights {

struct Filling {
  std::string stored = {};  ///< the name in the file
  at::Tensor tensor = {};
  std::optional<core::Range> elements = {};  ///< of the stored one, where `tensor` is not for all of them
};

/// By this rank alone, in this order: that of the files is the fastest. Ranks of one node that do it at once find in
/// the system's cache what one of them has read.
void fill(const weights::WeightSource& source, const std::vector<Filling>& fillings);

/// What fills them with each piece read by one rank, which sends it to all. Every rank has the same fillings, and calls
/// it once all have got it: memory is taken here, by each rank alone. It is @collective. A rank that cannot read or
/// fill takes part to the end and throws then: the others do not know, so an agreement must follow.
std::function<void()> filling_together(comm::Communicator& comm, const weights::WeightSource& source,
                                       const std::vector<Filling>& fillings);

/// Whether the file has the values that the tensor has.
bool holds(const weights::WeightSource& source, const Filling& filling);

}  // namespace hortator::weights
