#pragma once

#include <string>
#include <vector>

#include "observe/operators/operator_record.hpp"

/// How a tensor of one run differs from that of another. Pure.
namespace hortator::tools {

/// Each includes the ones before it: what differs by more than rounding also has other bits.
enum class TensorVerdict {
  equal,         ///< the same bits, in the parts of the ranks as well
  parts_of_sum,  ///< ranks have terms of a sum, or of a mean, that agrees within rounding
  unrelated,     ///< ranks have computed them from other parts, in a way that nothing follows from
  order,         ///< the same elements in another order
  bits,          ///< within rounding
  more,          ///< by more than rounding
};

/// "differ by more than rounding"
std::string_view to_string(TensorVerdict verdict);

/// The tensor of each rank that has it.
using RankTensors = std::vector<const observe::TensorRecord*>;

/// Whether one can be a part of the other, by their sizes.
bool may_be_parts(const observe::TensorRecord& a, const observe::TensorRecord& b);

/// Compares the tensor of one rank with that of the same rank. `units`: of the last place of the norm, that rounding
/// may change.
TensorVerdict compare_same(const observe::TensorRecord& a, const observe::TensorRecord& b, double units);

/// Compares a tensor that ranks have in other parts: whole, divided along any dimensions, or as terms of a sum.
TensorVerdict compare_parts(const RankTensors& a, const RankTensors& b, double units);

}  // namespace hortator::tools
