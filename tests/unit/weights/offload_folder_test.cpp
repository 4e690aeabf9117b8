// Folders that Accelerate's offload_state_dict wrote: tests/unit/weights/offload is one, with bfloat16, a scalar, and
// an entry that names a safetensors file.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <filesystem>
#include <fstream>

#include "formats/file/file_error.hpp"
#include "support/catch.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

fs::path copy_of_fixture(const std::string& name) {
  const auto folder = fs::absolute("offload_" + name);
  fs::remove_all(folder);
  fs::copy(WEIGHTS_TEST_DATA "/offload", folder);
  return folder;
}

void write_index_of(const fs::path& folder, const std::string& text) { std::ofstream(folder / "index.json") << text; }

}  // namespace

TEST_CASE("the tensors of an offload folder are read with their types and shapes") {
  const auto source = weights::open_weights(WEIGHTS_TEST_DATA "/offload");
  CHECK(source->names().size() == 6);
  CHECK(at::equal(source->tensor("linear.weight"), at::arange(6).to(at::kFloat).view({2, 3}) / 4));
  CHECK(source->tensor("linear.bias").scalar_type() == at::kBFloat16);
  CHECK(at::equal(source->tensor("linear.bias"), at::tensor({0.5, -1.5}).to(at::kBFloat16)));
  CHECK(source->tensor("steps").dim() == 0);
  CHECK(source->tensor("steps").item<std::int64_t>() == 7);
  CHECK(at::equal(source->tensor("mask"), at::tensor({1, 0, 1}).to(at::kBool)));
  CHECK(at::equal(source->tensor("half"), at::tensor({0.25, 3.0}).to(at::kHalf)));
  CHECK(at::equal(source->tensor("norm.weight"), at::full({2, 2}, 0.125, at::kFloat)));
  float third = 0;
  source->read("linear.weight", {2, 3}, reinterpret_cast<std::byte*>(&third));
  CHECK(third == 0.5F);
  CHECK(weights::holds_weights(WEIGHTS_TEST_DATA "/offload"));
  CHECK_THROWS_WITH(source->spec("linear.wieght"), ContainsSubstring("did you mean 'linear.weight'?"));
}

TEST_CASE("a file of an offload folder that changes while it is in use is found") {
  const auto folder = copy_of_fixture("changing");
  const auto file = folder / "linear.weight.dat";
  const auto source = weights::open_weights(folder);
  CHECK_NOTHROW(source->require_unchanged());
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));  // rewritten with as many bytes
  float first = 0;
  CHECK_THROWS_WITH(source->read("linear.weight", {0, 1}, reinterpret_cast<std::byte*>(&first)),
                    ContainsSubstring("was changed while it was in use"));
  CHECK_THROWS_WITH(source->require_unchanged(), ContainsSubstring("was changed while it was in use"));
  fs::remove_all(folder);
}

TEST_CASE("damaged offload folders are refused with the file") {
  const auto folder = copy_of_fixture("damaged");
  fs::resize_file(folder / "linear.weight.dat", 20);
  CHECK_THROWS_WITH(weights::open_weights(folder),
                    ContainsSubstring("has 20 bytes") && ContainsSubstring("float32 [2, 3] has 24"));
  fs::remove(folder / "linear.weight.dat");
  CHECK_THROWS_AS(weights::open_weights(folder), Error);
  for (const auto* text : {"[1]", "{", R"({"a/../b": {"dtype": "float32", "shape": [1]}})", R"({"half": 3})"}) {
    write_index_of(folder, text);
    CHECK_THROWS_WITH(weights::open_weights(folder), ContainsSubstring("not a valid index of offloaded weights"));
  }
  write_index_of(folder, R"({"half": {"dtype": "object", "shape": [2]}})");
  CHECK_THROWS_WITH(weights::open_weights(folder), ContainsSubstring("'half' has no known dtype"));
  write_index_of(folder, R"({"half": {"dtype": "float16", "shape": [-2]}})");
  CHECK_THROWS_WITH(weights::open_weights(folder), ContainsSubstring("'half' has an invalid shape"));
  fs::remove_all(folder);
}
