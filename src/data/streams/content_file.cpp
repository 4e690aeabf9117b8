#include "data/streams/content_file.hpp"

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {
namespace {

template <typename Work>
auto naming(const formats::FixedFile& file, const Work& work) {
  try {
    return work();
  } catch (const formats::CompressionFault& fault) {
    throw formats::FileError({.what = text::concat(file.path(), " cannot be decompressed: ", fault.what()),
                              .hint = "copy it again, or compress it again"});
  }
}

}  // namespace

ContentFile::ContentFile(const std::filesystem::path& path)
    : file_(path),
      content_([this](std::uint64_t offset, void* to, std::size_t bytes) { file_.read_at(offset, to, bytes); },
               file_.bytes()) {
  file_.expect_front_to_back();
}

std::size_t ContentFile::read(void* to, std::size_t bytes) {
  const auto done = naming(file_, [&] { return content_.read(to, bytes); });
  if (done < bytes) file_.require_unchanged();
  return done;
}

bool ContentFile::go_to(std::uint64_t position) {
  return naming(file_, [&] { return content_.go_to(position); });
}

}  // namespace hortator::data
