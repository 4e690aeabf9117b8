#include "formats/hdf5/file.hpp"

#include <algorithm>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

// Metadata is stored in blocks of this size, so that few requests read it.
constexpr hsize_t structure_block_bytes = hsize_t{1} << 14;

PropertyList access_list() {
  auto list = PropertyList(check(H5Pcreate(H5P_FILE_ACCESS), "make a file access list"));
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  check(H5Pset_file_locking(list.get(), false, true), "turn file locking off");
#endif
  return list;
}

/// Metadata is written once, when the file is closed.
void keep_structure_in_cache(const PropertyList& access) {
  constexpr auto task = "choose the size of the cache";
  constexpr std::size_t bytes = std::size_t{1} << 25;
  H5AC_cache_config_t cache{};
  cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  check(H5Pget_mdc_config(access.get(), &cache), task);
  cache.set_initial_size = true;
  cache.initial_size = bytes;
  cache.min_size = bytes;
  cache.max_size = std::max(cache.max_size, bytes);
  cache.incr_mode = H5C_incr__off;
  cache.flash_incr_mode = H5C_flash_incr__off;
  cache.decr_mode = H5C_decr__off;
  check(H5Pset_mdc_config(access.get(), &cache), task);
}

}  // namespace

PropertyList access_list_for_writing() {
  const Hdf5Lock lock;
  auto list = access_list();
  // Only virtual datasets need the format of 1.10.
  check(H5Pset_libver_bounds(list.get(), H5F_LIBVER_V18, H5F_LIBVER_V110), "choose the format of HDF5 1.8");
  check(H5Pset_meta_block_size(list.get(), structure_block_bytes), "choose the size of structure blocks");
  return list;
}

PropertyList creation_list() {
  const Hdf5Lock lock;
  auto list = PropertyList(check(H5Pcreate(H5P_FILE_CREATE), "make a file creation list"));
  check(H5Pset_obj_track_times(list.get(), false), "leave times out");  // so that equal states give equal files
  return list;
}

File create_file(MemoryFile& memory) {
  const Hdf5Lock lock;
  const auto access = access_list_for_writing();
  keep_structure_in_cache(access);
  const auto creation = creation_list();
  memory.use_in(access);
  return File(check(H5Fcreate("in memory", H5F_ACC_TRUNC, creation.get(), access.get()), "create a file in memory"));
}

File open_file(const std::filesystem::path& path) {
  const Hdf5Lock lock;
  const auto access = access_list();
  return File(check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), text::concat("open ", path)));
}

}  // namespace hortator::formats
