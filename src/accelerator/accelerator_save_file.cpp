#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/rehearsal/rehearsal.hpp"
#include "accelerator/training/training.hpp"
#include "core/activity/activity.hpp"
#include "core/call_site.hpp"
#include "core/text/text.hpp"
#include "formats/torch/pickle/saved_object.hpp"
#include "formats/torch/pickle/writer.hpp"
#include "mpi/agree.hpp"

namespace hortator {
namespace {

formats::NamedTensors tensors_in(const StateDict& state) {
  formats::NamedTensors tensors;
  for (const auto& [name, value] : state.values()) {
    const auto* const tensor = std::get_if<at::Tensor>(&value);
    if (tensor == nullptr) {
      throw UsageError({.what = text::concat("save() got ", text::quote(name), ", which is not a tensor"),
                        .why = "the file holds tensors only, as those of torch.save that hold weights",
                        .hint = "use SavedObject, which holds numbers and texts as well"});
    }
    tensors.emplace_back(name, tensor->detach());
  }
  return tensors;
}

}  // namespace

void Accelerator::save_file(const std::filesystem::path& file, const SaveFileOptions& options,
                            const std::function<void()>& write) {
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  accelerator::end_rehearsal_before_writing();
  const bool writes = options.on_each_node ? is_local_main_process() : is_main_process();
  mpi::all_or_none(training_->host(), [&] {
    if (!writes) return;
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    write();
  });
}

void Accelerator::save(const StateDict& tensors, const std::filesystem::path& file, const SaveFileOptions& options) {
  const CallSite site(__builtin_return_address(0));
  save_file(file, options, [&] { formats::write_pickle(file, tensors_in(tensors)); });
}

void Accelerator::save_object(const SavedObject& object, const std::filesystem::path& file,
                              const SaveFileOptions& options) {
  const CallSite site(__builtin_return_address(0));
  save_file(file, options, [&] { formats::write_object(file, object); });
}

}  // namespace hortator
