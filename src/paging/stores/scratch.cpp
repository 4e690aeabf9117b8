#include "paging/stores/scratch.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/scratch_memory.hpp"

namespace hortator::paging {
namespace {

namespace fs = std::filesystem;

/// A file's name; the destructor removes it.
class TemporaryName {
 public:
  TemporaryName() = default;
  ~TemporaryName() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  void take(fs::path path) { path_ = std::move(path); }

 private:
  fs::path path_;
};

using PathBuffer = std::array<char, 4096>;  // the longest path of Linux, with its terminating zero

PathBuffer path_buffer(const fs::path& path) {
  const auto text = fs::absolute(path).string();
  PathBuffer characters{};
  if (text.size() >= characters.size())
    throw Error({.what = text::concat("The path of a scratch file has ", text.size(), " characters: '",
                                      text.substr(0, 80), "...'"),
                 .why = text::concat("Linux allows ", characters.size() - 1),
                 .hint = "use a folder with a shorter path for offloading"});
  std::copy(text.begin(), text.end(), characters.begin());
  return characters;
}

// @collective
fs::path path_of_first(comm::Communicator& ranks, PathBuffer characters) {
  const auto size = static_cast<std::int64_t>(characters.size());
  ranks.broadcast(at::from_blob(characters.data(), {size}, at::kByte), 0).wait();
  return characters.data();
}

}  // namespace

at::Tensor zeros_in_scratch(const std::filesystem::path& folder, std::int64_t elements, at::ScalarType type) {
  formats::make_folder(folder);
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(elements, 1)) * c10::elementSize(type);
  auto memory = std::make_shared<formats::ScratchMemory>(folder, bytes);
  auto* data = memory->data();
  return at::from_blob(
      data, {elements}, [memory = std::move(memory)](void*) mutable { memory.reset(); },
      at::TensorOptions().dtype(type));
}

CommonScratch make_common_scratch(comm::Communicator& ranks, const fs::path& folder, std::uint64_t bytes,
                                  const mpi::AllOrNone& all_or_none) {
  const bool is_first = ranks.rank() == 0;
  std::optional<formats::RawFile> file;
  {
    TemporaryName name;
    PathBuffer characters{};
    all_or_none([&] {
      if (!is_first) return;
      formats::make_folder(folder);
      file = formats::RawFile::create_to_pass_on(folder);
      name.take(file->path());
      characters = path_buffer(file->path());
    });
    const auto path = path_of_first(ranks, characters);
    all_or_none([&] {
      if (!is_first) file = formats::RawFile::open_passed_on(path);
    });
  }
  all_or_none([&] {
    if (is_first) file->occupy(bytes);
  });
  return {.file = *std::move(file), .rank = ranks.rank(), .ranks = ranks.size()};
}

}  // namespace hortator::paging
