#include "formats/hdf5/column.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/text/text.hpp"
#include "formats/hdf5/dataset.hpp"
#include "formats/tensor/stored_rows.hpp"

namespace hortator::formats {
namespace {

constexpr std::size_t min_cache_bytes = std::size_t{1} << 20;
constexpr std::size_t max_cache_bytes = std::size_t{1} << 28;  // unless the user asks for more

Dataset open(const File& file, const std::string& name, const std::string& what, const PropertyList& access) {
  return Dataset(check(H5Dopen2(file.get(), name.c_str(), access.get()), "open the dataset " + what));
}

PropertyList dataset_access() {
  return PropertyList(check(H5Pcreate(H5P_DATASET_ACCESS), "make a dataset access list"));
}

std::vector<std::int64_t> chunk_of(const Dataset& dataset, std::size_t dimensions) {
  const auto list = PropertyList(check(H5Dget_create_plist(dataset.get()), "read a dataset's layout"));
  if (H5Pget_layout(list.get()) != H5D_CHUNKED) return {};
  std::vector<hsize_t> chunk(dimensions);
  check(H5Pget_chunk(list.get(), static_cast<int>(dimensions), chunk.data()), "read a dataset's chunks");
  return {chunk.begin(), chunk.end()};
}

std::vector<std::int64_t> rows_shape(const Dataset& dataset, const std::string& what) {
  const auto space = Space(check(H5Dget_space(dataset.get()), "read the shape of " + what));
  if (H5Sget_simple_extent_type(space.get()) != H5S_SIMPLE) {
    throw FileError({.what = text::concat("The dataset ", what, " has no rows"), .why = "it is a scalar or empty"});
  }
  std::vector<hsize_t> sizes(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get())));
  H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
  return {sizes.begin(), sizes.end()};
}

at::ScalarType element_type(const Dataset& dataset, const std::string& what) {
  const auto stored = Type(check(H5Dget_type(dataset.get()), "read the type of " + what));
  if (const auto type = scalar_type(stored)) return *type;
  const auto native = H5Tget_native_type(stored.get(), H5T_DIR_ASCEND);
  if (native >= 0) {
    if (const auto type = scalar_type(Type(native))) return *type;
  }
  throw FileError({.what = text::concat("The dataset ", what, " has elements that no tensor can hold"),
                   .why = "only numbers can be read, not strings, compounds or references"});
}

PropertyList access_with_cache(std::size_t bytes) {
  constexpr double drop_read_ones_first = 1;
  constexpr std::size_t slots = 12421;  // a prime well above the number of chunks held
  auto list = dataset_access();
  check(H5Pset_chunk_cache(list.get(), slots, bytes, drop_read_ones_first), "choose the size of the chunk cache");
  return list;
}

struct SortedRows {
  std::vector<std::int64_t> rows;      ///< ascending, unique
  std::vector<std::size_t> positions;  ///< of each requested row among them
};

SortedRows sorted(std::span<const std::int64_t> rows) {
  SortedRows result{.rows = {rows.begin(), rows.end()}, .positions = {}};
  std::ranges::sort(result.rows);
  result.rows.erase(std::unique(result.rows.begin(), result.rows.end()), result.rows.end());
  for (const auto row : rows) {
    const auto found = std::ranges::lower_bound(result.rows, row);
    result.positions.push_back(static_cast<std::size_t>(found - result.rows.begin()));
  }
  return result;
}

bool ascends(std::span<const std::int64_t> rows) {
  return std::ranges::adjacent_find(rows, std::greater_equal<>()) == rows.end();
}

}  // namespace

Hdf5Column::Hdf5Column(const File& file, const FixedFile& bytes, const std::string& name, std::size_t cache_bytes)
    : what_(text::concat(text::quote(name), " of ", bytes.path())),
      bytes_(&bytes),
      dataset_(H5I_INVALID_HID),
      space_(H5I_INVALID_HID),
      memory_type_(H5I_INVALID_HID) {
  const Hdf5Lock lock;
  dataset_ = open(file, name, what_, dataset_access());
  auto shape = rows_shape(dataset_, what_);
  row_.type = element_type(dataset_, what_);
  const auto chunk = chunk_of(dataset_, shape.size());
  rows_ = shape.front();
  row_.shape.assign(shape.begin() + 1, shape.end());
  if (!byte_count({.type = row_.type, .shape = std::move(shape)}))
    throw FileError({.what = text::concat("The dataset ", what_, " is larger than any memory")});
  memory_type_ = file_type(row_.type);
  if (!chunk.empty()) choose_cache(file, name, chunk.front(), cache_bytes);
  space_ = Space(check(H5Dget_space(dataset_.get()), "read the shape of " + what_));
  find_in_file();
  constexpr std::int64_t first = 0;
  if (rows_ > 0) read({&first, 1});
}

// With too small a cache, each row decompresses its chunk again. A row crosses all chunks of the other dimensions.
void Hdf5Column::choose_cache(const File& file, const std::string& name, std::int64_t chunk_rows,
                              std::size_t cache_bytes) {
  chunk_rows_ = chunk_rows;
  if (cache_bytes == 0) {
    auto stretch = row_;
    stretch.shape.insert(stretch.shape.begin(), {max_mixed_chunks + 1, chunk_rows});
    const auto bytes = byte_count(stretch);
    cache_bytes =
        bytes ? std::clamp(static_cast<std::size_t>(*bytes), min_cache_bytes, max_cache_bytes) : max_cache_bytes;
  }
  dataset_ = Dataset(H5I_INVALID_HID);  // close it first: of several open handles the cache of the first counts
  dataset_ = open(file, name, what_, access_with_cache(cache_bytes));
}

// Only if HDF5 would neither decompress nor convert nor fill in values.
void Hdf5Column::find_in_file() {
  if (rows_ == 0) return;
  const auto list = PropertyList(check(H5Dget_create_plist(dataset_.get()), "read a dataset's layout"));
  const auto stored = Type(check(H5Dget_type(dataset_.get()), "read the type of " + what_));
  if (H5Pget_layout(list.get()) != H5D_CONTIGUOUS || H5Pget_external_count(list.get()) != 0) return;
  if (check(H5Tequal(stored.get(), memory_type_.get()), "compare HDF5 types") <= 0) return;
  const auto bytes = static_cast<std::uint64_t>(rows_ * row_.bytes());
  const std::uint64_t offset = H5Dget_offset(dataset_.get());
  if (bytes == 0 || offset == HADDR_UNDEF || H5Dget_storage_size(dataset_.get()) != bytes) return;
  if (offset > bytes_->bytes() || bytes > bytes_->bytes() - offset)
    throw FileError({.what = text::concat("The dataset ", what_, " reaches beyond the end of the file"),
                     .hint = "it is truncated: copy it again"});
  in_file_ = StoredRows{.row = row_, .rows = rows_, .offset = offset};
}

void Hdf5Column::read_run(std::int64_t first, std::int64_t count, void* to) const {
  const auto task = "read the dataset " + what_;
  std::vector<hsize_t> start(row_.shape.size() + 1, 0);
  std::vector<hsize_t> sizes(row_.shape.begin(), row_.shape.end());
  start.front() = static_cast<hsize_t>(first);
  sizes.insert(sizes.begin(), static_cast<hsize_t>(count));
  check(H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, start.data(), nullptr, sizes.data(), nullptr), task);
  const auto memory = Space(check(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), task));
  check(H5Dread(dataset_.get(), memory_type_.get(), memory.get(), space_.get(), H5P_DEFAULT, to), task);
}

at::Tensor Hdf5Column::read_sorted(std::span<const std::int64_t> rows) const {
  auto tensor = empty_rows(row_, rows.size());
  const auto row_bytes = static_cast<std::size_t>(row_.bytes());
  if (row_bytes == 0) return tensor;
  auto* to = static_cast<std::byte*>(tensor.mutable_data_ptr());
  const Hdf5Lock lock;
  for_each_run(rows, [&](std::size_t at, std::int64_t first, std::int64_t count) {
    read_run(first, count, to + at * row_bytes);
  });
  return tensor;
}

at::Tensor Hdf5Column::read(std::span<const std::int64_t> rows) const {
  if (in_file_) return read_rows(*bytes_, *in_file_, rows);
  if (ascends(rows)) return read_sorted(rows);
  const auto order = sorted(rows);
  const auto fetched = read_sorted(order.rows);
  auto tensor = empty_rows(row_, rows.size());
  const auto row_bytes = static_cast<std::size_t>(row_.bytes());
  const auto* from = static_cast<const std::byte*>(fetched.const_data_ptr());
  auto* to = static_cast<std::byte*>(tensor.mutable_data_ptr());
  for (std::size_t i = 0; i < rows.size() && row_bytes > 0; ++i)
    std::memcpy(to + i * row_bytes, from + order.positions[i] * row_bytes, row_bytes);
  return tensor;
}

}  // namespace hortator::formats
