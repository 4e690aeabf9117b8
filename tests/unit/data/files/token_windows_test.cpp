#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

at::Tensor tokens(const std::vector<std::int64_t>& values) { return at::tensor(values, at::kLong); }

}  // namespace

TEST_CASE("windows side by side have each token once, and its next one as target") {
  const TokenWindows windows({write("text", "abcdefgh")}, {.context = 3});
  CHECK(windows.size() == 2);
  const auto batch = windows.get_batch(Samples{1, 0});
  CHECK(at::equal(batch.data, tokens({'e', 'f', 'g', 'a', 'b', 'c'}).view({2, 3})));
  CHECK(at::equal(batch.target, tokens({'f', 'g', 'h', 'b', 'c', 'd'}).view({2, 3})));
  CHECK(at::equal(windows.get(0).target, tokens({'b', 'c', 'd'})));
  CHECK(TokenWindows({write("exact", "abcd")}, {.context = 3}).size() == 1);
}

TEST_CASE("windows lie evenly from the first token to the last one") {
  const TokenWindows windows(at::arange(104), {.context = 10, .count = 7});
  CHECK(windows.size() == 7);
  CHECK(windows.get(0).data[0].item<int>() == 0);
  CHECK(windows.get(6).target[9].item<int>() == 103);
  for (std::int64_t i = 0; i < 7; ++i) CHECK(windows.get(i).data[0].item<int>() == i * 93 / 6);
  CHECK(TokenWindows(at::arange(101), {.context = 10, .count = 1}).get(0).data[0].item<int>() == 0);
}

TEST_CASE("files are one text, empty ones too") {
  const TokenWindows windows({write("one", "ab"), write("none", ""), write("two", "cde"), write("three", "f")},
                             {.context = 5});
  CHECK(windows.size() == 1);
  CHECK(at::equal(windows.get(0).target, tokens({'b', 'c', 'd', 'e', 'f'})));
}

TEST_CASE("tokens of two and four bytes are read as they were written") {
  const auto two = write("two.bin", raw<std::uint16_t>({1, 65535, 3, 4}));
  CHECK(at::equal(TokenWindows({two}, {.context = 3, .type = TokenType::uint16}).get(0).data, tokens({1, 65535, 3})));
  const auto four = write("four.bin", raw<std::uint32_t>({1, 4294967295, 3, 4}));
  CHECK(at::equal(TokenWindows({four}, {.context = 3, .type = TokenType::uint32}).get(0).target,
                  tokens({4294967295, 3, 4})));
  CHECK_THROWS_WITH(TokenWindows({write("odd.bin", "abc")}, {.context = 1, .type = TokenType::uint16}),
                    ContainsSubstring("odd.bin") && ContainsSubstring("3 bytes"));
}

TEST_CASE("texts that are too short, or no tokens, are refused") {
  CHECK_THROWS_WITH(TokenWindows({write("short", "abc")}, {.context = 3}),
                    ContainsSubstring("3 tokens is too short for a context of 3"));
  CHECK_THROWS_WITH(TokenWindows({write("empty", "")}, {.context = 1}), ContainsSubstring("too short"));
  CHECK_THROWS_WITH(TokenWindows(std::vector<std::filesystem::path>{}, {}), ContainsSubstring("No files"));
  CHECK_THROWS_WITH(TokenWindows(at::zeros({9}), {.context = 3}), ContainsSubstring("whole numbers"));
  CHECK_THROWS_WITH(TokenWindows(at::arange(9).view({3, 3}), {.context = 3}), ContainsSubstring("[3, 3]"));
  CHECK_THROWS_WITH(TokenWindows(at::arange(9), {.context = 0}), ContainsSubstring("0 tokens"));
  CHECK_THROWS_WITH(TokenWindows(at::arange(9), {.context = 3}).get(2), ContainsSubstring("no window 2"));
}

TEST_CASE("a text that is cut while it is in use is an error") {
  const TokenWindows windows({write("cut", "abcdefgh")}, {.context = 3});
  std::filesystem::resize_file("cut", 5);
  CHECK_THROWS_WITH(windows.get(1), ContainsSubstring("was changed"));
}
