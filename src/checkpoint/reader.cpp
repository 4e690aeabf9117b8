#include "checkpoint/reader.hpp"

#include <ATen/ops/empty.h>

#include "base/text.hpp"
#include "checkpoint/format.hpp"
#include "io/file_error.hpp"
#include "io/replacement.hpp"
#include "io/tensor_slab.hpp"

namespace hortator::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Full, and without a trailing slash, so that its last part is its name.
fs::path plain(const fs::path& folder) { return (fs::absolute(folder) / "").lexically_normal().parent_path(); }

fs::path find_folder(const fs::path& asked) {
  auto folder = io::find_published(plain(asked));
  if (!fs::is_directory(folder)) {
    throw io::FileError({.what = text::concat("there is no checkpoint ", folder, ": no such folder"),
                         .hint = "name the folder that was given to save_state"});
  }
  if (!fs::exists(folder / state_file)) {
    throw io::FileError({.what = text::concat("there is no checkpoint in ", folder, ": it holds no ", state_file),
                         .hint = "name the folder that was given to save_state"});
  }
  return folder;
}

bool is_own(const std::string& name) { return name.starts_with(std::string(ranks_folder) + "/"); }

TensorSpecs common_specs(const Contents& contents) {
  TensorSpecs specs;
  for (const auto& [name, stored] : contents.tensors) {
    if (!is_own(name)) specs.emplace(name, stored.spec);
  }
  return specs;
}

StateDict common_values(const Contents& contents) {
  StateDict values;
  for (const auto& [name, value] : contents.values.values()) {
    if (!is_own(name)) std::visit([&](const auto& plain) { values.put(name, plain); }, value);
  }
  return values;
}

std::vector<std::string> names_of(const TensorSpecs& specs) {
  std::vector<std::string> names;
  for (const auto& [name, spec] : specs) names.push_back(name);
  return names;
}

}  // namespace

bool exists(const fs::path& folder) {
  std::error_code unreadable;
  return fs::exists(io::find_published(plain(folder)) / state_file, unreadable);
}

Reader::Reader(const fs::path& folder)
    : folder_(find_folder(folder)),
      contents_(read_contents(folder_ / state_file)),
      file_(io::RawFile::open_for_reading(folder_ / state_file)),
      specs_(common_specs(contents_)),
      values_(common_values(contents_)) {}

const io::StoredTensor& Reader::find(const std::string& name) const {
  if (specs_.contains(name)) return contents_.tensors.at(name);
  throw io::FileError({.what = text::concat("the checkpoint ", folder_, " has no tensor ", text::quote(name)),
                       .hint = specs_.empty() ? "it has none at all" : text::suggestion(name, names_of(specs_))});
}

void Reader::read_bytes(const std::string& name, const io::StoredTensor& stored, const at::Tensor& tensor) const {
  try {
    io::read_slab(file_, stored.offset, tensor, {0, tensor.numel()});
  } catch (const std::exception& error) {
    throw io::FileError({.what = text::concat("the tensor ", text::quote(name), " cannot be read: ", error.what())});
  }
}

at::Tensor Reader::read_stored(const std::string& name, const io::StoredTensor& stored) const {
  auto tensor = at::empty(stored.spec.shape, at::TensorOptions().dtype(stored.spec.type));
  read_bytes(name, stored, tensor);
  return tensor;
}

at::Tensor Reader::read(const std::string& name) const { return read_stored(name, find(name)); }

void Reader::read_into(const std::string& name, const at::Tensor& tensor) const {
  const auto& stored = find(name);
  if (io::spec_of(tensor) != stored.spec) {
    throw io::FileError(
        {.what = text::concat("the tensor ", text::quote(name), " is ", io::to_string(stored.spec),
                              " in the checkpoint ", folder_, " and ", io::to_string(io::spec_of(tensor)), " here"),
         .hint = "build the model that was saved"});
  }
  read_bytes(name, stored, tensor);
}

StateDict Reader::own(int rank) const {
  if (rank < 0 || rank >= world_size()) {
    throw UsageError({.what = text::concat("the checkpoint ", folder_, " has nothing of rank ", rank),
                      .why = text::concat("it was written by ", text::count(world_size(), "rank"))});
  }
  const auto folder = rank_folder(rank);
  auto state = contents_.values.under(folder);
  for (const auto& [name, stored] : contents_.tensors) {
    if (name.starts_with(folder + "/")) state.put(name.substr(folder.size() + 1), read_stored(name, stored));
  }
  return state;
}

void Reader::check(const TensorSpecs& expected) const {
  const auto lines = mismatches(expected, specs_);
  if (lines.empty()) return;
  throw io::FileError({.what = text::concat("the checkpoint ", folder_, " does not fit: ", text::join(lines, "; ")),
                       .why = "nothing was changed",
                       .hint = "build the same models and optimizers as when it was saved"});
}

}  // namespace hortator::checkpoint
