#include <exception>
#include <utility>

#include "accelerator/scopes/joining.hpp"

namespace hortator {

JoinUnevenInputs::JoinUnevenInputs(accelerator::Training& training, std::vector<ModelBase> models,
                                   const JoinOptions& options)
    : joining_(std::make_unique<accelerator::Joining>(training, std::move(models), options)) {}

JoinUnevenInputs::~JoinUnevenInputs() noexcept(false) {
  if (std::uncaught_exceptions() > joining_->exceptions_at_begin()) return;
  joining_->leave();
}

}  // namespace hortator
