// Matrices of GGUF files that keep their bits.
#include <ATen/ATen.h>

#include <filesystem>
#include <hortator/models/pretrained.hpp>
#include <hortator/quantise.hpp>
#include <map>
#include <random>

#include "interception/weight_operators.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/gguf_file.hpp"

using namespace hortator;

namespace {

struct BlockType {
  std::uint32_t code;
  std::size_t halves, numbers;  ///< bytes of 2 that are factors, and bytes of 32 numbers
};
const std::map<std::string, BlockType> block_types = {{"Q8_0", {8, 1, 32}}, {"Q4_0", {2, 1, 16}}, {"Q4_1", {3, 2, 16}}};

/// Random blocks with small factors of 16 bits.
std::string blocks(const BlockType& type, std::uint64_t elements, std::mt19937& random) {
  std::string bytes;
  for (std::uint64_t i = 0; i < elements / 32; ++i) {
    for (std::size_t half = 0; half < type.halves; ++half) {
      const auto bits = static_cast<std::uint16_t>(0x1800U + random() % 0x800U + (half == 1 ? 0x8C00U : 0));
      bytes += static_cast<char>(bits & 0xFFU);
      bytes += static_cast<char>(bits >> 8U);
    }
    for (std::size_t number = 0; number < type.numbers; ++number) bytes += static_cast<char>(random() % 256);
  }
  return bytes;
}

void write_llama(const std::filesystem::path& file, const BlockType& type) {
  constexpr std::uint64_t width = 64, inner = 160, vocabulary = 96;
  std::mt19937 random(3);
  test::GgufFile gguf;
  gguf.set("general.architecture", "llama");
  for (const auto& [name, value] : std::map<std::string, int>{{"attention.head_count", 4},
                                                              {"attention.head_count_kv", 2},
                                                              {"embedding_length", width},
                                                              {"feed_forward_length", inner},
                                                              {"block_count", 2},
                                                              {"context_length", 64}})
    gguf.set("llama." + name, value);
  gguf.set("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  const auto add = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns, const BlockType& of) {
    gguf.add(name + ".weight", {rows, columns}, of.code, blocks(of, rows * columns, random));
  };
  const auto add_norm = [&](const std::string& name) { gguf.add(name + ".weight", at::ones({width})); };
  add("token_embd", vocabulary, width, block_types.at("Q8_0"));
  add_norm("output_norm");
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    add(layer + "attn_q", width, width, type);
    add(layer + "attn_k", width / 2, width, type);
    add(layer + "attn_v", width / 2, width, type);
    add(layer + "attn_output", width, width, type);
    add(layer + "ffn_gate", inner, width, type);
    add(layer + "ffn_up", inner, width, type);
    add(layer + "ffn_down", width, inner, type);
    add_norm(layer + "attn_norm");
    add_norm(layer + "ffn_norm");
  }
  gguf.write(file);
}

}  // namespace

TEST_CASE("matrices of a GGUF file keep their bits, and have the values that they have in float32") {
  const test::OwnFolder folder("packed-gguf");
  std::filesystem::create_directories(folder.path);
  const at::NoGradGuard no_grad;
  for (const auto& [name, type] : block_types) {
    INFO(name);
    const auto file = folder.path / (name + ".gguf");
    write_llama(file, type);
    const auto packed = models::from_pretrained(file, {.keep_packed = true}), plain = models::from_pretrained(file);
    const auto own = packed->named_parameters(), expected = plain->named_parameters();
    for (const auto& item : own) {
      INFO(item.key());
      CHECK(interception::is_packed(item.value()) == (item.value().dim() == 2));
      CHECK((item.key().find("norm") != std::string::npos) != interception::is_packed(item.value()));
    }
    CHECK(own["model.layers.0.mlp.up_proj.weight"].nbytes() * (name == "Q8_0" ? 7 : 12) / 2 <
          expected["model.layers.0.mlp.up_proj.weight"].nbytes());
    for (const std::int64_t length : {1, 3, 20}) {  // with the kernels for few rows, and with unpacked rows
      const auto ids = (at::arange(length) * 7 + 5).remainder(96).view({1, length});
      const auto logits = packed->forward({.input_ids = ids}).logits,
                 wanted = plain->forward({.input_ids = ids}).logits;
      CHECK(at::allclose(logits, wanted, 1e-3, 1e-4 * wanted.abs().max().item<double>()));
    }
    // rows of queries are not in the order of the file
    const auto saved = folder.path / name;
    models::save_pretrained(*packed, saved);
    const auto again = models::from_pretrained(saved);
    for (const auto& item : again->named_parameters()) CHECK(at::equal(item.value(), own[item.key()]));
    const auto half = models::from_pretrained(file, {.dtype = at::kBFloat16, .keep_packed = true});
    CHECK(half->forward({.input_ids = at::arange(4).view({1, 4})}).logits.scalar_type() == at::kBFloat16);
  }
}
