#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

TEST_CASE("members of JSON lines become tensors and texts") {
  const JsonLines lines(write("good.jsonl",
                              "{\"x\":[[1,2],[3,4.5]],\"n\":7,\"s\":\"h\\u00e9\",\"b\":true,\"other\":null}\r\n\n  \n"
                              "{\"x\":[[5,6],[7,8]],\"n\":-1,\"s\":\"\",\"b\":false}"),
                        {{"x"}, {"n", ColumnType::int64}, {"s", ColumnType::text}, {"b", ColumnType::boolean}});
  CHECK(lines.size() == 2);
  CHECK(lines.columns() == std::vector<std::string>{"x", "n", "s", "b"});
  const auto batch = lines.get_batch(Samples{1, 0});
  CHECK(at::equal(batch.tensors.at("x"), at::tensor({5.0F, 6.0F, 7.0F, 8.0F, 1.0F, 2.0F, 3.0F, 4.5F}).view({2, 2, 2})));
  CHECK(at::equal(batch.tensors.at("n"), at::tensor({-1, 7}, at::kLong)));
  CHECK(at::equal(batch.tensors.at("b"), at::tensor({0, 1}).to(at::kBool)));
  CHECK(batch.texts.at("s") == std::vector<std::string>{"", "h\xc3\xa9"});
  const auto line = lines.get(0);
  CHECK(line.tensors.at("n").dim() == 0);
  CHECK(line.tensors.at("x").sizes() == at::IntArrayRef({2, 2}));
}

TEST_CASE("a number that float32 does not hold is an error") {
  const JsonLines lines(write("large.jsonl", "{\"x\":1}\n{\"x\":1e300}\n{\"x\":3.4028234e38}\n"), {{"x"}});
  CHECK_THROWS_WITH(lines.get(1), ContainsSubstring("large.jsonl:2:") && ContainsSubstring("float32"));
  CHECK(at::isfinite(lines.get(2).tensors.at("x")).item<bool>());
}

TEST_CASE("errors in a line are reported with file, line and member") {
  const JsonLines lines(write("bad.jsonl",
                              "{\"x\":1}\n"
                              "{\"x\":\"one\"}\n"
                              "{\"y\":1}\n"
                              "{\"x\":null}\n"
                              "\n"
                              "{\"x\":[1,[2]]}\n"
                              "{\"x\":[[1],[2,3]]}\n"
                              "[1]\n"
                              "{\"x\":\n"
                              "{\"x\":1.5}\n"
                              "{\"x\":18446744073709551615}\n"
                              "{\"x\":9223372036854775807}\n"),
                        {{"x", ColumnType::int64}});
  const std::vector<std::pair<std::int64_t, std::vector<std::string>>> expected = {
      {1, {"bad.jsonl:2:", "'x' is \"one\""}},
      {2, {"bad.jsonl:3:", "no member 'x'"}},
      {3, {"bad.jsonl:4:", "'x' is null"}},
      {4, {"bad.jsonl:6:", "'x' is [1,[2]]"}},
      {5, {"bad.jsonl:7:", "lists of different lengths"}},
      {6, {"bad.jsonl:8:", "not a JSON object"}},
      {7, {"bad.jsonl:9:", "not valid JSON: "}},
      {8, {"bad.jsonl:10:", "'x' is 1.5", "int64"}},
      {9, {"bad.jsonl:11:", "18446744073709551615"}}};
  for (const auto& [line, words] : expected) {
    for (const auto& word : words) CHECK_THROWS_WITH(lines.get(line), ContainsSubstring(word));
  }
  CHECK(lines.get(10).tensors.at("x").item<std::int64_t>() == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("a file that was cut short, or is empty, shows when it is opened") {
  const std::vector<TableColumn> x = {{"x"}};
  CHECK_THROWS_WITH(JsonLines(write("cut.jsonl", "{\"x\":1}\n{\"x\":1}\n{\"x\""), x), ContainsSubstring("cut.jsonl:3"));
  CHECK_THROWS_WITH(JsonLines(write("first.jsonl", "{\"y\":1}\n{\"x\":1}\n"), x), ContainsSubstring("first.jsonl:1"));
  CHECK_THROWS_WITH(JsonLines(write("none.jsonl", "\n \n"), x), ContainsSubstring("has no lines"));
  CHECK_THROWS_WITH(JsonLines(write("empty.jsonl", ""), x), ContainsSubstring("has no lines"));
  CHECK_THROWS_WITH(JsonLines("first.jsonl", {}), ContainsSubstring("No members"));
  CHECK_THROWS_WITH(JsonLines("first.jsonl", {{"x"}, {"x"}}), ContainsSubstring("twice"));
}

TEST_CASE("lists of different lengths are joined by a function of the user's") {
  const JsonLines lines(write("ragged.jsonl", "{\"t\":[1,2,3]}\n{\"t\":[]}\n{\"t\":[4]}\n"),
                        {{"t", ColumnType::int64}});
  CHECK_THROWS_WITH(lines.get_batch(Samples{0, 2}),
                    ContainsSubstring("ragged.jsonl:3") && ContainsSubstring("'t'") && ContainsSubstring("pads"));
  auto loader = data_loader(lines, {.batch_size = 3}, [](const std::vector<TableRow>& rows) {
    auto padded = at::zeros({static_cast<std::int64_t>(rows.size()), 3}, at::kLong);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& tokens = rows[i].tensors.at("t");
      padded[static_cast<std::int64_t>(i)].narrow(0, 0, tokens.numel()).copy_(tokens);
    }
    return padded;
  });
  for (auto& batch : loader) CHECK(at::equal(batch, at::tensor({1, 2, 3, 0, 0, 0, 4, 0, 0}, at::kLong).view({3, 3})));
}

TEST_CASE("JSON lines that change while they are in use are an error") {
  const JsonLines lines(write("changing.jsonl", "{\"x\":1}\n{\"x\":2}\n"), {{"x"}});
  write("changing.jsonl", "{\"x\":1}\n");
  CHECK_THROWS_WITH(lines.get(1), ContainsSubstring("was changed"));
}
