#include "checkpoint/read/reader.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "checkpoint/format.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/replacement.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

namespace fs = std::filesystem;

/// The absolute path without a trailing slash, so that its last part is its name.
fs::path without_slash(const fs::path& folder) { return (fs::absolute(folder) / "").lexically_normal().parent_path(); }

[[noreturn]] void throw_absent(const fs::path& folder) {
  throw formats::FileError({.what = text::concat("There is no checkpoint ", folder, ": no such folder"),
                            .hint = "use the folder that was given to save_state"});
}

bool is_complete(const fs::path& folder) {
  try {
    read_manifest(folder);
    return true;
  } catch (const formats::FileError&) {
    return false;
  }
}

bool is_own(const std::string& name) { return name.starts_with(std::string(ranks_folder) + "/"); }

std::vector<std::string> names_of(const TensorSpecs& specs) {
  std::vector<std::string> names;
  for (const auto& [name, spec] : specs) names.push_back(name);
  return names;
}

/// @collective
Manifest read_for_all(const mpi::Communicator& comm, const fs::path& folder) {
  std::string text;
  mpi::all_or_none(comm, [&] {
    if (comm.rank() == 0) text = manifest_text(folder);
  });
  return parse_manifest(folder, mpi::broadcast(comm, std::string_view(text)));
}

}  // namespace

std::vector<fs::path> candidates(const fs::path& folder) {
  auto found = formats::generations(without_slash(folder));
  std::error_code none;  // set for dangling links
  std::erase_if(found, [&](const fs::path& one) { return !fs::is_directory(one, none); });
  return found;
}

fs::path find(const fs::path& folder) {
  const auto found = candidates(folder);
  if (found.empty()) throw_absent(without_slash(folder));
  if (found.front() == without_slash(folder)) return found.front();
  const auto complete = std::find_if(found.begin(), found.end(), is_complete);
  return complete == found.end() ? found.front() : *complete;
}

bool has_any_file(const fs::path& folder) {
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem)) {
    if (is_our_file(entry->path().filename().string())) return true;
  }
  return problem && problem != std::errc::no_such_file_or_directory && problem != std::errc::not_a_directory;
}

bool is_whole(const fs::path& folder, const Manifest& manifest) {
  return std::ranges::all_of(manifest.files, [&](const Manifest::File& file) {
    std::error_code missing;
    return fs::file_size(folder / file.name, missing) == static_cast<std::uintmax_t>(file.bytes);
  });
}

bool is_whole(const fs::path& folder) {
  try {
    return is_whole(folder, read_manifest(folder));
  } catch (const formats::FileError&) {
    return false;
  }
}

bool exists(const fs::path& folder) {
  const auto found = candidates(folder);
  return std::any_of(found.begin(), found.end(), is_complete);
}

Reader::Reader(fs::path folder, Manifest manifest, bool verify)
    : folder_(std::move(folder)),
      manifest_(std::make_unique<Manifest>(std::move(manifest))),
      blocks_(std::make_unique<BlockReader>(folder_, *manifest_, verify)) {
  for (const auto& [name, dataset] : manifest_->datasets) {
    if (!is_own(name)) specs_.emplace(name, dataset.spec);
  }
  for (const auto& [name, value] : manifest_->values.values()) {
    if (!is_own(name)) std::visit([&](const auto& plain) { values_.put(name, plain); }, value);
  }
}

Reader::Reader(const fs::path& folder, bool verify) : Reader(find(folder), verify, Exact{}) {}

Reader::Reader(const mpi::Communicator& comm, const fs::path& folder, bool verify)
    : Reader(without_slash(folder), read_for_all(comm, without_slash(folder)), verify) {}

Reader::Reader(const fs::path& folder, bool verify, Exact) : Reader(folder, read_manifest(folder), verify) {}

void Reader::require(const std::string& name) const {
  if (specs_.contains(name)) return;
  throw Error({.what = text::concat("The checkpoint ", folder_, " has no tensor ", text::quote(name)),
               .hint = specs_.empty() ? "it has none at all" : text::suggestion(name, names_of(specs_))});
}

at::Tensor Reader::read(const std::string& name) const {
  require(name);
  const auto& spec = specs_.at(name);
  auto tensor = at::empty(spec.shape, at::TensorOptions().dtype(spec.type));
  blocks_->read(name, tensor);
  return tensor;
}

at::Tensor Reader::read_part(const std::string& name, core::Range elements) const {
  require(name);
  auto part = at::empty({elements.size()}, at::TensorOptions().dtype(specs_.at(name).type));
  blocks_->read(name, elements, static_cast<std::byte*>(part.mutable_data_ptr()));
  return part;
}

void Reader::read_into(const std::string& name, const at::Tensor& tensor) const {
  require(name);
  const auto& spec = specs_.at(name);
  if (formats::spec_of(tensor) != spec) {
    throw Error(
        {.what = text::concat("The tensor ", text::quote(name), " is ", formats::to_string(spec), " in the checkpoint ",
                              folder_, " and ", formats::to_string(formats::spec_of(tensor)), " here"),
         .hint = "build the same model as the one that was saved"});
  }
  blocks_->read(name, tensor);
}

void Reader::read_elements(const std::string& name, core::Range elements, std::byte* to) const {
  require(name);
  blocks_->read(name, elements, to);
}

StateDict Reader::own(int rank) const { return own_in(rank, rank_folder(rank)); }

StateDict Reader::own(int rank, const std::string& folder) const {
  return own_in(rank, rank_folder(rank) + "/" + folder);
}

StateDict Reader::own_in(int rank, const std::string& path) const {
  if (rank < 0 || rank >= world_size()) {
    throw UsageError({.what = text::concat("The checkpoint ", folder_, " has no state of rank ", rank),
                      .why = text::concat("it was written by ", text::count(world_size(), "rank"))});
  }
  const auto prefix = path + "/";
  auto state = manifest_->values.under(path);
  for (auto one = manifest_->datasets.lower_bound(prefix);
       one != manifest_->datasets.end() && one->first.starts_with(prefix); ++one) {
    auto tensor = at::empty(one->second.spec.shape, at::TensorOptions().dtype(one->second.spec.type));
    blocks_->read(one->first, tensor);
    state.put(one->first.substr(prefix.size()), tensor);
  }
  return state;
}

std::vector<std::string> mismatches(const TensorSpecs& expected, const TensorSpecs& found) {
  std::vector<std::string> lines;
  for (const auto& [name, spec] : expected) {
    const auto other = found.find(name);
    if (other == found.end()) {
      lines.push_back(text::concat("missing ", text::quote(name), ", ", formats::to_string(spec)));
    } else if (other->second != spec) {
      lines.push_back(text::concat("unlike ", text::quote(name), ", ", formats::to_string(spec), " here and ",
                                   formats::to_string(other->second), " in the checkpoint"));
    }
  }
  for (const auto& [name, spec] : found) {
    if (!expected.contains(name))
      lines.push_back(text::concat("unexpected ", text::quote(name), ", ", formats::to_string(spec)));
  }
  return lines;
}

}  // namespace hortator::checkpoint
