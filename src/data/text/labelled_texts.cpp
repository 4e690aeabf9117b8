#include <algorithm>
#include <array>
#include <functional>
#include <hortator/datasets/arrow_rows.hpp>
#include <hortator/datasets/json_lines.hpp>
#include <hortator/datasets/labelled_texts.hpp>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"
#include "data/files/record_file.hpp"
#include "data/files/rows.hpp"
#include "data/text/text_columns.hpp"
#include "formats/columns/columnar_file.hpp"
#include "formats/file/file_error.hpp"

namespace hortator {

namespace data {

/// The rows of one file.
struct LabelledTextFile {
  std::filesystem::path path;
  std::vector<LabelledText> rows = {};
  bool has_pairs = false;
  std::int64_t classes = 0;
};

namespace {

using formats::FileError;

/// Numbers the classes.
class ClassNumbers {
 public:
  explicit ClassNumbers(const std::vector<std::string>& names) : names_(names) {}

  /// Throws FileError for a label that is not one, with the position that `where` returns.
  std::int64_t number_of(const std::string& label, const std::function<std::string()>& where) const {
    if (!names_.empty()) {
      const auto found = std::ranges::find(names_, label);
      if (found != names_.end()) return found - names_.begin();
      throw FileError({.what = text::concat(where(), ": the label is ", text::quote(label)),
                       .hint = text::concat("the classes are ", text::join(names_))});
    }
    long long number = 0;
    constexpr long long largest = 1 << 20;
    if (text::parse_integer(label, number) && number >= 0 && number <= largest) return number;
    throw FileError(
        {.what = text::concat(where(), ": the label is ", text::quote(label), ", expected a whole number from 0"),
         .hint = "if classes have names, list them: .classes"});
  }

 private:
  const std::vector<std::string>& names_;
};

std::vector<std::uint64_t> lines_of(const RecordFile& file) {
  std::vector<std::uint64_t> begins;
  bool is_new = true;
  file.scan([&](std::uint64_t offset, std::string_view piece) {
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (is_new && piece[i] != '\n' && piece[i] != '\r') begins.push_back(offset + i);
      is_new = piece[i] == '\n';
    }
  });
  return begins;
}

/// The cells of a line, which ends with LF or CRLF.
std::vector<std::string> cells_of(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  return text::split(line, '\t');
}

/// The places of the columns in a row.
struct ColumnPlaces {
  std::size_t text, label;
  std::optional<std::size_t> pair;
};

std::size_t place_of(const std::string& column, const std::vector<std::string>& header) {
  return static_cast<std::size_t>(std::ranges::find(header, column) - header.begin());
}

void read_tsv(LabelledTextFile& file, const LabelledTextsOptions& options) {
  RecordFile records(file.path);
  records.set_records(lines_of(records));
  std::int64_t line = 0;
  const auto next = [&] { return cells_of(records.read({&line, 1}).front()); };
  if (records.size() == 0) throw FileError({.what = text::concat(file.path, " is empty")});
  const auto header = options.columns.empty() ? next() : options.columns;
  if (options.columns.empty()) ++line;
  const auto columns = choose_columns(header, options, file.path);
  ColumnPlaces places{.text = place_of(columns.text, header), .label = place_of(columns.label, header), .pair = {}};
  if (!columns.pair.empty()) places.pair = place_of(columns.pair, header);
  const ClassNumbers classes(options.classes);
  for (; line < records.size(); ++line) {
    auto cells = next();
    const auto where = [&] { return records.position_text(line); };
    if (cells.size() != header.size()) {
      throw FileError(
          {.what = text::concat(where(), ": the row has ", text::count(static_cast<long long>(cells.size()), "column"),
                                ", expected ", header.size()),
           .why = "a tab ends a cell"});
    }
    LabelledText row{.label = classes.number_of(cells[places.label], where)};
    row.text = std::move(cells[places.text]);
    if (places.pair) row.pair = std::move(cells[*places.pair]);
    file.rows.push_back(std::move(row));
  }
}

void read_json_lines(LabelledTextFile& file, const LabelledTextsOptions& options) {
  const auto columns = choose_columns(json_members(file.path), options, file.path);
  const bool has_names = !options.classes.empty();
  std::vector<TableColumn> members = {{columns.text, ColumnType::text},
                                      {columns.label, has_names ? ColumnType::text : ColumnType::int64}};
  if (!columns.pair.empty()) members.push_back({columns.pair, ColumnType::text});
  const JsonLines lines(file.path, members);
  const ClassNumbers classes(options.classes);
  for (std::int64_t line = 0; line < lines.size(); ++line) {
    auto read = lines.get(line);
    const auto where = [&] { return text::concat(file.path, ", row ", line + 1); };
    const auto label =
        has_names ? read.texts.at(columns.label) : std::to_string(read.tensors.at(columns.label).item<std::int64_t>());
    LabelledText row{.label = classes.number_of(label, where)};
    row.text = std::move(read.texts.at(columns.text));
    if (!columns.pair.empty()) row.pair = std::move(read.texts.at(columns.pair));
    file.rows.push_back(std::move(row));
  }
}

bool is_columnar(const std::filesystem::path& path) {
  const auto ending = path.extension();
  return ending == ".parquet" || ending == ".arrow" || ending == ".feather";
}

/// The texts of a column of whole numbers or texts.
std::vector<std::string> cells_of(TableBatch& batch, const std::string& column, const std::filesystem::path& path) {
  if (const auto texts = batch.texts.find(column); texts != batch.texts.end()) return std::move(texts->second);
  const auto& numbers = batch.tensors.at(column);
  if (numbers.dim() != 1 || !at::isIntegralType(numbers.scalar_type(), /*includeBool=*/true))
    throw FileError({.what = text::concat("The column ", text::quote(column), " of ", path, " holds ",
                                          numbers.scalar_type(), ", expected texts or whole numbers")});
  std::vector<std::string> cells;
  const auto wide = numbers.to(at::kLong);
  for (std::int64_t i = 0; i < wide.numel(); ++i)
    cells.push_back(std::to_string(wide.const_data_ptr<std::int64_t>()[i]));
  return cells;
}

void read_columns(LabelledTextFile& file, const LabelledTextsOptions& options) {
  const auto columns = choose_columns(formats::column_names(file.path), options, file.path);
  std::vector<std::string> names = {columns.text, columns.label};
  if (!columns.pair.empty()) names.push_back(columns.pair);
  const ArrowRows rows(file.path, {.columns = names});
  const ClassNumbers classes(options.classes);
  constexpr std::int64_t step = 4096;
  for (std::int64_t first = 0; first < rows.size(); first += step) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(step, rows.size() - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    auto batch = rows.get_batch(numbers);
    auto texts = cells_of(batch, columns.text, file.path), labels = cells_of(batch, columns.label, file.path);
    auto pairs = columns.pair.empty() ? std::vector<std::string>() : cells_of(batch, columns.pair, file.path);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto where = [&] { return text::concat(file.path, ", row ", numbers[i] + 1); };
      LabelledText row{.text = std::move(texts[i]), .label = classes.number_of(labels[i], where)};
      if (!pairs.empty()) row.pair = std::move(pairs[i]);
      file.rows.push_back(std::move(row));
    }
  }
}

std::shared_ptr<const LabelledTextFile> read_file(const std::filesystem::path& path,
                                                  const LabelledTextsOptions& options) {
  auto file = std::make_shared<LabelledTextFile>();
  file->path = path;
  const bool is_json = path.extension() == ".jsonl" || path.extension() == ".json";
  if (is_columnar(path)) {
    read_columns(*file, options);
  } else {
    is_json ? read_json_lines(*file, options) : read_tsv(*file, options);
  }
  if (file->rows.empty()) throw FileError({.what = text::concat(path, " has no rows")});
  file->has_pairs = file->rows.front().pair.has_value();
  file->classes = static_cast<std::int64_t>(options.classes.size());
  if (file->classes == 0) file->classes = std::ranges::max_element(file->rows, {}, &LabelledText::label)->label + 1;
  return file;
}

}  // namespace
}  // namespace data

LabelledTexts::LabelledTexts(const std::filesystem::path& path, const LabelledTextsOptions& options)
    : file_(data::read_file(path, options)) {}

std::int64_t LabelledTexts::size() const { return static_cast<std::int64_t>(file_->rows.size()); }
bool LabelledTexts::has_pairs() const { return file_->has_pairs; }
std::int64_t LabelledTexts::num_classes() const { return file_->classes; }

const LabelledText& LabelledTexts::get(std::int64_t row) const {
  data::require_samples({&row, 1}, size(), file_->path);
  return file_->rows[static_cast<std::size_t>(row)];
}

}  // namespace hortator
