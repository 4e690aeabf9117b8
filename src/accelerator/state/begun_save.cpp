#include "accelerator/state/begun_save.hpp"

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/training.hpp"
#include "checkpoint/format.hpp"
#include "checkpoint/write/save.hpp"

namespace hortator::accelerator {

BegunSave::BegunSave(Training& training, const std::filesystem::path& target) : rank_(training.host().rank()) {
  auto& hooks = training.prepared.save_hooks();
  if (hooks.empty()) return;
  training.output.background_save().wait(training.host());  // its folder would be taken for that of a killed save
  folder_ = checkpoint::begin(training.host(), target, training.output.project().is_damaged(target));
  try {
    const HookFolders folders = {.checkpoint = target, .own = folder_->staged() / checkpoint::hooks_folder};
    left_out_ = call(hooks, folders, training.prepared.models(), training.host());
  } catch (...) {
    abandon();
    throw;
  }
}

BegunSave::~BegunSave() {
  if (std::uncaught_exceptions() > exceptions_) abandon();
}

void BegunSave::abandon() const {
  if (folder_ && rank_ == 0) folder_->abandon();
}

}  // namespace hortator::accelerator
