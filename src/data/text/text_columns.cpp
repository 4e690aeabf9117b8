#include "data/text/text_columns.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/text/text.hpp"
#include "data/files/compressed_file.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {
namespace {

struct KnownColumns {
  const char *text, *pair, *label;
};

constexpr std::array known_columns = {
    KnownColumns{"#1 String", "#2 String", "Quality"},       // MRPC
    KnownColumns{"question1", "question2", "is_duplicate"},  // QQP
    KnownColumns{"sentence1", "sentence2", "gold_label"},    // MNLI, SNLI
    KnownColumns{"sentence1", "sentence2", "label"},         // RTE, WNLI
    KnownColumns{"question", "sentence", "label"},           // QNLI
    KnownColumns{"premise", "hypothesis", "label"},
    KnownColumns{"sentence", "", "label"},  // SST-2, CoLA
    KnownColumns{"text", "", "label"},
};

bool has(const std::vector<std::string>& columns, const std::string& name) {
  return name.empty() || std::ranges::find(columns, name) != columns.end();
}

}  // namespace

TextColumns choose_columns(const std::vector<std::string>& columns, const LabelledTextsOptions& options,
                           const std::filesystem::path& path) {
  if (options.text.empty() && (!options.pair.empty() || !options.label.empty()))
    throw UsageError({.what = "LabelledTextsOptions: .pair or .label is named without .text"});
  for (const auto& name : {options.text, options.pair, options.label}) {
    if (has(columns, name)) continue;
    throw UsageError(
        {.what = text::concat(path, " has no column ", text::quote(name)), .hint = text::suggestion(name, columns)});
  }
  const std::string label = options.label.empty() ? "label" : options.label;
  if (!options.text.empty() && has(columns, label)) return {.text = options.text, .pair = options.pair, .label = label};
  for (const auto& [text, pair, named_label] : known_columns) {
    if (!options.text.empty()) break;
    if (has(columns, text) && has(columns, pair) && has(columns, named_label))
      return {.text = text, .pair = pair, .label = named_label};
  }
  throw UsageError(
      {.what = text::concat(path, " has the columns ", text::join(columns), ": which are texts and labels?"),
       .why = "they are found by name only in files of GLUE's layout",
       .hint = "name them: .text, .pair and .label. If the first line names no columns, list them: .columns"});
}

std::vector<std::string> json_members(const std::filesystem::path& path) {
  refuse_compressed(formats::FixedFile(path), "unpack it with gunzip or unzstd");  // throws where there is no file
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto object = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) break;
    std::vector<std::string> names;
    for (const auto& [name, value] : object.items()) names.push_back(name);
    return names;
  }
  throw formats::FileError({.what = text::concat(path, " does not begin with a JSON object"),
                            .why = "files of JSON lines have one object a line"});
}

}  // namespace hortator::data
