#include <hortator/parallel/gradient_scopes.hpp>

#include "step/model/model_core.hpp"

namespace hortator {
namespace {

void check_alive(const std::vector<ModelBase>& models) {
  for (const auto& model : models) model.core().check_alive();
}

}  // namespace

NoSync::NoSync(std::vector<ModelBase> models) : models_(std::move(models)) {
  check_alive(models_);
  for (const auto& model : models_) model.core().reducer().pause();
}

NoSync::~NoSync() {
  for (const auto& model : models_) model.core().reducer().resume();
}

SyncInBackward::SyncInBackward(std::vector<ModelBase> models) : models_(std::move(models)) {
  check_alive(models_);
  for (const auto& model : models_) model.core().reducer().ignore_pauses();
}

SyncInBackward::~SyncInBackward() {
  for (const auto& model : models_) model.core().reducer().respect_pauses();
}

}  // namespace hortator
