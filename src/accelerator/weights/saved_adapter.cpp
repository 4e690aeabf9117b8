// The adapter of a prepared model, whose parameters no rank may have as a whole.
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <hortator/lora.hpp>
#include <map>

#include "accelerator/training/run_output.hpp"
#include "accelerator/training/training.hpp"
#include "adapters/adapter_files.hpp"
#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/replaced_file.hpp"
#include "mpi/agree.hpp"
#include "step/model/model_core.hpp"

namespace hortator {
namespace {

namespace fs = std::filesystem;

/// From the model's names to those of the file. Throws UsageError unless exactly the adapter is trained.
Renaming names_in_file(const torch::nn::Module& module, const std::string& adapter) {
  std::map<const void*, std::string> stored;
  for (const auto& [name, tensor] : adapters::stored_tensors(module, adapter))
    stored.emplace(tensor.unsafeGetTensorImpl(), name);
  std::vector<Renaming::Rule> rules;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const auto found = stored.find(item.value().unsafeGetTensorImpl());
    if (found == stored.end()) {
      throw UsageError({.what = text::concat("save_adapter(): the parameter ", text::quote(item.key()),
                                             " is trained, and does not belong to the adapter ", text::quote(adapter)),
                        .why = "it would not be saved",
                        .hint = "name it in LoraOptions::modules_to_save, or use save_model()"});
    }
    rules.push_back({.from = item.key(), .to = found->second});
  }
  if (rules.size() == stored.size()) return Renaming(std::move(rules));
  throw UsageError({.what = text::concat("save_adapter(): the adapter ", text::quote(adapter), " is not trained"),
                    .why = "of a prepared model, what is trained is saved",
                    .hint = "set_adapter() it before prepare(), or save it from a model that is not prepared"});
}

void publish(const fs::path& staged, const fs::path& folder, const std::string& config) {
  formats::rename(staged / "model.safetensors", folder / adapters::weights_name);
  fs::remove_all(staged);
  formats::replace_file(folder / adapters::config_name,
                        [&](const formats::RawFile& file) { file.write_at(0, config.data(), config.size()); });
}

}  // namespace

void save_adapter(Accelerator& accelerator, const ModelBase& model, const fs::path& folder, const std::string& name) {
  const auto& module = model.core().module();
  const auto staged = folder / ".adapter_model.new";
  accelerator.save_model(model, staged,
                         {.max_shard_size = "1000TB", .rename = names_in_file(module, name), .only_trainable = true});
  const auto& training = accelerator::Training::of(accelerator);
  const auto& node = training.output.own_node();
  mpi::all_or_none(training.host(), [&] {
    if (node ? node->is_leader : training.host().rank() == 0)
      publish(staged, folder, adapters::config_of(module, name));
  });
}

}  // namespace hortator
