#pragma once

#include <memory>
#include <vector>

#include "step/model_core.hpp"

namespace hortator::accelerator {

/// Lends each rank whole parameters of its own of these models while it does `work`. What it writes to them is kept
/// unless it throws, which it must do on all ranks or on none. @collective
template <typename Work>
void with_whole_parameters(const std::vector<std::shared_ptr<step::ModelCore>>& models, const Work& work) {
  std::vector<step::ModelCore*> lent;
  const auto take_back = [&](bool keep) {
    for (auto* model : lent) model->take_back_parameters(keep);
  };
  try {
    for (const auto& model : models) {
      model->lend_parameters();
      lent.push_back(model.get());
    }
    work();
  } catch (...) {
    take_back(false);
    throw;
  }
  take_back(true);
}

}  // namespace hortator::accelerator
