// Folders of torch.distributed.checkpoint: what Python wrote on several ranks is read bit for bit.
// tests/tools/distributed-folders.py makes them.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "formats/file/file_error.hpp"
#include "formats/torch/distributed/metadata.hpp"
#include "formats/torch/pickle/machine.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const fs::path cases = DISTRIBUTED_CASES;

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

fs::path copy_of_case(const std::string& name) {
  const auto copy = fs::absolute("copy_of_" + name);
  fs::remove_all(copy);
  fs::copy(cases / name, copy);
  return copy;
}

void replace_in(const fs::path& file, const std::string& old, const std::string& other) {
  auto content = test::content_of(file);
  const auto at = content.find(old);
  REQUIRE(at != std::string::npos);
  REQUIRE(old.size() == other.size());
  content.replace(at, old.size(), other);
  std::ofstream(file, std::ios::binary) << content;
}

}  // namespace

TEST_CASE("tensors in parts are what Python put together") {
  const auto name = GENERATE(std::string("fsdp"), std::string("parts"));
  const auto source = weights::open_weights(cases / name);
  const auto whole = weights::open_weights(cases / (name + ".safetensors"));
  CHECK(sorted(source->names()) == sorted(whole->names()));
  for (const auto& tensor : whole->names()) {
    INFO(tensor);
    REQUIRE(source->spec(tensor) == whole->spec(tensor));
    CHECK(source->tensor(tensor).equal(whole->tensor(tensor)));
  }
  source->require_unchanged();
}

TEST_CASE("any range of a tensor in parts is read") {
  const auto source = weights::open_weights(cases / "parts");
  for (const auto* name : {"a.columns", "a.boxes", "b.rows"}) {
    const auto whole = weights::open_weights(cases / "parts.safetensors")->tensor(name).flatten();
    const auto elements = whole.numel();
    for (std::int64_t begin = 0; begin <= elements; ++begin) {
      for (auto end = begin; end <= elements; ++end) {
        auto range = at::empty({end - begin}, whole.scalar_type());
        source->read(name, {begin, end}, static_cast<std::byte*>(range.mutable_data_ptr()));
        INFO(name << " from " << begin << " to " << end);
        REQUIRE(range.equal(whole.slice(0, begin, end)));
      }
    }
  }
}

TEST_CASE("a damaged folder of parts is refused with the file and the reason") {
  const auto folder = copy_of_case("fsdp");
  SECTION("a file is missing") {
    fs::remove(folder / "__1_0.distcp");
    CHECK_THROWS_WITH(weights::open_weights(folder), ContainsSubstring("__1_0.distcp"));
  }
  SECTION("a file is truncated") {
    fs::resize_file(folder / "__1_0.distcp", 1000);
    const auto source = weights::open_weights(folder);
    CHECK_THROWS_WITH(source->tensor("model.weight"),
                      ContainsSubstring("__1_0.distcp") && ContainsSubstring("copy the folder again"));
  }
  SECTION("a file of another save") {
    fs::copy_file(cases / "parts" / "__3_0.distcp", folder / "__1_0.distcp", fs::copy_options::overwrite_existing);
    const auto source = weights::open_weights(folder);
    CHECK_THROWS_AS(source->tensor("model.weight"), formats::FileError);
  }
  SECTION("the name of a file leads out of the folder") {
    replace_in(folder / ".metadata", "__0_0.distcp", "../.0.distcp");
    CHECK_THROWS_WITH(weights::open_weights(folder), ContainsSubstring("not in its folder"));
  }
  SECTION("a part is outside of its tensor") {
    replace_in(folder / ".metadata", std::string("K\4K\5\x86", 5), std::string("K\4K\6\x86", 5));
    CHECK_THROWS_WITH(weights::open_weights(folder), ContainsSubstring("outside of it"));
  }
  SECTION("a part is missing") {
    replace_in(folder / ".metadata", std::string("K\4K\5\x86", 5), std::string("K\3K\5\x86", 5));
    CHECK_THROWS_WITH(weights::open_weights(folder), ContainsSubstring("do not fill it exactly"));
  }
}

TEST_CASE("metadata truncated anywhere are refused") {
  const auto whole = test::content_of(cases / "parts" / ".metadata");
  REQUIRE(formats::parse_distributed_metadata(whole).tensors.size() == 6);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    INFO(bytes);
    CHECK_THROWS_AS(formats::parse_distributed_metadata(std::string_view(whole).substr(0, bytes)),
                    formats::PickleFault);
  }
}
