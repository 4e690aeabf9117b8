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

std::string name_of_child(hid_t group, hsize_t index) {
  constexpr auto task = "list a group";
  const auto name = [&](char* buffer, std::size_t size) {
    return check(H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, buffer, size, H5P_DEFAULT), task);
  };
  std::string result(static_cast<std::size_t>(name(nullptr, 0)), '\0');
  name(result.data(), result.size() + 1);
  return result;
}

void require_hard_link(hid_t group, const std::string& name) {
  H5L_info_t link;
  check(H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT), "look at the link " + text::quote(name));
  if (link.type == H5L_TYPE_HARD) return;
  throw FileError({.what = "The file has a soft or external link " + text::quote(name),
                   .why = "Hortator does not write such links"});
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

Group root_group(const File& file) {
  const Hdf5Lock lock;
  return Group(check(H5Gopen2(file.get(), "/", H5P_DEFAULT), "open the root group"));
}

std::variant<Group, Dataset> open_object(const Group& group, const std::string& name) {
  const Hdf5Lock lock;
  const hid_t id = check(H5Oopen(group.get(), name.c_str(), H5P_DEFAULT), "open " + text::quote(name));
  if (H5Iget_type(id) == H5I_GROUP) return Group(id);
  if (H5Iget_type(id) == H5I_DATASET) return Dataset(id);
  const Object other(id);
  throw FileError(
      {.what = text::quote(name) + " is neither a group nor a dataset", .why = "Hortator writes nothing else"});
}

std::vector<std::string> children(const Group& group) {
  const Hdf5Lock lock;
  H5G_info_t info;
  check(H5Gget_info(group.get(), &info), "count a group's members");
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    names.push_back(name_of_child(group.get(), i));
    require_hard_link(group.get(), names.back());
  }
  return names;
}

}  // namespace hortator::formats
