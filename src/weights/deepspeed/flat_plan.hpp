#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core/range.hpp"

/// Where DeepSpeed's ZeRO puts the elements of tensors: into flat arrays that are divided among the ranks. Pure.
namespace hortator::weights {

/// A range of a tensor's elements that is contiguous in a flat array of one rank.
struct FlatSlice {
  std::size_t rank = 0;
  std::size_t array = 0;      ///< its number among the rank's
  std::int64_t first = 0;     ///< its first element there
  core::Range elements = {};  ///< of the tensor, in row-major order
  friend bool operator==(const FlatSlice&, const FlatSlice&) = default;
};

/// The slices of one tensor after another, in the order of its elements.
using FlatSlices = std::vector<std::vector<FlatSlice>>;

/// The elements of each array of each rank: [rank][array]. All ranks have the same number of arrays.
using FlatLengths = std::vector<std::vector<std::int64_t>>;

/// Why the arrays do not hold the tensors.
class FlatFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// ZeRO 1 and 2: an array holds tensors of these sizes one after the other, with `gaps` (none if empty) after each, and
/// is cut into one part a rank. Its end may be padded, by at most two elements a rank. Throws FlatFault for any other
/// length.
FlatSlices cut_array(const FlatLengths& lengths, std::size_t array, const std::vector<std::int64_t>& sizes,
                     const std::vector<std::int64_t>& gaps);

/// ZeRO 3: each tensor is cut into one part a rank, all of one size, so that the last ones may be padded. A rank has
/// its parts one after the other in its arrays. Throws FlatFault if these have another length.
FlatSlices cut_tensors(const FlatLengths& lengths, const std::vector<std::int64_t>& sizes);

}  // namespace hortator::weights
