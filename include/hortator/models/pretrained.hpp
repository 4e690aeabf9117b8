#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <hortator/models/model.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hortator::models {

/// Options of from_pretrained() and from_config().
struct PretrainedOptions {
  /// The model to make, if not the one that config.json names: "BertForSequenceClassification" puts a new head on a
  /// checkpoint of "BertForMaskedLM".
  std::string architecture = {};
  std::optional<std::int64_t> num_labels = {};     ///< outputs of a classification head, if not those of config.json
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< of the parameters; stored values are converted
  /// The end of the architecture's name: "ForSequenceClassification" makes a "BertForMaskedLM" of config.json a
  /// "BertForSequenceClassification". Ignored with `architecture`.
  std::string head = {};
  /// Weights of a GGUF file's types Q8_0, Q4_0 and Q4_1 keep their bits, as after quantise(). Others, and all without
  /// it, become `dtype`.
  bool keep_packed = false;
};

/// Makes the model of a folder with config.json, generation_config.json for generate(), and weights (model.safetensors,
/// pytorch_model.bin, an index of several files, or one GGUF file, which describes the model if there is no
/// config.json; the path may also be that of a GGUF file), in evaluation mode. Weights are read into the parameters
/// directly. A new head has random weights, and a warning names them. Throws an error with all names that do not fit
/// for weights of another model, and one that lists the known names for an architecture, a field or a value that is not
/// supported. Local to this process: all ranks that train the model call it. Within construct_deferred() each weight of
/// 1 MiB or more is read when it is needed: in prepare(), the first rank reads one after the other and sends it to all,
/// so that no rank holds more than its part of the model and one weight.
HORTATOR_API std::shared_ptr<PretrainedModel> from_pretrained(const std::filesystem::path& folder,
                                                              const PretrainedOptions& options = {});

/// Makes the model of a config.json, or of a folder that holds one, with random weights.
HORTATOR_API std::shared_ptr<PretrainedModel> from_config(const std::filesystem::path& path,
                                                          const PretrainedOptions& options = {});

/// Options of save_pretrained().
struct SavePretrainedOptions {
  std::string max_shard_size = "10GB";  ///< files grow no larger, except for a single tensor that is larger
};

/// Writes config.json, generation_config.json if the model came with one, and safetensors files that transformers
/// loads. A reader finds the older or the newer model, also when the process is killed. One rank calls it. Parameters
/// that ZeRO has sharded are written by Accelerator::save_model; save_config() completes its folder.
HORTATOR_API void save_pretrained(const PretrainedModel& model, const std::filesystem::path& folder,
                                  const SavePretrainedOptions& options = {});

/// Writes config.json, and generation_config.json if the model came with one. One rank calls it.
HORTATOR_API void save_config(const PretrainedModel& model, const std::filesystem::path& folder);

/// Writes tensors to a safetensors file, which must not exist yet.
HORTATOR_API void save_tensors(const std::map<std::string, at::Tensor>& tensors, const std::filesystem::path& file);

/// The names that config.json may have under "architectures".
HORTATOR_API std::vector<std::string> known_architectures();

}  // namespace hortator::models
