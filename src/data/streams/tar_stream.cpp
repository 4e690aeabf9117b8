#include <hortator/datasets/tar_stream.hpp>

#include "data/streams/file_sequence.hpp"
#include "data/streams/tar_archive.hpp"

namespace hortator {

namespace data {

/// The samples of archives, one archive after the other.
class TarFiles {
 public:
  TarFiles(std::vector<std::filesystem::path> files, const FileStreamOptions& options)
      : files_(std::move(files)), options_(options) {}

  std::optional<TarSample> next() {
    while (auto* file = files_.current()) {
      if (!archive_) archive_.emplace(*file, options_.max_record_bytes);
      if (auto sample = archive_->next()) return sample;
      files_.advance();
      archive_.reset();
    }
    return {};
  }

  void reset() {
    files_.go_to(0, 0);
    archive_.reset();
  }
  void select(int world, int rank) {
    files_.select(world, rank);
    archive_.reset();
  }
  void save(StateWriter& out) const { files_.save(out, archive_ ? archive_->position() : files_.start()); }
  void load(const StateReader& in) {
    files_.load(in);
    archive_.reset();
  }

 private:
  FileSequence files_;
  FileStreamOptions options_;
  std::optional<TarArchive> archive_;  ///< the open one
};

}  // namespace data

TarStream::TarStream(const std::vector<std::filesystem::path>& archives, const FileStreamOptions& options)
    : files_(std::make_unique<data::TarFiles>(archives, options)) {}

TarStream::~TarStream() = default;
TarStream::TarStream(TarStream&& other) noexcept = default;
TarStream& TarStream::operator=(TarStream&& other) noexcept = default;

std::optional<TarSample> TarStream::next() { return files_->next(); }
void TarStream::reset() { files_->reset(); }
void TarStream::select_files(int world, int rank) { files_->select(world, rank); }
void TarStream::save(StateWriter& out) const { files_->save(out); }
void TarStream::load(const StateReader& in) { files_->load(in); }

}  // namespace hortator
