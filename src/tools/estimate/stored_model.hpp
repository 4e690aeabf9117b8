#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

namespace hortator::tools::estimates {

/// The tensors of a model by their dotted names, as files say them: of what weights::open_weights() opens, a checkpoint
/// of save_state, or a file of HDF5. No value is read. Of several models in a checkpoint each name begins with the
/// model's number.
std::vector<std::pair<std::string, formats::TensorSpec>> stored_model(const std::filesystem::path& path);

}  // namespace hortator::tools::estimates
