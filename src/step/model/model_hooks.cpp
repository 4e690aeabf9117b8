#include "step/model/model_hooks.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::step {

namespace {

bool is_removed(const std::shared_ptr<ModelHook>& hook) {
  return !hook->before_forward && !hook->on_arguments && !hook->after_forward;
}

void require_count(std::size_t left, std::size_t count, std::string_view when, std::string_view what) {
  if (left == count) return;
  throw UsageError({.what = text::concat("A hook ", when, " a model's forward left ", left, " ", what, " of ", count),
                    .why = text::concat("the tensors of forward's ", what, " are set to them, in their order"),
                    .hint = "replace tensors, and neither remove nor add any"});
}

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

bool ModelHooks::any_on_arguments() const {
  return std::ranges::any_of(hooks_, [](const auto& hook) { return static_cast<bool>(hook->on_arguments); });
}

void ModelHooks::on_arguments(torch::nn::Module& module, std::vector<at::Tensor>& arguments) const {
  const auto count = arguments.size();
  for (const auto& hook : std::vector(hooks_)) {
    if (const auto call = hook->on_arguments) call(module, arguments);
    require_count(arguments.size(), count, "before", "arguments");
  }
}

void ModelHooks::after_forward(torch::nn::Module& module, std::vector<at::Tensor>& results) const {
  const auto count = results.size();
  for (const auto& hook : std::vector(hooks_)) {
    if (const auto call = hook->after_forward) call(module, results);
    require_count(results.size(), count, "after", "results");
  }
}

}  // namespace hortator::step
