#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "fixtures.hpp"
#include "formats/file/file_error.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

/// A file that columns/make.py has written.
std::filesystem::path fixture(const std::string& name) { return std::filesystem::path(ARROW_CASES) / name; }

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Row `i` of numbers.parquet and what has the same rows.
void check_row(const TableRow& row, std::int64_t i) {
  CHECK(at::equal(row.tensors.at("id"), at::scalar_tensor(i, at::kLong)));
  CHECK(at::equal(row.tensors.at("x"), at::scalar_tensor(static_cast<double>(i) / 4, at::kFloat)));
  CHECK(at::equal(row.tensors.at("flag"), at::scalar_tensor(i % 3 == 0, at::kBool)));
  CHECK(at::equal(row.tensors.at("small"), at::scalar_tensor(65535 - i, at::kInt)));
  CHECK(row.texts.at("name") == "row " + std::to_string(i));
}

/// The values of nested lists, in order, and the sizes of the lists.
void flatten(const nlohmann::json& value, std::vector<std::int64_t>& values, std::vector<std::int64_t>& shape,
             std::size_t level = 0) {
  if (!value.is_array()) return values.push_back(value.get<std::int64_t>());
  if (shape.size() == level) shape.push_back(static_cast<std::int64_t>(value.size()));
  for (const auto& entry : value) flatten(entry, values, shape, level + 1);
}

bool equals(const at::Tensor& found, const nlohmann::json& expected) {
  std::vector<std::int64_t> values, shape;
  flatten(expected, values, shape);
  const auto want = at::tensor(values, at::kLong);
  if (found.numel() != want.numel() || (found.numel() > 0 && found.sizes() != at::IntArrayRef(shape))) return false;
  const auto flat = found.reshape({-1});
  return at::equal(found.is_floating_point() ? flat.to(at::kDouble).view(at::kLong) : flat.to(at::kLong), want);
}

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
  }
  return text;
}

/// The number of values that differ from those of NAME.json.
std::int64_t differences(const std::filesystem::path& file) {
  const auto expected = nlohmann::json::parse(content(file.string() + ".json"));
  const ArrowRows rows(file, {.null_value = expected["null_value"].get<double>(), .cache_bytes = 1});
  if (rows.size() != static_cast<std::int64_t>(expected["rows"].size())) return -1;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const auto row = rows.get((i * 37 + 11) % rows.size());
    for (const auto& [name, value] : expected["rows"][static_cast<std::size_t>((i * 37 + 11) % rows.size())].items()) {
      const bool same = value.is_string() ? hexadecimal(row.texts.at(name)) == value.get<std::string>()
                                          : equals(row.tensors.at(name), value);
      wrong += same ? 0 : 1;
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("Parquet and Arrow files of one table have the same rows", "[pool]") {
  for (const auto* name : {"numbers.parquet", "numbers.feather", "stream.arrow"}) {
    INFO(name);
    const ArrowRows rows(fixture(name));
    REQUIRE(rows.size() == 10);
    CHECK(rows.columns() == std::vector<std::string>{"id", "x", "flag", "small", "name"});
    CHECK(rows.chunk_length() == (std::string(name) == "stream.arrow" ? 3 : 4));
    for (const std::int64_t i : {9, 0, 4, 3, 7, 8, 1}) check_row(rows.get(i), i);
    CHECK_THROWS_WITH(rows.get(10), ContainsSubstring("10"));
  }
}

TEST_CASE("several Parquet files are one table, with batches across files and groups, whatever the cache holds",
          "[pool]") {
  for (const std::size_t cache : {0, 1 << 20}) {
    const ArrowRows rows({fixture("numbers.parquet"), fixture("more.parquet")}, {.cache_bytes = cache});
    REQUIRE(rows.size() == 15);
    const auto batch = rows.get_batch(Samples{14, 2, 3, 4, 5, 9, 10, 11, 0});
    CHECK(at::equal(batch.tensors.at("id"), at::tensor({14, 2, 3, 4, 5, 9, 10, 11, 0}, at::kLong)));
    CHECK(batch.texts.at("name").at(6) == "row 10");
    CHECK(batch.texts.at("name").size() == 9);
  }
}

TEST_CASE("only the named columns of a Parquet file are read, in their order, and a batch is a copy", "[pool]") {
  const ArrowRows rows(fixture("numbers.parquet"), {.columns = {"x", "id"}});
  CHECK(rows.columns() == std::vector<std::string>{"x", "id"});
  auto batch = rows.get_batch(Samples{1, 2});
  CHECK(batch.texts.empty());
  CHECK(batch.tensors.size() == 2);
  CHECK(at::equal(batch.tensors.at("x"), at::tensor({0.25F, 0.5F})));
  batch.tensors.at("x").zero_();
  CHECK(rows.get(1).tensors.at("x").item<float>() == 0.25F);
  // another column's damage is not met
  const auto bytes = content(fixture("numbers.parquet"));
  auto damaged = bytes;
  damaged.replace(damaged.find("row 3"), 5, "RoW 3");
  const auto file = write("damaged.parquet", damaged);
  CHECK(ArrowRows(file, {.columns = {"id"}}).get(3).tensors.at("id").item<std::int64_t>() == 3);
  CHECK_THROWS_AS(ArrowRows(file).get(3), formats::FileError);  // by the page's checksum
  check_row(ArrowRows(file).get(9), 9);
}

TEST_CASE("lists of Parquet become tensors, by row or by batch where their shapes agree", "[pool]") {
  const ArrowRows rows(fixture("lists.parquet"), {.columns = {"fixed", "varying", "nested"}});
  CHECK(at::equal(rows.get(5).tensors.at("fixed"), at::tensor({5.0F, 5.5F, -5.0F})));
  CHECK(at::equal(rows.get(5).tensors.at("varying"), at::arange(5)));
  CHECK(at::equal(rows.get(5).tensors.at("nested"), at::tensor({5, 0, 5, 1}, at::kShort).view({2, 2})));
  CHECK(rows.get(0).tensors.at("varying").numel() == 0);
  CHECK(rows.get(0).tensors.at("nested").sizes() == at::IntArrayRef{0, 0});
  CHECK_THROWS_WITH(rows.get_batch(Samples{2, 4}), ContainsSubstring("'varying'") && ContainsSubstring("pads"));
  CHECK_THROWS_WITH(rows.get_batch(Samples{2, 3}), ContainsSubstring("'varying'"));
  const ArrowRows fixed(fixture("lists.parquet"), {.columns = {"fixed"}});
  CHECK(fixed.get_batch(Samples{3, 4, 0}).tensors.at("fixed").sizes() == at::IntArrayRef{3, 3});
  CHECK_THROWS_WITH(ArrowRows(fixture("lists.parquet"), {.columns = {"ragged"}}).get(1),
                    ContainsSubstring("in one row"));
}

TEST_CASE("columns of Parquet that are neither tensors nor texts are refused by name", "[pool]") {
  CHECK_THROWS_WITH(ArrowRows(fixture("lists.parquet")), ContainsSubstring("'parts'") && ContainsSubstring("struct"));
  CHECK_THROWS_WITH(ArrowRows(fixture("lists.parquet"), {.columns = {"words"}}), ContainsSubstring("lists of text"));
  CHECK_THROWS_WITH(ArrowRows(fixture("numbers.parquet"), {.columns = {"nam"}}), ContainsSubstring("'name'"));
  CHECK_THROWS_WITH(ArrowRows(fixture("numbers.parquet"), {.columns = {"x", "x"}}), ContainsSubstring("twice"));
  CHECK_THROWS_WITH(ArrowRows({fixture("numbers.parquet"), fixture("pairs.parquet")}),
                    ContainsSubstring("pairs.parquet") && ContainsSubstring("same columns"));
  CHECK_THROWS_AS(ArrowRows(std::vector<std::filesystem::path>{}), UsageError);
}

TEST_CASE("nulls of Parquet are refused, or get the chosen value", "[pool]") {
  const auto file = fixture("nulls.parquet");
  for (const auto* column : {"number", "text", "list", "coded", "coded_number"}) {
    INFO(column);
    CHECK_THROWS_WITH(ArrowRows(file, {.columns = {column}}).get(0),
                      ContainsSubstring(column) && ContainsSubstring(".null_value"));
  }
  const ArrowRows rows(file, {.columns = {"number", "text", "list", "coded", "coded_number"}, .null_value = 9});
  const auto row = rows.get(1);
  CHECK(row.tensors.at("number").item<int>() == 9);
  CHECK(row.tensors.at("coded_number").item<int>() == 9);
  CHECK(row.tensors.at("list").numel() == 0);
  CHECK(row.texts.at("text").empty());
  CHECK(row.texts.at("coded").empty());
  CHECK(at::equal(rows.get(2).tensors.at("list"), at::tensor({9.0}, at::kDouble)));
  CHECK(rows.get(2).texts.at("coded") == "x");
  CHECK(rows.get(2).tensors.at("coded_number").item<int>() == 7);
  for (const double value : {-1.0, 0.5, 256.0})
    CHECK_THROWS_WITH(ArrowRows(file, {.columns = {"number"}, .null_value = value}).get(0),
                      ContainsSubstring(".null_value"));
  CHECK_THROWS_WITH(ArrowRows(file, {.columns = {"coded_number"}, .null_value = 0.5}).get(0),
                    ContainsSubstring(".null_value"));
  CHECK(ArrowRows(file, {.columns = {"coded_nulls"}, .null_value = 9}).get(0).tensors.at("coded_nulls").item<int>() ==
        9);
  CHECK_THROWS_WITH(ArrowRows(file, {.columns = {"large"}}).get(0), ContainsSubstring("9223372036854775808"));
}

TEST_CASE("labelled texts are read from Parquet", "[pool]") {
  const LabelledTexts pairs(fixture("pairs.parquet"));
  REQUIRE(pairs.size() == 3);
  CHECK(pairs.has_pairs());
  CHECK(pairs.num_classes() == 2);
  CHECK(pairs.get(2).text == "Three.");
  CHECK(pairs.get(2).pair == "3");
  CHECK(pairs.get(2).label == 1);
  const LabelledTexts named(fixture("pairs.parquet"), {.text = "sentence2", .label = "name", .classes = {"no", "yes"}});
  CHECK_FALSE(named.has_pairs());
  CHECK(named.get(0).label == 1);
  CHECK_THROWS_WITH(LabelledTexts(fixture("pairs.parquet"), {.text = "sentence1", .label = "name"}),
                    ContainsSubstring(".classes"));
  CHECK_THROWS_WITH(LabelledTexts(fixture("numbers.parquet"), {.text = "name", .label = "x"}),
                    ContainsSubstring("whole numbers"));
}

TEST_CASE("Parquet and Arrow files that are cut, changed or something else are refused", "[pool]") {
  for (const auto* name : {"numbers.parquet", "numbers.feather", "stream.arrow"}) {
    INFO(name);
    const auto bytes = content(fixture(name));
    for (std::size_t length = 0; length + 8 < bytes.size(); length += 97) {
      try {
        const ArrowRows rows(write("cut.arrow", bytes.substr(0, length)));
        CHECK(rows.size() < 10);  // a stream that ends after one of its batches
        CHECK(std::string(name) == "stream.arrow");
      } catch (const formats::FileError& error) {
        CHECK_THAT(error.what(), ContainsSubstring("cut.arrow"));
      }
    }
  }
  CHECK_THROWS_AS(ArrowRows("nowhere.parquet"), formats::FileError);
  CHECK_THROWS_WITH(ArrowRows(write("text.parquet", "id,x\n1,2\n")), ContainsSubstring("does not begin"));
  const auto path = write("replaced.parquet", content(fixture("numbers.parquet")));
  const ArrowRows rows(path);
  write("replaced.parquet", content(fixture("numbers.parquet")));  // the same bytes, at another time
  CHECK_THROWS_AS(rows.get(0), formats::FileError);
}

TEST_CASE("a loader over Parquet that resumes after any batch continues as if never stopped", "[pool]") {
  const auto loader = [] {
    const ArrowRows rows({fixture("numbers.parquet"), fixture("more.parquet")}, {.columns = {"id"}, .cache_bytes = 1});
    return data_loader(rows, {.batch_size = 2, .sampler = block_sampler({.block = rows.chunk_length(), .window = 2})});
  };
  const auto read = [](auto& from, std::size_t count) {
    std::vector<std::int64_t> ids;
    std::size_t batches = 0;
    for (auto& batch : from) {
      const auto& tensor = batch.tensors.at("id");
      for (std::int64_t i = 0; i < tensor.numel(); ++i) ids.push_back(tensor[i].template item<std::int64_t>());
      if (++batches == count) break;
    }
    return ids;
  };
  auto whole = loader();
  const auto all = read(whole, 100);
  auto sorted = all;
  std::ranges::sort(sorted);
  std::vector<std::int64_t> expected(15);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(sorted == expected);
  CHECK(all != expected);
  for (std::size_t stop = 1; stop < 8; ++stop) {
    auto stopped = loader(), resumed = loader();
    auto ids = read(stopped, stop);
    resumed.load(stopped.state());
    std::ranges::copy(read(resumed, 100), std::back_inserter(ids));
    CHECK(ids == all);
  }
}

// Run by arrow_files.sh with new random files.
TEST_CASE("random Parquet and Arrow files have the rows that pyarrow reads", "[.arrow_files]") {
  const auto* folder = std::getenv("ARROW_FILES");
  REQUIRE(folder != nullptr);
  std::int64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().has_extension()) continue;
    INFO(entry.path());
    CHECK(differences(entry.path()) == 0);
    ++files;
  }
  CHECK(files >= 20);
}
