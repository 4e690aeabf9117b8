#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

namespace hortator::tools::estimates {

/// Names (dotted) and specs of a model's tensors, from anything that weights::open_weights() opens, a checkpoint of
/// save_state, an HDF5 file, a config.json of a model that hortator::models knows, or a folder with one; or from the
/// name of a model that huggingface_hub has downloaded. Reads no values. If a checkpoint has several models, names
/// start with the model's number.
std::vector<std::pair<std::string, formats::TensorSpec>> stored_model(const std::filesystem::path& path);

}  // namespace hortator::tools::estimates
