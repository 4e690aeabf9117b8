#pragma once

#include <hortator/parallel/tensor_plan.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/tensor/division.hpp"

namespace hortator::parallel {

/// A parameter as a plan sees it.
struct PlannedParameter {
  std::string name;
  Sizes sizes;
  const void* identity = nullptr;  ///< the same for all names of a tied parameter
};

/// Whether `pattern` is `name`, or the end of it from a dot on; a star stands for any characters but dots. Pure.
bool matches(std::string_view pattern, std::string_view name);

/// How `plan` divides each of the parameters among `ranks` ranks; nothing for those that it replicates. Throws
/// UsageError for a rule that fits no parameter, a dimension that cannot be divided equally (a vocabulary is padded),
/// and tied parameters whose names are divided differently. Pure.
std::vector<std::optional<Division>> divisions_by_plan(const TensorPlan& plan,
                                                       const std::vector<PlannedParameter>& parameters, int ranks);

}  // namespace hortator::parallel
