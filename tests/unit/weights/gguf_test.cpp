// GGUF files, whose values are compared with those of llama.cpp's Python package (gguf_oracle.py).
#include <ATen/ATen.h>

#include <cstdlib>
#include <filesystem>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/error.hpp>

#include "formats/file/file_error.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/gguf_file.hpp"
#include "weights/filling.hpp"
#include "weights/gguf_names.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
using test::GgufFile;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t f32 = 0, q4_0 = 2, q5_0 = 6;

/// The stored case, or that of the folder HORTATOR_GGUF_CASE.
fs::path types_folder() {
  const auto* other = std::getenv("HORTATOR_GGUF_CASE");
  return other != nullptr ? other : GGUF_CASE;
}

/// A file of this test.
class OwnFile {
 public:
  explicit OwnFile(const GgufFile& file) : OwnFile(file.bytes()) {}
  explicit OwnFile(const std::string& bytes) : folder_("gguf"), path(folder_.path / "weights.gguf") {
    fs::create_directories(folder_.path);
    std::ofstream(path, std::ios::binary) << bytes;
  }

 private:
  test::OwnFolder folder_;

 public:
  const fs::path path;
};

std::string fault_of(const std::string& bytes) {
  const OwnFile file(bytes);
  try {
    const auto source = weights::open_weights(file.path);
    for (const auto& name : source->names()) static_cast<void>(source->spec(name));
    return "none";
  } catch (const formats::FileError& error) {
    return error.what();
  }
}
std::string fault_of(const GgufFile& file) { return fault_of(file.bytes()); }

std::string floats(int count) { return std::string(static_cast<std::size_t>(count) * 4, '\1'); }

}  // namespace

TEST_CASE("values of each GGUF type are those of llama.cpp", "[gguf-types]") {
  const auto source = weights::open_weights(types_folder() / "types.gguf");
  const SafetensorsFile expected(types_folder() / "types.safetensors");
  CHECK(source->names() == std::vector<std::string>{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q4_k", "q6_k"});
  for (const auto& name : source->names()) {
    INFO(name);
    const auto values = source->tensor(name);
    const auto wanted = name == "f16" ? at::kHalf : name == "bf16" ? at::kBFloat16 : at::kFloat;
    CHECK(values.scalar_type() == wanted);
    CHECK(source->spec(name).shape == expected.info(name).shape);
    CHECK(at::equal(values.to(at::kFloat), expected.get(name)));
    CHECK(source->span(name).has_value() == (name == "f32" || name == "f16" || name == "bf16"));
  }
}

TEST_CASE("a range of a GGUF tensor may begin and end within a block", "[gguf-types]") {
  const auto source = weights::open_weights(types_folder() / "types.gguf");
  const SafetensorsFile expected(types_folder() / "types.safetensors");
  for (const auto* name : {"f32", "q8_0", "q4_k", "q6_k"}) {
    INFO(name);
    const auto whole = expected.get(name).flatten();
    for (const auto& range :
         {core::Range{0, 1}, core::Range{5, 40}, core::Range{255, 257}, core::Range{500, 1536}, core::Range{7, 7}}) {
      const auto part = at::empty({range.size()});
      source->read(name, range, static_cast<std::byte*>(part.mutable_data_ptr()));
      CHECK(at::equal(part, whole.slice(0, range.begin, range.end)));
    }
  }
}

TEST_CASE("quantised GGUF tensors are converted to the type that is wanted", "[gguf-types]") {
  const auto source = weights::open_weights(types_folder() / "types.gguf");
  const SafetensorsFile expected(types_folder() / "types.safetensors");
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto target = at::zeros({3, 512}, type);
    weights::fill(*source, {{.stored = "q4_1", .tensor = target}});
    CHECK(at::equal(target, expected.get("q4_1").to(type)));
  }
}

TEST_CASE("names and rows of llama.cpp's files become those of the checkpoints") {
  formats::GgufHeader header;
  header.metadata["general.architecture"] = std::string("llama");
  header.metadata["llama.attention.head_count"] = std::uint64_t{6};
  header.metadata["llama.attention.head_count_kv"] = std::uint64_t{3};
  const auto role = [&](const std::string& name) { return weights::gguf_role(header, name).value(); };
  CHECK(role("token_embd.weight").name == "model.embed_tokens.weight");
  CHECK(role("output_norm.weight").name == "model.norm.weight");
  CHECK(role("output.weight").name == "lm_head.weight");
  CHECK(role("blk.12.attn_q.bias").name == "model.layers.12.self_attn.q_proj.bias");
  CHECK(role("blk.12.attn_q.bias").heads == 6);
  CHECK(role("blk.0.attn_k.weight").heads == 3);
  CHECK(role("blk.0.attn_v.weight").heads == 0);
  CHECK(role("blk.0.ffn_down.weight").name == "model.layers.0.mlp.down_proj.weight");
  CHECK(role("blk.0.something.weight").name == "blk.0.something.weight");
  CHECK_FALSE(weights::gguf_role(header, "rope_freqs.weight"));
  header.metadata["general.architecture"] = std::string("qwen3");
  CHECK(role("blk.0.attn_q.weight").heads == 0);
  CHECK(role("blk.0.attn_q_norm.weight").name == "model.layers.0.self_attn.q_norm.weight");
  header.metadata["general.architecture"] = std::string("other");
  CHECK(role("blk.0.attn_q.weight").name == "blk.0.attn_q.weight");

  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < 12; ++row) rows.push_back(weights::gguf_row(row, 12, 2));
  CHECK(rows == std::vector<std::int64_t>{0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11});
}

TEST_CASE("rows of queries and keys are put back into order, from any place") {
  const auto checkpoint = at::randn({8, 6});
  // As llama.cpp's converter: the two halves of each head alternate.
  const auto stored = checkpoint.view({2, 2, 2, 6}).transpose(1, 2).reshape({8, 6});
  GgufFile file;
  file.set("general.architecture", "llama");
  file.set("llama.attention.head_count", 2);
  file.add("blk.0.attn_q.weight", stored);
  const OwnFile own(file);
  const auto source = weights::open_weights(own.path);
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  CHECK_FALSE(at::equal(stored, checkpoint));
  CHECK(at::equal(source->tensor(name), checkpoint));
  CHECK_FALSE(source->span(name));
  for (std::int64_t begin = 0; begin < 48; begin += 5) {
    const auto part = at::empty({48 - begin});
    source->read(name, {begin, 48}, static_cast<std::byte*>(part.mutable_data_ptr()));
    CHECK(at::equal(part, checkpoint.flatten().slice(0, begin)));
  }
}

TEST_CASE("a folder may have one GGUF file as its weights") {
  GgufFile file;
  file.add("a", at::ones({2}));
  const OwnFile own(file);
  CHECK(weights::holds_weights(own.path.parent_path()));
  CHECK(weights::open_weights(own.path.parent_path())->path() == own.path);
  file.write(own.path.parent_path() / "another.gguf");
  CHECK_THROWS_WITH(weights::open_weights(own.path.parent_path()), ContainsSubstring("several models"));
}

TEST_CASE("a damaged GGUF file is reported with the reason") {
  CHECK_THAT(fault_of("GGUX____"),
             ContainsSubstring("weights.gguf\" is not a valid GGUF file") && ContainsSubstring("letters GGUF"));
  CHECK_THAT(fault_of(""), ContainsSubstring("letters GGUF"));
  GgufFile good;
  good.set("general.architecture", "test");
  good.add("a", {4}, f32, floats(4));
  CHECK(fault_of(good) == "none");
  for (std::size_t bytes = 0; bytes < good.bytes().size(); ++bytes) {
    INFO(bytes);
    CHECK_THAT(fault_of(good.bytes().substr(0, bytes)), ContainsSubstring("not a valid GGUF file"));
  }
  auto file = good;
  file.version = 1;
  CHECK_THAT(fault_of(file), ContainsSubstring("version 1, expected 2 or 3"));
  file = good;
  file.set("general.architecture", "test");
  CHECK_THAT(fault_of(file), ContainsSubstring("one name twice"));
  file = good;
  file.set("general.alignment", 24);
  CHECK_THAT(fault_of(file), ContainsSubstring("general.alignment"));
  file = good;
  file.add("a", {4}, f32, floats(4));
  CHECK_THAT(fault_of(file), ContainsSubstring("\"a\" is there twice"));
  file = good;
  file.add_at("b", {2}, f32, 0);
  CHECK_THAT(fault_of(file), ContainsSubstring("within another tensor"));
  file = good;
  file.add_at("b", {2}, f32, 1 << 20);
  CHECK_THAT(fault_of(file), ContainsSubstring("end of the file"));
  file = good;
  file.add_at("b", {2, std::uint64_t{1} << 62}, f32, 32);
  CHECK_THAT(fault_of(file), ContainsSubstring("impossible shape"));
  file = good;
  file.add("b", {2, 16}, q4_0, floats(9));
  CHECK_THAT(fault_of(file), ContainsSubstring("rows in blocks of 32"));
  file = good;
  file.add("b", {32}, q5_0, floats(9));
  CHECK_THAT(fault_of(file), ContainsSubstring("GGUF's type 6, which cannot be read") && ContainsSubstring("Q4_K"));
}

TEST_CASE("a GGUF file of the Llama family without the number of heads is refused") {
  GgufFile file;
  file.set("general.architecture", "llama");
  file.add("blk.0.attn_q.weight", at::ones({8, 2}));
  CHECK_THAT(fault_of(file), ContainsSubstring("llama.attention.head_count"));
  file.set("llama.attention.head_count", 3);
  CHECK_THAT(fault_of(file), ContainsSubstring("8 rows for 3 heads"));
}
