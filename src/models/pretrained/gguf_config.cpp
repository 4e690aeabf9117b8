#include "models/pretrained/gguf_config.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <hortator/error.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "formats/gguf/file.hpp"
#include "weights/gguf_names.hpp"

namespace hortator::models {
namespace {

using formats::GgufHeader;

/// Reads the metadata of one file.
class GgufFields {
 public:
  GgufFields(const GgufHeader& header, const std::filesystem::path& file)
      : header_(header), file_(file), architecture_(weights::gguf_architecture(header)) {}

  const std::string& architecture() const { return architecture_; }

  std::uint64_t number(const std::string& name) const {
    if (const auto value = weights::gguf_number(header_, name)) return *value;
    refuse(text::concat("has no number ", text::quote(architecture_ + "." + name)));
  }
  double real(const std::string& name, double absent) const {
    const auto found = header_.metadata.find(architecture_ + "." + name);
    if (found == header_.metadata.end()) return absent;
    if (const auto* value = std::get_if<double>(&found->second)) return shortest(static_cast<float>(*value));
    if (const auto* value = std::get_if<std::uint64_t>(&found->second)) return static_cast<double>(*value);
    refuse(text::concat("has a value that is not a number: ", text::quote(architecture_ + "." + name)));
  }
  std::string text_of(const std::string& name) const {
    const auto found = header_.metadata.find(architecture_ + "." + name);
    const auto* value = found == header_.metadata.end() ? nullptr : std::get_if<std::string>(&found->second);
    return value == nullptr ? "" : *value;
  }
  /// A token of the tokenizer.
  std::optional<std::uint64_t> token(const std::string& name) const {
    const auto found = header_.metadata.find("tokenizer.ggml." + name);
    const auto* value = found == header_.metadata.end() ? nullptr : std::get_if<std::uint64_t>(&found->second);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  const formats::GgufTensor* tensor(const std::string& name) const {
    const auto found = std::ranges::find(header_.tensors, name, &formats::GgufTensor::name);
    return found == header_.tensors.end() ? nullptr : &*found;
  }

  [[noreturn]] void refuse(const std::string& fault) const {
    throw UsageError({.what = text::concat("The GGUF file ", file_, " ", fault),
                      .why = "there is no config.json, so its metadata describe the model",
                      .hint = "put the config.json of the original model beside it"});
  }

 private:
  /// The number that a person wrote: 1e-05 for the float nearest to it.
  static double shortest(float value) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    double number = value;
    std::from_chars(text.data(), end, number);
    return number;
  }

  const GgufHeader& header_;
  const std::filesystem::path& file_;
  std::string architecture_;
};

struct KnownArchitecture {
  const char *file, *name;
};
constexpr std::array known_files = {KnownArchitecture{"llama", "LlamaForCausalLM"},
                                    KnownArchitecture{"qwen2", "Qwen2ForCausalLM"},
                                    KnownArchitecture{"qwen3", "Qwen3ForCausalLM"}};

std::string model_name(const GgufFields& fields) {
  for (const auto& [file, name] : known_files)
    if (fields.architecture() == file) return name;
  fields.refuse(
      text::concat("has the architecture ", text::quote(fields.architecture()), ", expected llama, qwen2 or qwen3"));
}

void require_plain_rotation(const GgufFields& fields) {
  const auto scaling = fields.text_of("rope.scaling.type");
  // Without a type, llama.cpp scales linearly; rope.scale_linear is the old name of the factor.
  const auto factor = fields.real("rope.scaling.factor", fields.real("rope.scale_linear", 1));
  const bool has_factor = scaling.empty() && factor != 0 && factor != 1;
  const bool is_scaled =
      (!scaling.empty() && scaling != "none") || has_factor || fields.tensor("rope_freqs.weight") != nullptr;
  if (is_scaled) fields.refuse("scales RoPE");
}

}  // namespace

std::filesystem::path gguf_file_of(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path) && std::filesystem::exists(path / "config.json")) return {};
  return formats::gguf_file_at(path);
}

nlohmann::ordered_json gguf_config(const GgufHeader& header, const std::filesystem::path& file) {
  const GgufFields fields(header, file);
  const auto name = model_name(fields);
  require_plain_rotation(fields);
  const auto* embedding = fields.tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) fields.refuse("has no matrix 'token_embd.weight'");
  const auto heads = fields.number("attention.head_count");
  nlohmann::ordered_json config = {
      {"architectures", nlohmann::ordered_json::array({name})},
      {"model_type", fields.architecture()},
      {"vocab_size", static_cast<std::uint64_t>(embedding->shape.front())},
      {"hidden_size", fields.number("embedding_length")},
      {"intermediate_size", fields.number("feed_forward_length")},
      {"num_hidden_layers", fields.number("block_count")},
      {"num_attention_heads", heads},
      {"num_key_value_heads", weights::gguf_number(header, "attention.head_count_kv").value_or(heads)},
      {"max_position_embeddings", fields.number("context_length")},
      {"rms_norm_eps", fields.real("attention.layer_norm_rms_epsilon", 1e-5)},
      {"rope_theta", fields.real("rope.freq_base", 10000)},
      {"tie_word_embeddings", fields.tensor("output.weight") == nullptr},
  };
  for (const auto& [field, key] : {std::pair("bos_token_id", "bos_token_id"),
                                   {"eos_token_id", "eos_token_id"},
                                   {"pad_token_id", "padding_token_id"}})
    if (const auto token = fields.token(key)) config[field] = *token;
  if (const auto width = weights::gguf_number(header, "attention.key_length")) config["head_dim"] = *width;
  if (fields.architecture() == "llama") config["attention_bias"] = fields.tensor("blk.0.attn_q.bias") != nullptr;
  return config;
}

}  // namespace hortator::models
