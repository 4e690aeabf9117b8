#include <ATen/ATen.h>

#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>
#include <new>
#include <string_view>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/gguf/file.hpp"
#include "models/architectures.hpp"
#include "models/layers/modules.hpp"
#include "models/pretrained/gguf_config.hpp"
#include "models/pretrained/loaded_weights.hpp"
#include "paging/deferred/construction_scope.hpp"

namespace hortator::models {
namespace {

constexpr const char* config_name = "config.json";

/// A config.json, and the architecture that it describes.
struct Described {
  ConfigFields fields;
  const Architecture& architecture;
};

/// The architecture of the same family with another head.
std::string with_head(const std::string& name, const std::string& head) {
  for (const auto& known : known_architectures()) {
    if (known.ends_with(head) && name.starts_with(known.substr(0, known.size() - head.size()))) return known;
  }
  throw UsageError({.what = text::concat("There is no ", text::quote(head), " for a ", name),
                    .hint = text::concat("known are ", text::join(known_architectures()))});
}

std::string architecture_name(const ConfigFields& fields, const PretrainedOptions& options) {
  if (!options.architecture.empty()) return options.architecture;
  const auto names = fields.texts("architectures");
  auto name = names.empty() ? fields.text("architecture", "") : names.front();
  if (!name.empty() && !options.head.empty()) return with_head(name, options.head);
  if (!name.empty()) return name;
  throw UsageError(
      {.what = text::concat(fields.file(), R"( names no model under "architectures")"),
       .hint = text::concat("name one with .architecture; known are ", text::join(known_architectures()))});
}

/// The fields of a model with that many labels, which get names as in transformers.
ConfigFields with_labels(const ConfigFields& fields, const Architecture& architecture, std::int64_t labels) {
  if (labels < 1) throw UsageError({.what = text::concat("num_labels: expected a number from 1, got ", labels)});
  if (architecture.family == "timm") return fields.with("num_classes", labels);
  auto names = nlohmann::json::object(), ids = nlohmann::json::object();
  for (std::int64_t i = 0; i < labels; ++i) {
    const auto name = text::concat("LABEL_", i);
    names[std::to_string(i)] = name;
    ids[name] = i;
  }
  return fields.with("num_labels", nullptr).with("id2label", names).with("label2id", ids);
}

/// The fields of a config.json, of the one in a folder, or of a GGUF file.
ConfigFields fields_of(const std::filesystem::path& path) {
  if (const auto file = gguf_file_of(path); !file.empty())
    return {gguf_config(formats::read_gguf_header(formats::FixedFile(file)), file), text::concat(file), ""};
  return ConfigFields::read(std::filesystem::is_directory(path) ? path / config_name : path);
}

/// How the file has packed its weights; the files themselves say which.
void require_readable_weights(const ConfigFields& fields) {
  if (!fields.has("quantization_config")) return;
  const auto packing = fields.object("quantization_config");
  packing.require_one_of("quant_method", packing.text("quant_method", ""), {"bitsandbytes", "hortator"});
}

Described described(const std::filesystem::path& path, const PretrainedOptions& options) {
  if (!c10::isFloatingType(options.dtype)) {
    throw UsageError({.what = "from_pretrained: dtype is not a floating-point type",
                      .hint = "take at::kFloat, at::kBFloat16 or at::kHalf"});
  }
  auto fields = fields_of(path);
  const auto name = architecture_name(fields, options);
  const auto& architecture = architecture_named(name, fields.file());
  const auto type = fields.text("model_type", std::string(architecture.family));
  fields.require_one_of("model_type", type, {std::string(architecture.family)});
  if (fields.has("architectures") || !options.architecture.empty() || !options.head.empty())
    fields = fields.with("architectures", std::vector{name});
  if (options.num_labels) fields = with_labels(fields, architecture, *options.num_labels);
  require_readable_weights(fields);
  return {.fields = fields, .architecture = architecture};
}

ModelConfig config_of(const Described& model) {
  const auto& fields = model.fields;
  ModelConfig config{.architecture = std::string(model.architecture.name), .json = fields.dump()};
  const bool reads_text = model.architecture.head != Head::image && fields.has("vocab_size");
  if (reads_text) {
    config.vocabulary = fields.integer("vocab_size");
    config.max_positions = fields.integer(fields.has("n_positions") ? "n_positions" : "max_position_embeddings", 512);
  }
  config.is_causal = model.architecture.head == Head::causal;
  config.has_learned_positions = model.architecture.family == "gpt2";
  config.num_labels = fields.num_labels();
  config.eos_token_ids = fields.integers("eos_token_id");
  config.pad_token_id = fields.token("pad_token_id");
  if (model.architecture.family == "mixtral")
    config.router_aux_loss_coef = fields.number("router_aux_loss_coef", 0.001);
  return config;
}

UsageError too_large(const ConfigFields& fields, std::string_view reason) {
  if (const auto allocator = reason.find("DefaultCPUAllocator"); allocator != std::string_view::npos)
    reason.remove_prefix(allocator);  // behind the place in LibTorch's source
  return UsageError(
      {.what = text::concat(fields.file(), ": a model of this size cannot be made: ", fields.largest_dimensions()),
       .why = std::string(reason.substr(0, reason.find('\n'))),
       .hint = "correct the sizes, or use a machine with more memory"});
}

std::shared_ptr<PretrainedModel> made(const Described& model) {
  const auto& [fields, architecture] = model;
  try {
    auto module = architecture.make(fields, architecture);
    fields.require_all_used();
    if (architecture.family != "resnet" && architecture.family != "timm")
      initialise_normal(*module, fields.number("initializer_range", 0.02));
    module->set_config(config_of(model));
    return module;
  } catch (const c10::Error& error) {
    throw too_large(fields, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    throw too_large(fields, "memory cannot be allocated");
  }
}

/// The text of the folder's generation_config.json; empty if there is none.
std::string generation_json_of(const std::filesystem::path& folder) {
  const auto path = folder / "generation_config.json";
  if (!std::filesystem::is_regular_file(path)) return {};
  return ConfigFields::read(path).dump();
}

/// Counters stay whole numbers, which Module::to(dtype) would convert.
void convert(PretrainedModel& module, c10::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  auto tensors = module.parameters();
  for (const auto& buffer : module.buffers()) tensors.push_back(buffer);
  for (const auto& tensor : tensors)
    if (tensor.is_floating_point() && tensor.scalar_type() != dtype) tensor.set_data(tensor.to(dtype));
}

}  // namespace

std::shared_ptr<PretrainedModel> from_pretrained(const std::filesystem::path& folder,
                                                 const PretrainedOptions& options) {
  const auto model = described(folder, options);
  const bool is_deferred = paging::defers_construction();
  auto module = construct_deferred([&] { return made(model); });
  const auto missing = load_weights(*module, model.architecture,
                                    {.folder = folder,
                                     .dtype = options.dtype,
                                     .may_replace_head = options.num_labels.has_value(),
                                     .keep_packed = options.keep_packed,
                                     .are_read_later = is_deferred});
  if (!missing.empty()) {
    log::warn("new weights, which the files in ", folder, " do not have: ", text::join(missing),
              ". They are random: train the model before you use it");
  }
  auto config = module->config();
  config.generation_json = generation_json_of(folder);
  module->set_config(std::move(config));
  module->eval();
  return module;
}

std::shared_ptr<PretrainedModel> from_config(const std::filesystem::path& path, const PretrainedOptions& options) {
  const auto model = described(path, options);
  auto module = made(model);
  convert(*module, options.dtype);
  return module;
}

}  // namespace hortator::models
