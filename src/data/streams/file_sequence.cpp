#include "data/streams/file_sequence.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {

FileSequence::FileSequence(std::vector<std::filesystem::path> files) : all_(std::move(files)), files_(all_) {
  if (all_.empty()) throw UsageError({.what = "A stream of no files was constructed", .hint = "name the files"});
  for (const auto& file : all_) ContentFile(file).position();
}

void FileSequence::select(int world, int rank) {
  if (all_.size() < static_cast<std::size_t>(world)) {
    throw UsageError({.what = text::concat("Each of ", world, " ranks was to read files of its own, and there ",
                                           all_.size() == 1 ? "is " : "are ",
                                           text::count(static_cast<long long>(all_.size()), "file")),
                      .hint = "divide the data into more files, or leave out FilesPerRank"});
  }
  files_.clear();
  for (auto file = static_cast<std::size_t>(rank); file < all_.size(); file += static_cast<std::size_t>(world))
    files_.push_back(all_[file]);
  go_to(0, 0);
}

void FileSequence::go_to(std::size_t file, std::uint64_t position) {
  at_ = file;
  start_ = position;
  open_ = nullptr;
}

ContentFile* FileSequence::current() {
  if (open_ || at_ >= files_.size()) return open_.get();
  auto file = std::make_unique<ContentFile>(files_[at_]);
  if (!file->go_to(start_)) {
    throw formats::FileError(
        {.what = text::concat(file->path(), " has ", file->position(), " bytes, and ", start_, " had been read of it"),
         .why = "it is not the file that the checkpoint was made with"});
  }
  open_ = std::move(file);
  return open_.get();
}

void FileSequence::save(StateWriter& out, std::uint64_t position) const {
  out.put("files", files_.size());
  out.put("file", at_);
  out.put("position", position);
}

void FileSequence::load(const StateReader& in) {
  if (const auto files = in.get<std::uint64_t>("files"); files != files_.size()) {
    throw UsageError({.what = text::concat("A stream of ", text::count(static_cast<long long>(files), "file"),
                                           " was saved, and this one has ", files_.size()),
                      .hint = "resume with the files that the checkpoint was made with and, with FilesPerRank, on the "
                              "same number of ranks"});
  }
  go_to(in.get<std::uint64_t>("file"), in.get<std::uint64_t>("position"));
}

}  // namespace hortator::data
