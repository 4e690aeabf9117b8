// Fuzzes the readers of TSV files and JSON lines: any file is refused, or has labelled texts.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <hortator/datasets/json_lines.hpp>
#include <hortator/datasets/labelled_texts.hpp>
#include <hortator/error.hpp>

#include "target.hpp"

using namespace hortator;

namespace {

void use(const LabelledTexts& texts) {
  for (std::int64_t row = 0; row < texts.size(); ++row) {
    const auto& one = texts.get(row);
    if (one.label < 0 || one.label >= texts.num_classes() || one.pair.has_value() != texts.has_pairs())
      __builtin_trap();
  }
}

/// Refusing a file is not a fault.
template <typename Work>
void attempt(const Work& work) {
  try {
    work();
  } catch (const Error&) {
  }
}

}  // namespace

FUZZ_TARGET(labelled_texts) {
  static const auto folder = std::filesystem::current_path();
  if (size == 0) return 0;
  const bool is_json = (data[0] & 1U) != 0;
  const auto file = folder / (is_json ? "fuzzed.jsonl" : "fuzzed.tsv");
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data + 1), static_cast<std::streamsize>(size - 1));
  attempt([&] { use(LabelledTexts(file)); });
  attempt([&] { use(LabelledTexts(file, {.text = "sentence", .label = "label", .classes = {"0", "good"}})); });
  if (!is_json) return 0;
  attempt([&] {
    const JsonLines lines(file, {{"x", ColumnType::float32}, {"label", ColumnType::int64}});
    for (std::int64_t line = 0; line < lines.size(); ++line) lines.get(line);
  });
  return 0;
}
