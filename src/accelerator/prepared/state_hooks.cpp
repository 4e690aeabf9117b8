#include "accelerator/prepared/state_hooks.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "mpi/agree.hpp"

namespace hortator {

void StateHookScope::leave_out(std::size_t model) {
  if (model < models_.size()) {
    left_out_.insert(model);
    return;
  }
  throw UsageError({.what = text::concat("A state hook leaves out model ", model, " of ", models_.size()),
                    .why = "models are numbered from 0 in the order of prepare()",
                    .hint = "use the index of the model in StateHookScope::models()"});
}

namespace accelerator {

StateHookHandle add(StateHooks& hooks, StateHook hook) {
  std::erase_if(hooks, [](const auto& one) { return one->was_removed(); });
  return StateHookHandle(hooks.emplace_back(std::make_shared<StateHook>(std::move(hook))));
}

std::set<std::size_t> call(const StateHooks& hooks, const HookFolders& folders,
                           const std::vector<std::shared_ptr<step::ModelCore>>& models, const mpi::Communicator& host) {
  if (hooks.empty()) return {};
  StateHookScope scope(folders.checkpoint, folders.own, std::vector<ModelBase>(models.begin(), models.end()));
  mpi::all_or_none(host, [&] {
    const auto registered = hooks;  // a hook may register others
    for (const auto& hook : registered) (*hook)(scope);
  });
  mpi::same_on_all(host, text::join(scope.left_out()), "the list of models that state hooks leave out");
  return scope.left_out();
}

}  // namespace accelerator
}  // namespace hortator
