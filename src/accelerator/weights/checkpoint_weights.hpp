#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "weights/weight_source.hpp"

namespace hortator::accelerator {

/// Opens the weights of model number `model` in a checkpoint of save_state(), or what weights::open_weights() finds.
/// With the name of an Ema, a checkpoint's parameters are its averages, where it has some of them.
std::unique_ptr<weights::WeightSource> open_weights_or_checkpoint(const std::filesystem::path& path, std::size_t model,
                                                                  const std::string& averages = "");

/// The checkpoint's other weights, and the option that chooses them: "model 1 (--model 1)", "averages 'ema' (--averages
/// ema)". Empty for sources that are no checkpoint.
std::vector<std::string> other_weights(const weights::WeightSource& source);

}  // namespace hortator::accelerator
