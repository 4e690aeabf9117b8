#include "data/files/record_file.hpp"

#include <algorithm>

#include "core/text/text.hpp"
#include "data/files/compressed_file.hpp"
#include "data/files/rows.hpp"
#include "formats/tensor/stored_rows.hpp"

namespace hortator::data {

std::string position_text(const std::filesystem::path& path, std::int64_t line) {
  return text::concat(path.string(), ":", line);
}

RecordFile::RecordFile(const std::filesystem::path& path, const char* compressed_hint) : file_(path) {
  refuse_compressed(file_, compressed_hint);
}

void RecordFile::scan(const std::function<void(std::uint64_t, std::string_view)>& work) const {
  constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;
  std::string piece;
  for (std::uint64_t done = 0; done < file_.bytes(); done += piece.size()) {
    piece.resize(std::min(piece_bytes, file_.bytes() - done));
    file_.read_at(done, piece.data(), piece.size());
    work(done, piece);
  }
  file_.require_unchanged();
}

void RecordFile::set_records(std::vector<std::uint64_t> begins) {
  begins_ = std::move(begins);
  begins_.shrink_to_fit();
}

std::uint64_t RecordFile::end(std::int64_t record) const {
  return record + 1 == size() ? file_.bytes() : begins_[static_cast<std::size_t>(record) + 1];
}

std::vector<std::string> RecordFile::read(std::span<const std::int64_t> records) const {
  require_samples(records, size(), path());
  std::vector<std::string> texts(records.size());
  formats::for_each_run(records, [&](std::size_t at, std::int64_t first, std::int64_t count) {
    const auto begin = begins_[static_cast<std::size_t>(first)];
    std::string run(end(first + count - 1) - begin, '\0');
    file_.read_at(begin, run.data(), run.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto from = begins_[static_cast<std::size_t>(first + i)];
      texts[at + static_cast<std::size_t>(i)] = run.substr(from - begin, end(first + i) - from);
    }
  });
  file_.require_unchanged();
  return texts;
}

std::string RecordFile::position_text(std::int64_t record) const {
  const auto begin = begins_[static_cast<std::size_t>(record)];
  std::int64_t line = 1;
  scan([&](std::uint64_t offset, std::string_view piece) {
    if (offset >= begin) return;
    const auto before = piece.substr(0, begin - offset);
    line += std::ranges::count(before, '\n');
  });
  return data::position_text(path(), line);
}

}  // namespace hortator::data
