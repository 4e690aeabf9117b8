#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/replaced_file.hpp"
#include "formats/file/replacement.hpp"
#include "formats/safetensors/writer.hpp"
#include "interception/dispatch_keys.hpp"
#include "models/pretrained/expert_names.hpp"
#include "packed/stored_layers.hpp"
#include "weights/module_weights.hpp"
#include "weights/weight_folder.hpp"
#include "weights/weight_shards.hpp"

namespace hortator::models {
namespace {

using ByName = std::map<std::string, at::Tensor>;

/// Writes the tensors one after the other, so that only one is copied at a time.
void write_file(const std::filesystem::path& path, const ByName& tensors) {
  std::map<std::string, formats::TensorSpec> specs;
  for (const auto& [name, tensor] : tensors) specs.emplace(name, formats::spec_of(tensor));
  const auto plan = formats::plan_safetensors(specs);
  auto file = formats::RawFile::create(path);
  file.reserve(static_cast<std::uint64_t>(plan.bytes));
  file.write_at(0, plan.beginning.data(), plan.beginning.size());
  for (const auto& planned : plan.tensors) {
    const auto values = tensors.at(planned.name).detach().cpu().contiguous();
    file.write_at(planned.offset, values.const_data_ptr(), values.nbytes());
  }
  file.sync();
  file.close();
}

void require_whole(const std::string& name, const at::Tensor& tensor) {
  if (!interception::carries_divided_key(tensor)) return;
  throw UsageError({.what = text::concat("save_pretrained got a model whose parameter ", text::quote(name),
                                         " is divided among ranks"),
                    .why = "this rank has only a part of it",
                    .hint = "use Accelerator::save_model, which all ranks call, and save_config"});
}

void write_text(const std::filesystem::path& folder, const std::string& name, const std::string& content) {
  formats::replace_file(folder / name,
                        [&](const formats::RawFile& file) { file.write_at(0, content.data(), content.size()); });
}

/// config.json, which also describes packed weights.
std::string json_of(const PretrainedModel& model) {
  const auto packing = packed::quantization_config(model);
  auto json = nlohmann::ordered_json::parse(model.config().json);
  if (packing.empty() && !json.contains("quantization_config")) return model.config().json;
  json.erase("quantization_config");
  if (!packing.empty()) json["quantization_config"] = nlohmann::ordered_json::parse(packing);
  return json.dump(2) + "\n";
}

}  // namespace

void save_tensors(const std::map<std::string, at::Tensor>& tensors, const std::filesystem::path& file) {
  write_file(file, tensors);
}

void save_config(const PretrainedModel& model, const std::filesystem::path& folder) {
  formats::make_folder_durably(folder);
  const auto& config = model.config();
  write_text(folder, "config.json", json_of(model));
  if (!config.generation_json.empty()) write_text(folder, "generation_config.json", config.generation_json);
}

void save_pretrained(const PretrainedModel& model, const std::filesystem::path& folder,
                     const SavePretrainedOptions& options) {
  const auto max_bytes = static_cast<std::int64_t>(units::parse_bytes(options.max_shard_size));
  std::vector<weights::WeightToSave> weights;
  ByName tensors;
  const auto all = weights::weights_of(model);
  for (const auto& one : all) require_whole(one.name, one.tensor);
  for (const auto& part : parts_by_expert(all)) {
    auto stored = packed::stored_tensors(part.name, all[part.weight].tensor);
    if (stored.empty()) stored.emplace(part.name, part.of(all[part.weight].tensor));
    for (const auto& [name, tensor] : stored) {
      weights.push_back({.name = name, .bytes = static_cast<std::int64_t>(tensor.nbytes())});
      tensors.emplace(name, tensor);
    }
  }
  const auto shards = weights::shard_weights(weights, max_bytes);
  weights::WeightFolder target(folder, formats::replacement_id(), weights::WeightFileNames{});
  try {
    target.begin();
    for (const auto& file : shards.files) {
      ByName part;
      for (const auto i : file.weights) part.emplace(weights[i].name, tensors.at(weights[i].name));
      write_file(target.aside(file.name), part);
    }
    save_config(model, folder);
    target.publish(shards, weights);
  } catch (...) {
    target.abandon(shards);
    throw;
  }
}

}  // namespace hortator::models
