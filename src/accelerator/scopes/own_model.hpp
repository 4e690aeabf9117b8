#pragma once

#include <hortator/model.hpp>
#include <memory>
#include <string_view>

namespace hortator::accelerator {

class Training;

/// The model of this Accelerator that the handle stands for. Throws UsageError, which names `caller` and says `why`, if
/// another Accelerator has prepared it.
std::shared_ptr<step::ModelCore> own_model(const Training& training, const ModelBase& model, std::string_view caller,
                                           std::string_view why);

}  // namespace hortator::accelerator
