#include "data/streams/line_files.hpp"

#include "data/files/record_file.hpp"

namespace hortator::data {

std::optional<std::string_view> LineFiles::next() {
  while (auto* file = files_.current()) {
    if (!lines_) lines_.emplace(*file, options_.max_record_bytes, before_);
    path_ = file->path();
    if (const auto line = lines_->next()) return line;
    files_.advance();
    begin(0);
  }
  return {};
}

std::string LineFiles::position_text() const { return data::position_text(path_, lines_->line()); }

void LineFiles::reset() {
  files_.go_to(0, 0);
  begin(0);
}

void LineFiles::select(int world, int rank) {
  files_.select(world, rank);
  begin(0);
}

void LineFiles::save(StateWriter& out) const {
  files_.save(out, lines_ ? lines_->position() : files_.start());
  out.put("line", lines_ ? lines_->line() : before_);
}

void LineFiles::load(const StateReader& in) {
  const auto line = in.get<std::int64_t>("line");
  files_.load(in);
  begin(line);
}

void LineFiles::begin(std::int64_t lines_before) {
  lines_.reset();
  before_ = lines_before;
}

}  // namespace hortator::data
