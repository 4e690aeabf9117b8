#include "formats/safetensors/writer.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <numeric>

#include "mpi/collectives.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

const auto& world() {
  static const auto comm = mpi::Communicator::world();
  return comm;
}

/// A path that does not exist. @collective
fs::path fresh(const std::string& name) {
  mpi::barrier(world());
  if (world().rank() == 0) fs::remove(name);
  mpi::barrier(world());
  return fs::absolute(name);
}

std::map<std::string, formats::TensorSpec> specs_of(const std::map<std::string, at::Tensor>& tensors) {
  std::map<std::string, formats::TensorSpec> specs;
  for (const auto& [name, tensor] : tensors) specs.emplace(name, formats::spec_of(tensor));
  return specs;
}

formats::TensorSource source_of(const std::map<std::string, at::Tensor>& tensors) {
  return [&](const std::string& name) { return tensors.at(name); };
}

/// The tensors of tests/tools/python-weights.py.
std::map<std::string, at::Tensor> all_types() {
  std::map<std::string, at::Tensor> tensors;
  const auto numbers = at::arange(6).remainder(4).view({2, 3});
  for (const auto type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kUInt16, at::kInt, at::kUInt32, at::kLong,
                          at::kUInt64, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kComplexFloat,
                          at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kFloat8_e4m3fnuz, at::kFloat8_e5m2fnuz})
    tensors["a." + std::string(formats::type_name(type))] = numbers.to(type);
  tensors["scalar"] = at::zeros({}).fill_(2.5);
  tensors["empty"] = at::zeros({0, 3});
  tensors["na\u00efve \"name\"\n"] = at::zeros({1}, at::kBFloat16).fill_(1);
  return tensors;
}

std::string header_of(const formats::SafetensorsPlan& plan) { return plan.beginning.substr(8); }

}  // namespace

TEST_CASE("a file is byte for byte what the safetensors library writes") {
  const auto tensors = all_types();
  const auto path = fresh("types.safetensors");
  formats::write_safetensors(world(), {{.path = path, .plan = formats::plan_safetensors(specs_of(tensors))}},
                             source_of(tensors));
  CHECK(test::content_of(path) == test::content_of(fs::path(PYTHON_WEIGHTS) / "all_types.safetensors"));
}

TEST_CASE("headers are padded to a multiple of eight bytes") {
  CHECK(header_of(formats::plan_safetensors({}, {})) == "{}      ");
  CHECK(header_of(formats::plan_safetensors({})) == R"({"__metadata__":{"format":"pt"}})");
  for (std::size_t length = 1; length < 10; ++length) {
    const auto plan = formats::plan_safetensors({{std::string(length, 'a'), {.shape = {1}}}}, {});
    CHECK(plan.beginning.size() % 8 == 0);
    CHECK(plan.bytes == static_cast<std::int64_t>(plan.beginning.size()) + 4);
    CHECK(plan.tensors.front().offset + 4 == plan.bytes);
  }
}

TEST_CASE("four-bit elements are counted one by one in the file") {
  const auto plan = formats::plan_safetensors({{"f", {.type = at::ScalarType::Float4_e2m1fn_x2, .shape = {3, 4}}}}, {});
  CHECK_THAT(header_of(plan), ContainsSubstring(R"({"dtype":"F4","shape":[3,8],"data_offsets":[0,12]})"));
}

TEST_CASE("tensors that the format cannot hold are refused by name") {
  CHECK_THROWS_WITH(formats::plan_safetensors({{"z", {.type = at::kComplexDouble, .shape = {1}}}}),
                    ContainsSubstring("'z', complex128 [1]") && ContainsSubstring("no such type"));
  CHECK_THROWS_WITH(formats::plan_safetensors({{"f", {.type = at::ScalarType::Float4_e2m1fn_x2}}}),
                    ContainsSubstring("no such type"));
  CHECK_THROWS_WITH(formats::plan_safetensors({{"\xff", {}}}), ContainsSubstring("not UTF-8"));
  CHECK_THROWS_WITH(formats::plan_safetensors({{"__metadata__", {}}}), ContainsSubstring("cannot be called"));
}

TEST_CASE("all ranks write equal amounts, whatever the files and strides") {
  std::map<std::string, at::Tensor> tensors;
  tensors["large"] = at::arange(300'000).to(at::kFloat).view({500, 600}).t();
  tensors["rows"] = at::arange(200'000).view({400, 500}).slice(0, 3, 390, 3);
  tensors["bytes"] = at::arange(70'001).to(at::kByte);
  tensors["small"] = at::arange(3).to(at::kHalf);
  tensors["none"] = at::zeros({0});
  std::vector<formats::SafetensorsOutput> files;
  std::int64_t total = 0;
  const std::vector<std::vector<std::string>> groups = {{"large", "small"}, {"none"}, {"bytes", "rows"}};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::map<std::string, formats::TensorSpec> specs;
    for (const auto& name : groups[i]) {
      specs.emplace(name, formats::spec_of(tensors[name]));
      total += static_cast<std::int64_t>(tensors[name].nbytes());
    }
    files.push_back({.path = fresh("part" + std::to_string(i)), .plan = formats::plan_safetensors(specs)});
  }
  std::int64_t mine = 0;
  formats::write_safetensors(world(), files, source_of(tensors), [&](std::int64_t bytes) { mine += bytes; });
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const SafetensorsFile file(files[i].path);
    for (const auto& name : groups[i]) CHECK(at::equal(file.get(name), tensors[name]));
  }
  const auto shares = mpi::all_gather(world(), mine);
  CHECK(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) == total);
  const auto [min, max] = std::ranges::minmax(shares);
  CHECK(max - min <= 2 * 4096);
}

TEST_CASE("ranks write their own slices next to whole tensors") {
  const int ranks = world().size();
  std::map<std::string, at::Tensor> tensors;
  for (int i = 0; i < 12; ++i)
    tensors["t" + std::to_string(100 + i)] =
        (at::arange(1 + i * i * 7) + 1000 * i + 5).to(i < 10 ? at::kHalf : at::kFloat);
  tensors["whole"] = at::arange(50'000).to(at::kFloat);
  // The two bytes of t100 that the first rank has are between those that the last one writes.
  const auto part_of = [&](const std::string& name, int rank) -> std::optional<formats::TensorSlice> {
    if (name == "whole") return {};
    const auto& tensor = tensors.at(name);
    auto mine = core::balanced(tensor.numel(), ranks, rank);
    if (name == "t100") mine = {0, rank == 0 ? 1 : 0};
    if (name == "t101") mine = {0, rank == ranks - 1 ? tensor.numel() : 0};
    return formats::TensorSlice{.elements = mine, .values = tensor.narrow(0, mine.begin, mine.size()).clone()};
  };
  const auto path = fresh("parts.safetensors");
  const auto whole_alone = [&](const std::string& name) {
    CHECK(name == "whole");
    return tensors.at(name);
  };
  formats::write_safetensors(world(), {{.path = path, .plan = formats::plan_safetensors(specs_of(tensors))}},
                             whole_alone, {}, [&](const std::string& name) { return part_of(name, world().rank()); });
  const SafetensorsFile file(path);
  for (const auto& [name, tensor] : tensors) CHECK(at::equal(file.get(name), tensor));
}

TEST_CASE("a missing or different tensor on one rank is an error on all") {
  std::map<std::string, at::Tensor> tensors = {{"a", at::zeros({100'000})}};
  const auto plan = formats::plan_safetensors(specs_of(tensors));
  const bool is_last = world().rank() == world().size() - 1;
  if (is_last) tensors["a"] = at::zeros({3});
  CHECK_THROWS_WITH(formats::write_safetensors(world(), {{.path = fresh("other"), .plan = plan}}, source_of(tensors)),
                    ContainsSubstring("'a'") && ContainsSubstring("float32 [3]"));
  CHECK_THROWS_WITH(formats::write_safetensors(world(), {{.path = "no/such/folder", .plan = plan}}, source_of(tensors)),
                    ContainsSubstring("no/such/folder"));
  fresh("other");
}
