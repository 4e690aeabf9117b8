#include "weights/gguf_names.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::weights {
namespace {

using formats::GgufFault;
using formats::GgufHeader;

struct NamePair {
  std::string_view file, checkpoint;
};

constexpr std::array whole_names = {NamePair{"token_embd", "model.embed_tokens"}, NamePair{"output_norm", "model.norm"},
                                    NamePair{"output", "lm_head"}};

constexpr std::array layer_names = {
    NamePair{"attn_norm", "input_layernorm"},    NamePair{"attn_q", "self_attn.q_proj"},
    NamePair{"attn_k", "self_attn.k_proj"},      NamePair{"attn_v", "self_attn.v_proj"},
    NamePair{"attn_output", "self_attn.o_proj"}, NamePair{"attn_q_norm", "self_attn.q_norm"},
    NamePair{"attn_k_norm", "self_attn.k_norm"}, NamePair{"ffn_norm", "post_attention_layernorm"},
    NamePair{"ffn_gate", "mlp.gate_proj"},       NamePair{"ffn_up", "mlp.up_proj"},
    NamePair{"ffn_down", "mlp.down_proj"}};

template <typename Names>
std::string_view checkpoint_name(const Names& names, std::string_view file) {
  const auto* const found = std::ranges::find(names, file, &NamePair::file);
  return found == names.end() ? std::string_view() : found->checkpoint;
}

/// "blk.3.attn_q.weight" in parts.
struct TensorName {
  std::string_view layer, module, kind;
};

TensorName split_name(std::string_view name) {
  TensorName parts;
  const auto kind = name.rfind('.');
  if (kind != std::string_view::npos) parts.kind = name.substr(kind + 1), name = name.substr(0, kind);
  constexpr std::string_view block = "blk.";
  if (name.starts_with(block)) {
    name.remove_prefix(block.size());
    const auto dot = std::min(name.find('.'), name.size());
    parts.layer = name.substr(0, dot);
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  parts.module = name;
  return parts;
}

std::int64_t heads_of(const GgufHeader& header, bool is_key) {
  const auto heads = gguf_number(header, "attention.head_count");
  const auto key_heads = is_key ? gguf_number(header, "attention.head_count_kv") : std::nullopt;
  if (is_key && !key_heads && header.metadata.contains(gguf_architecture(header) + ".attention.head_count_kv"))
    throw GgufFault("llama.attention.head_count_kv is not one number, so the order of rows is unknown");
  constexpr std::uint64_t most = 1 << 16;
  if (heads && *heads > 0 && key_heads.value_or(*heads) > 0 && key_heads.value_or(*heads) <= most)
    return static_cast<std::int64_t>(key_heads.value_or(*heads));
  throw GgufFault("its metadata has no number llama.attention.head_count, so the order of rows is unknown");
}

}  // namespace

std::string gguf_architecture(const GgufHeader& header) {
  const auto found = header.metadata.find("general.architecture");
  const auto* name = found == header.metadata.end() ? nullptr : std::get_if<std::string>(&found->second);
  return name != nullptr ? *name : "";
}

std::optional<std::uint64_t> gguf_number(const GgufHeader& header, const std::string& name) {
  const auto found = header.metadata.find(gguf_architecture(header) + "." + name);
  const auto* value = found == header.metadata.end() ? nullptr : std::get_if<std::uint64_t>(&found->second);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<GgufRole> gguf_role(const GgufHeader& header, const std::string& name) {
  const auto architecture = gguf_architecture(header);
  const bool is_llama = architecture == "llama";
  if (!is_llama && architecture != "qwen2" && architecture != "qwen3") return GgufRole{.name = name};
  if (name == "rope_freqs.weight") return {};  // factors of RoPE's scaling, which config.json describes
  const auto [layer, module, kind] = split_name(name);
  const auto known = layer.empty() ? checkpoint_name(whole_names, module) : checkpoint_name(layer_names, module);
  if (known.empty()) return GgufRole{.name = name};
  GgufRole role;
  role.name =
      layer.empty() ? text::concat(known, ".", kind) : text::concat("model.layers.", layer, ".", known, ".", kind);
  const bool is_rotated = is_llama && (module == "attn_q" || module == "attn_k");
  if (is_rotated) role.heads = heads_of(header, module == "attn_k");
  return role;
}

std::int64_t gguf_row(std::int64_t row, std::int64_t rows, std::int64_t heads) {
  if (heads == 0) return row;
  const auto width = rows / heads, half = width / 2;
  const auto head = row / width, within = row % width;
  return head * width + within % half * 2 + within / half;
}

}  // namespace hortator::weights
