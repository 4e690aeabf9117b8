#include "paging/stores/common_scratch.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::paging {
namespace {

namespace fs = std::filesystem;

/// A file's name, which goes with this.
class PassingName {
 public:
  PassingName() = default;
  ~PassingName() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  PassingName(const PassingName&) = delete;
  PassingName& operator=(const PassingName&) = delete;
  void take(fs::path path) { path_ = std::move(path); }

 private:
  fs::path path_;
};

using Letters = std::array<char, 4096>;  // what Linux takes for a path, with the zero at its end

Letters letters_of(const fs::path& path) {
  const auto text = fs::absolute(path).string();
  Letters characters{};
  if (text.size() >= characters.size())
    throw Error(
        {.what = text::concat("the path of a scratch file has ", text.size(), " letters: ", text.substr(0, 80), "..."),
         .why = text::concat("Linux takes ", characters.size() - 1),
         .hint = "give offload_folder a shorter path"});
  std::copy(text.begin(), text.end(), characters.begin());
  return characters;
}

// @collective
fs::path path_of_first(comm::Communicator& ranks, Letters characters) {
  const auto size = static_cast<std::int64_t>(characters.size());
  ranks.broadcast(at::from_blob(characters.data(), {size}, at::kByte), 0).wait();
  return characters.data();
}

}  // namespace

CommonScratch make_common_scratch(comm::Communicator& ranks, const fs::path& folder, std::uint64_t bytes,
                                  const mpi::AllOrNone& all_or_none) {
  const bool is_first = ranks.rank() == 0;
  std::optional<formats::RawFile> file;
  {
    PassingName name;
    Letters characters{};
    all_or_none([&] {
      if (!is_first) return;
      formats::make_folder(folder);
      file = formats::RawFile::create_to_pass_on(folder);
      name.take(file->path());
      characters = letters_of(file->path());
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
