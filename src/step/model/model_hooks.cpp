#include "step/model/model_hooks.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::step {

namespace {

bool is_removed(const std::shared_ptr<ModelHook>& hook) { return !hook->before_forward && !hook->after_forward; }

}  // namespace

ModelHookHandle ModelHooks::add(ModelHook hook) {
  std::erase_if(hooks_, is_removed);
  ++added_;
  return ModelHookHandle(hooks_.emplace_back(std::make_shared<ModelHook>(std::move(hook))));
}

ModelHooks::HookCounts ModelHooks::counts() const {
  return {.added = added_,
          .present = static_cast<std::int64_t>(hooks_.size()) - std::ranges::count_if(hooks_, is_removed)};
}

// A hook may add hooks or remove itself: the list, and the function that runs, are copies.
void ModelHooks::before_forward(torch::nn::Module& module) const {
  for (const auto& hook : std::vector(hooks_)) {
    if (const auto call = hook->before_forward) call(module);
  }
}

void ModelHooks::after_forward(torch::nn::Module& module, std::vector<at::Tensor>& results) const {
  const auto count = results.size();
  for (const auto& hook : std::vector(hooks_)) {
    if (const auto call = hook->after_forward) call(module, results);
    if (results.size() == count) continue;
    throw UsageError(
        {.what = text::concat("A hook after a model's forward left ", results.size(), " results of ", count),
         .why = "the tensors of forward's result are set to them, in their order",
         .hint = "replace tensors, and neither remove nor add any"});
  }
}

}  // namespace hortator::step
