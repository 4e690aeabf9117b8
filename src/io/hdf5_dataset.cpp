#include "io/hdf5_dataset.hpp"

#include <limits>

#include "base/text.hpp"
#include "io/hdf5_attribute.hpp"
#include "io/hdf5_group.hpp"
#include "io/hdf5_type.hpp"

namespace hortator::io {
namespace {

Space space_of(const TensorSpec& spec) {
  if (spec.shape.empty()) return Space(check(H5Screate(H5S_SCALAR), "make a scalar space"));
  const std::vector<hsize_t> sizes(spec.shape.begin(), spec.shape.end());
  return Space(check(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), "make a space"));
}

PropertyList creation_list() {
  constexpr auto task = "make a dataset creation list";
  auto list = PropertyList(check(H5Pcreate(H5P_DATASET_CREATE), task));
  check(H5Pset_layout(list.get(), H5D_CONTIGUOUS), task);
  check(H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY), task);
  check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), task);
  check(H5Pset_obj_track_times(list.get(), false), task);  // the same state gives the same file
  return list;
}

PropertyList link_list() {
  constexpr auto task = "make a link creation list";
  auto list = PropertyList(check(H5Pcreate(H5P_LINK_CREATE), task));
  check(H5Pset_char_encoding(list.get(), H5T_CSET_UTF8), task);
  return list;
}

[[noreturn]] void refuse(const std::string& name, const std::string& problem) {
  throw FileError({.what = text::concat("the dataset ", text::quote(name), " ", problem),
                   .why = "Hortator writes none like this",
                   .hint = "the file is damaged, or another program made or changed it"});
}

std::vector<std::int64_t> shape_of(const Dataset& dataset, const std::string& name) {
  const auto task = "read the shape of " + text::quote(name);
  const auto space = Space(check(H5Dget_space(dataset.get()), task));
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) refuse(name, "has no shape");
  std::vector<hsize_t> sizes(static_cast<std::size_t>(check(H5Sget_simple_extent_ndims(space.get()), task)));
  check(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), task);
  return {sizes.begin(), sizes.end()};
}

at::ScalarType type_of(const Dataset& dataset, const std::string& name) {
  const auto stored = Type(check(H5Dget_type(dataset.get()), "read the type of " + text::quote(name)));
  const auto type = scalar_type(stored);
  if (!type) refuse(name, "has a type that tensors do not have");
  return *type;
}

// Sizes come from a file: they may be anything, also such that their product overflows.
bool counts_bytes(const TensorSpec& spec, std::uint64_t expected) {
  std::uint64_t bytes = c10::elementSize(spec.type);
  for (const auto size : spec.shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) return false;
  }
  return bytes == expected;
}

bool is_contiguous(const Dataset& dataset) {
  const auto list = PropertyList(check(H5Dget_create_plist(dataset.get()), "read a dataset's layout"));
  return H5Pget_layout(list.get()) == H5D_CONTIGUOUS && H5Pget_external_count(list.get()) == 0;
}

}  // namespace

StoredTensor create_dataset(const File& file, const std::string& name, const TensorSpec& spec) {
  const Hdf5Lock lock;
  const auto type = file_type(spec.type);
  const auto space = space_of(spec);
  const auto links = link_list();
  const auto layout = creation_list();
  const auto task = "create the dataset " + text::quote(name);
  const auto place = place_of(name);
  const auto group = make_group(file, place.folder);
  const auto dataset = Dataset(check(
      H5Dcreate2(group.get(), place.name.c_str(), type.get(), space.get(), links.get(), layout.get(), H5P_DEFAULT),
      task));
  write_attribute(dataset.get(), "torch_dtype", std::string(type_name(spec.type)));
  if (spec.elements() == 0) return {.spec = spec};
  const auto offset = H5Dget_offset(dataset.get());
  if (offset == HADDR_UNDEF) throw_hdf5_error(task, std::source_location::current());
  return {.spec = spec, .offset = static_cast<std::int64_t>(offset)};
}

StoredTensor inspect_dataset(const Dataset& dataset, const std::string& name, std::uint64_t file_bytes) {
  const Hdf5Lock lock;
  StoredTensor stored = {.spec = {.type = type_of(dataset, name), .shape = shape_of(dataset, name)}};
  if (!is_contiguous(dataset)) refuse(name, "is not contiguous in the file");
  const std::uint64_t bytes = H5Dget_storage_size(dataset.get());
  if (!counts_bytes(stored.spec, bytes)) refuse(name, "takes another number of bytes than its shape says");
  if (bytes == 0) return stored;
  const std::uint64_t offset = H5Dget_offset(dataset.get());
  if (offset > file_bytes || bytes > file_bytes - offset) refuse(name, "reaches beyond the end of the file");
  stored.offset = static_cast<std::int64_t>(offset);
  return stored;
}

}  // namespace hortator::io
