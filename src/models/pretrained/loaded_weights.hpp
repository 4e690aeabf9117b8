#pragma once

#include <c10/core/ScalarType.h>

#include <filesystem>
#include <hortator/models/model.hpp>
#include <string>
#include <vector>

#include "models/architectures.hpp"

namespace hortator::models {

/// What of a checkpoint becomes part of a model.
struct WeightsToLoad {
  std::filesystem::path folder = {};
  c10::ScalarType dtype = c10::ScalarType::Float;
  bool may_replace_head = false;  ///< a head of another size counts as missing
  bool keep_packed = false;       ///< see PretrainedOptions
  bool are_read_later = false;    ///< each weight when it is needed, with the memory of one
};

/// Reads the weights of a folder into a model that was constructed without memory. Returns the names that the files do
/// not have: those of a new head, whose values are initialised later. Throws an error with all names that do not fit.
std::vector<std::string> load_weights(PretrainedModel& model, const Architecture& architecture,
                                      const WeightsToLoad& weights);

}  // namespace hortator::models
