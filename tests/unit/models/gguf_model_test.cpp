// Models of the Llama family whose weights are GGUF files.
#include "cases.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/gguf_file.hpp"

using namespace hortator;
using test::ModelCase;
namespace fs = std::filesystem;

namespace {

/// The name of llama.cpp for a name of transformers.
std::string gguf_name(std::string name) {
  const std::vector<std::pair<std::string, std::string>> replaced = {{"model.embed_tokens.", "token_embd."},
                                                                     {"model.norm.", "output_norm."},
                                                                     {"lm_head.", "output."},
                                                                     {"model.layers.", "blk."},
                                                                     {"self_attn.q_proj", "attn_q"},
                                                                     {"self_attn.k_proj", "attn_k"},
                                                                     {"self_attn.v_proj", "attn_v"},
                                                                     {"self_attn.o_proj", "attn_output"},
                                                                     {"self_attn.q_norm", "attn_q_norm"},
                                                                     {"self_attn.k_norm", "attn_k_norm"},
                                                                     {"mlp.gate_proj", "ffn_gate"},
                                                                     {"mlp.up_proj", "ffn_up"},
                                                                     {"mlp.down_proj", "ffn_down"},
                                                                     {"post_attention_layernorm", "ffn_norm"},
                                                                     {"input_layernorm", "attn_norm"}};
  for (const auto& [from, to] : replaced) {
    if (const auto at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

/// The order of rows in which llama.cpp's converter stores queries and keys of Llama.
at::Tensor interleaved(const at::Tensor& rows, std::int64_t heads) {
  auto shape = rows.sizes().vec();
  const auto width = shape.front() / heads;
  shape.erase(shape.begin());
  std::vector<std::int64_t> split = {heads, 2, width / 2};
  split.insert(split.end(), shape.begin(), shape.end());
  return rows.reshape(split).transpose(1, 2).reshape(rows.sizes()).contiguous();
}

std::int64_t field(const std::string& json, const std::string& name) {
  const auto at = json.find("\"" + name + "\":");
  REQUIRE(at != std::string::npos);
  return std::stoll(json.substr(at + name.size() + 3));
}

}  // namespace

TEST_CASE("a model is loaded from a GGUF file") {
  std::size_t compared = 0;
  for (const auto& one : test::model_cases()) {
    const auto expected = models::from_pretrained(one.folder);
    const auto& config = expected->config();
    const bool is_llama = config.architecture.starts_with("Llama") || config.architecture.starts_with("Mistral");
    const bool is_qwen = config.architecture.starts_with("Qwen");
    if (!(is_llama || is_qwen) || !config.is_causal) continue;
    INFO(one.folder.string());
    const auto heads = field(config.json, "num_attention_heads"), key_heads = field(config.json, "num_key_value_heads");
    const std::string architecture = is_llama ? "llama" : config.architecture.starts_with("Qwen2") ? "qwen2" : "qwen3";
    test::GgufFile file;
    file.set("general.architecture", architecture);
    file.set(architecture + ".attention.head_count", static_cast<std::uint32_t>(heads));
    file.set(architecture + ".attention.head_count_kv", static_cast<std::uint32_t>(key_heads));
    for (const auto& parameter : expected->named_parameters()) {
      const auto& name = parameter.key();
      auto value = parameter.value().detach();
      if (is_llama && name.find("q_proj") != std::string::npos) value = interleaved(value, heads);
      if (is_llama && name.find("k_proj") != std::string::npos) value = interleaved(value, key_heads);
      file.add(gguf_name(name), value);
    }
    const test::OwnFolder folder("gguf-model");
    fs::create_directories(folder.path);
    fs::copy_file(one.folder / "config.json", folder.path / "config.json");
    file.write(folder.path / "model-f32.gguf");
    const auto model = models::from_pretrained(folder.path);
    for (const auto& parameter : model->named_parameters()) {
      INFO(parameter.key());
      CHECK(at::equal(parameter.value(), expected->named_parameters()[parameter.key()]));
    }
    CHECK(at::equal(model->forward(one.inputs()).logits, expected->forward(one.inputs()).logits));
    ++compared;
  }
  CHECK(compared > 0);
}
