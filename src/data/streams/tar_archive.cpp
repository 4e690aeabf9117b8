#include "data/streams/tar_archive.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::data {
namespace {

using formats::TarFault;

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

formats::FileBytes reader_of(ContentFile& file) {
  return [&file](std::uint64_t offset, void* to, std::size_t bytes) {
    if (file.go_to(offset) && file.read(to, bytes) == bytes) return;
    throw TarFault(text::concat("it ends at byte ", file.position(), " of its content: it is truncated"));
  };
}

}  // namespace

TarArchive::TarArchive(ContentFile& file, std::uint64_t max_bytes)
    : file_(file),
      max_bytes_(max_bytes),
      members_(reader_of(file), std::nullopt, file.position()),
      position_(file.position()) {}

std::optional<TarSample> TarArchive::next() {
  try {
    TarSample sample;
    if (!member_ && !is_over_) find_member();
    while (member_ && (sample.files.empty() || name_.key == sample.key)) {
      add_member(sample);
      find_member();
    }
    return sample.files.empty() ? std::nullopt : std::optional(std::move(sample));
  } catch (const TarFault& fault) {
    throw_invalid_tar(file_.path(), fault);
  }
}

/// Goes to the next file that is not hidden.
void TarArchive::find_member() {
  while (true) {
    position_ = members_.position();
    member_ = members_.next();
    is_over_ = !member_;
    if (is_over_) return require_zeros();
    if (auto name = TarName::divide(member_->name)) {
      name_ = *std::move(name);
      return;
    }
  }
}

void TarArchive::add_member(TarSample& sample) {
  sample.key = name_.key;
  const auto [place, is_new] = sample.files.emplace(name_.extension, "");
  if (!is_new)
    throw TarFault(text::concat("the sample ", text::quote(name_.key), " has two files with the extension ",
                                text::quote(name_.extension)));
  place->second = content();
}

/// Grows as the bytes come, whatever size the header has.
std::string TarArchive::content() const {
  if (member_->bytes > max_bytes_)
    throw TarFault(text::concat("the member ", text::quote(member_->name), " has ", member_->bytes,
                                " bytes; FileStreamOptions::max_record_bytes allows ", max_bytes_));
  std::string content;
  bool is_whole = file_.go_to(member_->offset);
  while (is_whole && content.size() < member_->bytes) {
    const auto before = content.size();
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, member_->bytes - before));
    content.resize(before + bytes);
    is_whole = file_.read(content.data() + before, bytes) == bytes;
  }
  if (is_whole) return content;
  throw TarFault(text::concat("it ends within the member ", text::quote(member_->name), ": it is truncated"));
}

/// The file is behind the mark of the archive's end.
void TarArchive::require_zeros() {
  std::array<char, 1 << 14> some{};
  while (const auto bytes = file_.read(some.data(), some.size())) {
    if (std::any_of(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(bytes), [](char c) { return c != 0; }))
      throw TarFault("more follows behind the mark of its end: archives that were joined have to be separate files");
  }
}

}  // namespace hortator::data
