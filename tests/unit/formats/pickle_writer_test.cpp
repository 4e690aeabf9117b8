#include "formats/torch/pickle/writer.hpp"

#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>

#include "formats/file/file_error.hpp"
#include "formats/torch/pickle/file.hpp"
#include "formats/torch/pickle/plan.hpp"
#include "formats/torch/pickle/types.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::formats;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> type_names = {
    "float64",         "float32",        "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
    "float8_e5m2fnuz", "float8_e8m0fnu", "uint8",   "int8",     "int16",         "int32",       "int64",
    "uint16",          "uint32",         "uint64",  "bool",     "complex32",     "complex64",   "complex128"};

/// What torch_reads.py expects: a tensor of each type, odd shapes, tied tensors.
NamedTensors everything() {
  NamedTensors tensors;
  for (const auto& name : type_names)
    tensors.emplace_back(name, at::arange(6, at::kFloat).view({2, 3}).to(*torch_type_named("torch." + name)));
  const auto matrix = at::arange(12, at::kFloat).view({3, 4});
  const auto tied = at::arange(4, at::kFloat);
  tensors.emplace_back("scalar", at::scalar_tensor(2.5));
  tensors.emplace_back("empty", at::empty({0, 3}));
  tensors.emplace_back("transposed", matrix.t());
  tensors.emplace_back("columns", (matrix + 0).narrow(1, 1, 2));
  tensors.emplace_back("expanded", at::full({1}, 7.0F).expand({2, 3}));
  tensors.emplace_back("large.number", at::full({1}, std::int64_t{1} << 40, at::kLong));
  tensors.emplace_back("embedding.weight", tied);
  tensors.emplace_back("head.weight", tied.view({2, 2}));
  tensors.emplace_back("r\u00e9sum\u00e9", at::ones({300}, at::kHalf));
  return tensors;
}

bool is_same(const at::Tensor& a, const at::Tensor& b) {
  const auto bytes = [](const at::Tensor& tensor) {
    const auto flat = tensor.contiguous();
    return std::string(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes());
  };
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && bytes(a) == bytes(b);
}

}  // namespace

TEST_CASE("tensors of every type, odd shapes and tied tensors are written and read", "[everything]") {
  const auto tensors = everything();
  std::int64_t reported = 0;
  write_pickle("written.pt", tensors, [&](std::int64_t bytes) { reported += bytes; });
  const PickleFile file("written.pt");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
    INFO(name);
    CHECK(is_same(file.get(name), tensor));
  }
  CHECK(file.names() == names);
  std::int64_t planned = 0;
  for (const auto& storage : plan_tied_pickle(tensors).plan.storages) planned += storage.bytes();
  CHECK(reported == planned);
  CHECK(file.tensor("embedding.weight").storage == file.tensor("head.weight").storage);
  CHECK(file.get("transposed").strides() == at::IntArrayRef({1, 4}));
  CHECK(file.view("float64").data_ptr() == file.view("float64").data_ptr());  // aligned in the file
}

TEST_CASE("only the used part of a storage is written, and only overlapping tensors are tied") {
  const auto pool = at::arange(1000, at::kFloat);
  const auto plan = plan_tied_pickle({{"a", pool.narrow(0, 0, 10)},
                                      {"b", pool.narrow(0, 10, 10)},
                                      {"c", pool.narrow(0, 15, 10)},
                                      {"column", pool.view({100, 10}).select(1, 9).narrow(0, 50, 50)}})
                        .plan;
  REQUIRE(plan.storages.size() == 3);
  CHECK(plan.storages[0].elements == 10);
  CHECK(plan.storages[1].elements == 15);
  CHECK(plan.storages[2].elements == 50);
  CHECK(plan.tensors[2].second.storage == "1");
  CHECK(plan.tensors[2].second.first == 5);
  CHECK(plan.tensors[3].second.strides == std::vector<std::int64_t>{1});
  // Views of one memory with two types become two storages, since a storage in a file has one type.
  CHECK(plan_tied_pickle({{"whole", pool}, {"bits", pool.view(at::kInt)}}).storages.size() == 2);
}

TEST_CASE("large tensors are written piece by piece, whatever their strides") {
  const auto large = at::arange(3'000'000, at::kInt).view({1000, 3000});
  write_pickle("large.pt",
               {{"t", large.t()}, {"every_other", at::arange(6'000'000, at::kInt).slice(0, 0, 6'000'000, 2)}});
  const PickleFile file("large.pt");
  CHECK(at::equal(file.get("t"), large.t()));
  CHECK(at::equal(file.get_rows("t", 5, 2), large.t().narrow(0, 5, 2)));
  CHECK(file.get("every_other")[2'999'999].item<int>() == 5'999'998);
  CHECK(file.tensor("every_other").reach() == 3'000'000);
}

TEST_CASE("requested tensors are held one at a time") {
  const NamedSpecs specs = {{"a", {.type = at::kHalf, .shape = {2, 3}}}, {"b", {.type = at::kLong, .shape = {}}}};
  std::vector<std::string> asked;
  write_pickle("lazy.pt", specs, [&](const std::string& name) {
    asked.push_back(name);
    return name == "a" ? at::ones({3, 2}, at::kHalf).t() : at::scalar_tensor(7, at::kLong);
  });
  const PickleFile file("lazy.pt");
  CHECK(asked == std::vector<std::string>{"a", "b"});
  CHECK(at::equal(file.get("a"), at::ones({2, 3}, at::kHalf)));
  CHECK(file.get("b").item<std::int64_t>() == 7);
}

TEST_CASE("invalid tensors are refused before anything is written, and an older file stays") {
  std::ofstream("kept.pt") << "older";
  const auto one = at::ones({1});
  CHECK_THROWS_WITH(write_pickle("kept.pt", {{"a", one}, {"a", one}}),
                    ContainsSubstring("'a'") && ContainsSubstring("twice"));
  CHECK_THROWS_WITH(write_pickle("kept.pt", {{"a", at::Tensor()}}), ContainsSubstring("undefined"));
  CHECK_THROWS_WITH(write_pickle("kept.pt", {{"a", at::eye(2).to_sparse()}}), ContainsSubstring("not dense"));
  CHECK_THROWS_AS(write_pickle("no/such/folder.pt", {{"a", one}}), FileError);
  CHECK(fs::file_size("kept.pt") == 5);
  write_pickle("kept.pt", {{"a", one}});
  CHECK(PickleFile("kept.pt").names().size() == 1);
  for (const auto& entry : fs::directory_iterator("."))
    CHECK(entry.path().string().find("kept.pt.new-") == std::string::npos);
}
