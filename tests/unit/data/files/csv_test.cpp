#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "core/text/csv.hpp"
#include "core/text/text.hpp"
#include "data/files/csv_scanner.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

// All rows of a file, as text, however it is cut into pieces.
std::vector<std::vector<std::string>> records(const std::string& text, std::size_t piece, char separator = ',') {
  data::CsvScanner scanner(separator);
  for (std::size_t i = 0; i < text.size(); i += piece) scanner.feed(std::string_view(text).substr(i, piece));
  scanner.finish();
  std::vector<std::vector<std::string>> all;
  for (const auto begin : scanner.begins()) {
    all.push_back(core::parse_csv_record(std::string_view(text).substr(begin), separator));
  }
  return all;
}

using Cells = std::vector<std::vector<std::string>>;

std::string fault(const std::string& text) {
  try {
    records(text, text.size());
    return "none";
  } catch (const data::CsvFault& fault) {
    return text::concat(fault.line(), ": ", fault.what());
  }
}

}  // namespace

TEST_CASE("cells are found whatever they hold, and wherever the text is cut") {
  const std::vector<std::pair<std::string, Cells>> cases = {
      {"", {}},
      {"\n\n", {}},
      {"a", {{"a"}}},
      {"a\n", {{"a"}}},
      {"a,b\n1,2", {{"a", "b"}, {"1", "2"}}},
      {"a,b\r\n1,2\r\n", {{"a", "b"}, {"1", "2"}}},
      {"a,b\r\n1,2\r", {{"a", "b"}, {"1", "2"}}},
      {"a,b\n\n\r\n1,2\n\n", {{"a", "b"}, {"1", "2"}}},
      {"a,b\n,\n", {{"a", "b"}, {"", ""}}},
      {"a,b\n\"x, \"\"y\"\"\",\"line\nend\"\n3,4\n", {{"a", "b"}, {"x, \"y\"", "line\nend"}, {"3", "4"}}},
      {"a,b\n\"crlf\r\nin it\",\"\"\r\n", {{"a", "b"}, {"crlf\r\nin it", ""}}},
      {"a,b\n5\" tall,x\n", {{"a", "b"}, {"5\" tall", "x"}}},
      {"\"a\"\n\"\"\n", {{"a"}, {""}}},
      {"\xef\xbb\xbf\"a\",b\n1,2\n", {{"a", "b"}, {"1", "2"}}},
      {"\xef\xbb\xbf", {}},
      {"\xef\xbbz,b\n", {{"\xef\xbbz", "b"}}},
  };
  for (const auto& [text, expected] : cases) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{5}, std::size_t{1000}}) {
      INFO(text << " by " << piece);
      CHECK(records(text, piece) == expected);
    }
  }
  CHECK(records("a\tb,c\n1\t2\n", 3, '\t') == Cells{{"a", "b,c"}, {"1", "2"}});
}

TEST_CASE("errors in a file are reported with the line") {
  CHECK(fault("a,b\n1,2\n3\n") == "3: the row has 1 column, the first line has 2");
  CHECK(fault("a,b\n\n1,2,3") == "3: the row has 3 columns, the first line has 2");
  CHECK(fault("a,b\n\"x\ny\",1\n1\n") == "4: the row has 1 column, the first line has 2");
  CHECK(fault("a,b\n1,\"x\n2,3\n") == "2: a quote that opens here is never closed");
  CHECK(fault("a,b\n\"x\"y,3\n") == "2: text follows a closing quote (a quote in a cell is written twice)");
}

TEST_CASE("columns are read as the types that they are given") {
  const CsvRows rows(
      write("people.csv", "name,age,height,member\n\"Li, Wei\",31, 1.5 ,yes\nEva,-7,2e-1,0\n"),
      {.columns = {
           {"height"}, {"age", ColumnType::int64}, {"name", ColumnType::text}, {"member", ColumnType::boolean}}});
  CHECK(rows.size() == 2);
  CHECK(rows.columns() == std::vector<std::string>{"height", "age", "name", "member"});
  const auto batch = rows.get_batch(Samples{1, 0});
  CHECK(at::equal(batch.tensors.at("height"), at::tensor({0.2F, 1.5F})));
  CHECK(at::equal(batch.tensors.at("age"), at::tensor({-7, 31}, at::kLong)));
  CHECK(at::equal(batch.tensors.at("member"), at::tensor({0, 1}).to(at::kBool)));
  CHECK(batch.texts.at("name") == std::vector<std::string>{"Eva", "Li, Wei"});
  const auto row = rows.get(0);
  CHECK(row.tensors.at("age").item<int>() == 31);
  CHECK(row.tensors.at("age").dim() == 0);
  CHECK(row.texts.at("name") == "Li, Wei");
}

TEST_CASE("without a choice all columns are float32, and tabs part those of .tsv") {
  const CsvRows commas(write("plain.csv", "x,y\n1,2\n3,4\n"));
  CHECK(at::equal(commas.get_batch(Samples{0, 1}).tensors.at("y"), at::tensor({2.0F, 4.0F})));
  const CsvRows tabs(write("plain.tsv", "x,1\ty\n1\t2\n"));
  CHECK(tabs.columns() == std::vector<std::string>{"x,1", "y"});
  const CsvRows others(write("plain.txt", "x;y\n1;2\n"), {.separator = ';'});
  CHECK(others.get(0).tensors.at("y").item<float>() == 2);
}

TEST_CASE("missing and invalid cells are reported with file, line and column") {
  const CsvRows rows(write("holes.csv", "x,n\n1,1\n\n2,\n3,1.5\n,4\n5,abc\n6,99999999999999999999\n"),
                     {.columns = {{"x"}, {"n", ColumnType::int64}}});
  CHECK_NOTHROW(rows.get(0));
  CHECK_THROWS_WITH(rows.get(1), ContainsSubstring("holes.csv:4") && ContainsSubstring("'n' is empty"));
  CHECK_THROWS_WITH(rows.get(2), ContainsSubstring("holes.csv:5") && ContainsSubstring("'n' has '1.5'") &&
                                     ContainsSubstring("int64"));
  CHECK_THROWS_WITH(rows.get_batch(Samples{0, 3}),
                    ContainsSubstring("holes.csv:6") && ContainsSubstring("'x' is empty"));
  CHECK_THROWS_WITH(rows.get(4), ContainsSubstring("holes.csv:7") && ContainsSubstring("'abc'"));
  CHECK_THROWS_WITH(rows.get(5), ContainsSubstring("holes.csv:8"));
}

TEST_CASE("a file is checked when it is opened") {
  CHECK_THROWS_WITH(CsvRows(write("empty.csv", "")), ContainsSubstring("empty.csv") && ContainsSubstring("is empty"));
  CHECK_THROWS_WITH(CsvRows(write("torn.csv", "a,b\n1,2\n3")), ContainsSubstring("torn.csv:3"));
  CHECK_THROWS_WITH(CsvRows(write("twice.csv", "a,a\n1,2\n")), ContainsSubstring("names a column twice"));
  CHECK_THROWS_WITH(CsvRows(write("names.csv", "height,b\n1,2\n"), {.columns = {{"heigth"}}}),
                    ContainsSubstring("'heigth'") && ContainsSubstring("did you mean 'height'?"));
  CHECK_THROWS_WITH(CsvRows("nowhere.csv"), ContainsSubstring("nowhere.csv"));
  CHECK(CsvRows(write("header.csv", "a,b\n")).size() == 0);
  CHECK_THROWS_WITH(CsvRows(write("one.csv", "a\n1\n")).get(1), ContainsSubstring("no sample 1"));
  CHECK_THROWS_WITH(CsvRows("one.csv").get(-1), ContainsSubstring("no sample -1"));
}

TEST_CASE("a file that changes while it is in use is an error") {
  const CsvRows rows(write("changing.csv", "a\n1\n2\n3\n"));
  CHECK_NOTHROW(rows.get(2));
  write("changing.csv", "a\n1\n");
  CHECK_THROWS_WITH(rows.get(2), ContainsSubstring("changing.csv") && ContainsSubstring("was changed"));
  CHECK_THROWS_WITH(rows.get(0), ContainsSubstring("was changed"));
}

TEST_CASE("rows of a file larger than a piece are found") {
  std::string text = "i,words\n";
  const std::string filler(700, 'w');
  constexpr std::int64_t count = 4000;
  for (std::int64_t i = 0; i < count; ++i) text += std::to_string(i) + ",\"" + filler + "\n" + filler + "\"\n";
  const CsvRows rows(write("large.csv", text), {.columns = {{"i", ColumnType::int64}}});
  REQUIRE(rows.size() == count);
  CHECK(at::equal(rows.get_batch(Samples{0, 1, 2, 1999, 3999, 5}).tensors.at("i"),
                  at::tensor({0, 1, 2, 1999, 3999, 5}, at::kLong)));
}

TEST_CASE("a loader gives rows of a table, whole or as examples") {
  const CsvRows rows(write("loader.csv", "x,y,name\n1,10,a\n2,20,b\n3,30,c\n"),
                     {.columns = {{"x"}, {"y", ColumnType::int64}, {"name", ColumnType::text}}});
  std::vector<std::string> names;
  auto loader = data_loader(rows, {.batch_size = 2});
  for (auto& batch : loader) names.insert(names.end(), batch.texts["name"].begin(), batch.texts["name"].end());
  CHECK(names == std::vector<std::string>{"a", "b", "c"});
  auto pairs = data_loader(examples(rows, "x", "y"), {.batch_size = 3});
  for (auto& batch : pairs) {
    CHECK(at::equal(batch.data, at::tensor({1.0F, 2.0F, 3.0F})));
    CHECK(at::equal(batch.target, at::tensor({10, 20, 30}, at::kLong)));
  }
  CHECK_THROWS_WITH(examples(rows, "x", "z"), ContainsSubstring("no column 'z'"));
  CHECK_THROWS_WITH(examples(rows, "x", "name").get(0), ContainsSubstring("'name' is text"));
}
