#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hortator {

namespace data {
struct LabelledTextFile;
}

/// A text, or a pair of texts, and its class.
struct LabelledText {
  std::string text = {};
  std::optional<std::string> pair = {};
  std::int64_t label = 0;
};

/// Options of LabelledTexts. By default the columns are found by the names that GLUE's tasks use.
struct LabelledTextsOptions {
  std::string text = {};   ///< the column, or member, of the text
  std::string pair = {};   ///< that of the second text; empty with a `text`: there are no pairs
  std::string label = {};  ///< that of the class
  /// Names of the classes, which are numbered in this order. Empty: labels are whole numbers from 0.
  std::vector<std::string> classes = {};
  /// The names of the columns of a TSV file without a header line. Empty: its first line names them.
  std::vector<std::string> columns = {};
};

/// Labelled texts for classification, from a TSV file as GLUE's (MRPC, SST-2, QQP, RTE, WNLI, QNLI, MNLI) or, by the
/// end of its name, from JSON lines (.jsonl, .json), Parquet (.parquet) or Arrow (.arrow, .feather). In TSV, quotes are
/// part of the text: a cell ends at a tab, a row at the end of the line. All rows are read into memory and checked:
/// errors name file, line and column.
class HORTATOR_API LabelledTexts {
 public:
  explicit LabelledTexts(const std::filesystem::path& path, const LabelledTextsOptions& options = {});

  std::int64_t size() const;
  bool has_pairs() const;
  std::int64_t num_classes() const;  ///< number of names, or the largest label and one
  const LabelledText& get(std::int64_t row) const;

 private:
  std::shared_ptr<const data::LabelledTextFile> file_;
};

}  // namespace hortator
