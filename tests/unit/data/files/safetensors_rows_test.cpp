#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

std::filesystem::path make_safetensors(const std::string& name) {
  const std::string header =
      R"({"x":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},"y":{"dtype":"I64","shape":[3],"data_offsets":[24,48]},)"
      R"("more":{"dtype":"U8","shape":[2],"data_offsets":[48,50]}})";
  return write(name, raw<std::uint64_t>({header.size()}) + header + raw<float>({0, 1, 2, 3, 4, 5}) +
                         raw<std::int64_t>({7, 8, 9}) + "ab");
}

}  // namespace

TEST_CASE("tensors of a file of safetensors are read in rows") {
  const SafetensorsRows rows(make_safetensors("rows.safetensors"), {"x", "y"});
  CHECK(rows.size() == 3);
  const auto batch = rows.get_batch(Samples{2, 0});
  CHECK(at::equal(batch.at("x"), at::tensor({4.0F, 5.0F, 0.0F, 1.0F}).view({2, 2})));
  CHECK(at::equal(batch.at("y"), at::tensor({9, 7}, at::kLong)));
  CHECK(rows.get(1).at("y").item<int>() == 8);
  auto loader = data_loader(examples(rows, "x", "y"), {.batch_size = 3});
  for (auto& example : loader) CHECK(example.data.sizes() == at::IntArrayRef({3, 2}));
}

TEST_CASE("tensors with other numbers of rows, and missing ones, are named") {
  make_safetensors("other.safetensors");
  CHECK_THROWS_WITH(SafetensorsRows("other.safetensors"),
                    ContainsSubstring("3 rows") && ContainsSubstring("'more' has 2"));
  CHECK_THROWS_WITH(SafetensorsRows("other.safetensors", {"z"}), ContainsSubstring("no tensor 'z'"));
  CHECK_THROWS_WITH(SafetensorsRows("other.safetensors", {"x", "x"}), ContainsSubstring("named twice"));
  CHECK_THROWS_WITH(SafetensorsRows("other.safetensors", {"x"}).get(3), ContainsSubstring("no sample 3"));
}

TEST_CASE("a file of safetensors that is cut while it is in use is an error") {
  const SafetensorsRows rows(make_safetensors("cut.safetensors"), {"x", "y"});
  std::filesystem::resize_file("cut.safetensors", 100);
  CHECK_THROWS_WITH(rows.get(2), ContainsSubstring("was changed"));
}
