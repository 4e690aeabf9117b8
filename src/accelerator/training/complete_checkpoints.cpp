#include "accelerator/training/complete_checkpoints.hpp"

#include "accelerator/channels/channels.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/training.hpp"
#include "core/log.hpp"
#include "runtime/identity/checkpoint_note.hpp"

namespace hortator::accelerator {
namespace {

template <typename Work>
void attempt(const std::filesystem::path& folder, const char* what, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    log::warn("The checkpoint ", folder.string(), " is complete, but ", what, ": ", error.what());
  } catch (...) {
    log::warn("The checkpoint ", folder.string(), " is complete, but ", what);
  }
}

}  // namespace

void announce_complete(const Training& training, const std::filesystem::path& folder) noexcept {
  if (training.host().rank() != 0) return;
  attempt(folder, "checkpoint.on_complete has failed", [&] {
    if (const auto& call = training.options().checkpoint.on_complete) call(folder);
  });
  attempt(folder, "the launcher does not learn of it", [&] { runtime::publish_checkpoint(folder); });
}

void announce_completed_saves(Training& training) noexcept {
  for (const auto& folder : training.output.background_save().take_completed()) announce_complete(training, folder);
}

}  // namespace hortator::accelerator
