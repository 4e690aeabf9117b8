#include <hortator/datasets/json_stream.hpp>

#include "core/text/text.hpp"
#include "data/files/json_record.hpp"
#include "data/streams/line_files.hpp"
#include "formats/file/file_error.hpp"

namespace hortator {

JsonStream::JsonStream(const std::vector<std::filesystem::path>& files, const std::vector<TableColumn>& members,
                       const FileStreamOptions& options)
    : files_(std::make_unique<data::LineFiles>(files, options)), members_(members) {
  data::require_members(members);
}

JsonStream::~JsonStream() = default;
JsonStream::JsonStream(JsonStream&& other) noexcept = default;
JsonStream& JsonStream::operator=(JsonStream&& other) noexcept = default;

std::optional<TableRow> JsonStream::next() {
  while (const auto line = files_->next()) {
    if (line->find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      return data::parse_json_record(*line, members_);
    } catch (const data::JsonLineFault& fault) {
      throw formats::FileError({.what = text::concat(files_->position_text(), ": ", fault.what())});
    }
  }
  return {};
}

void JsonStream::reset() { files_->reset(); }
void JsonStream::select_files(int world, int rank) { files_->select(world, rank); }
void JsonStream::save(StateWriter& out) const { files_->save(out); }
void JsonStream::load(const StateReader& in) { files_->load(in); }

TableBatch join_rows(const std::vector<TableRow>& rows) {
  TableBatch batch;
  if (rows.empty()) return batch;
  const auto position_text = [](std::size_t row) { return text::concat("rows[", row, "]"); };
  for (const auto& [name, tensor] : rows.front().tensors)
    batch.tensors[name] = data::stack_member(rows, name, position_text);
  for (const auto& row : rows) {
    for (const auto& [name, text] : row.texts) batch.texts[name].push_back(text);
  }
  return batch;
}

}  // namespace hortator
