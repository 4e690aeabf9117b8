// Errors of a loop over a loader for files that are invalid, truncated or changed during the loop.
#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;
namespace fs = std::filesystem;

namespace {

std::string table(std::int64_t rows) {
  std::string text = "x\n";
  for (std::int64_t i = 0; i < rows; ++i) text += std::to_string(i) + "\n";
  return text;
}

/// Loops, calls `disturb` at the second batch, and hands out what the loop was ended by; "none" without an end.
template <typename Loader, typename Disturb>
std::string ended_by(Loader loader, const Disturb& disturb) {
  int batches = 0;
  try {
    for ([[maybe_unused]] auto& batch : loader) {
      if (++batches == 2) disturb();
    }
    return "none";
  } catch (const Error& error) {
    CHECK(batches >= 2);
    return error.what();
  }
}

}  // namespace

TEST_CASE("a file that is cut in the middle of an epoch ends the loop with its name") {
  for (const int prefetch : {0, 1}) {
    const LoaderOptions options{.batch_size = 2, .prefetch = prefetch};
    const CsvRows csv(write("loop.csv", table(100)));
    CHECK_THAT(ended_by(data_loader(csv, options), [] { fs::resize_file("loop.csv", 100); }),
               ContainsSubstring("of the data set could not be read") && ContainsSubstring("loop.csv") &&
                   ContainsSubstring("was changed"));
    const ArrayRows array(write("loop.bin", raw(std::vector<float>(100))), {});
    CHECK_THAT(ended_by(data_loader(array, options), [] { fs::resize_file("loop.bin", 4); }),
               ContainsSubstring("loop.bin") && ContainsSubstring("has 4 now"));
    const TokenWindows windows({write("loop.txt", std::string(100, 'x'))}, {.context = 3});
    CHECK_THAT(ended_by(data_loader(windows, options), [] { fs::resize_file("loop.txt", 7); }),
               ContainsSubstring("loop.txt") && ContainsSubstring("has 7 now"));
  }
}

TEST_CASE("a bad line ends the loop with its number, and those before it were read") {
  auto text = table(10);
  text.replace(text.find("7\n"), 1, "seven");
  const CsvRows rows(write("seven.csv", text));
  CHECK_THAT(ended_by(data_loader(rows, {.batch_size = 2}), [] {}),
             ContainsSubstring("samples 6, 7") && ContainsSubstring("seven.csv:9") && ContainsSubstring("'seven'"));
}

TEST_CASE("a file that others leave alone is read to its end") {
  const CsvRows rows(write("whole.csv", table(10)));
  CHECK(ended_by(data_loader(rows, {.batch_size = 2}), [] {}) == "none");
}

TEST_CASE("a table without rows gives no batch") {
  auto loader = data_loader(CsvRows(write("header.csv", "x\n")), {.batch_size = 2});
  CHECK(loader.dataset_size() == 0);
  for ([[maybe_unused]] auto& batch : loader) FAIL("a batch was made");
}
