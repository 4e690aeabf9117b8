#include "formats/hdf5/dataset.hpp"

#include <limits>

#include "core/text/text.hpp"
#include "formats/hdf5/type.hpp"

namespace hortator::formats {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& problem) {
  throw FileError({.what = text::concat("The dataset ", text::quote(name), " ", problem),
                   .why = "Hortator does not write such datasets",
                   .hint = "the file is damaged, or another program wrote or changed it"});
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

// Sizes come from a file, so their product may overflow.
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

Dataset open_dataset(const File& file, const std::string& name) {
  const Hdf5Lock lock;
  return Dataset(check(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), "open the dataset " + text::quote(name)));
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

}  // namespace hortator::formats
