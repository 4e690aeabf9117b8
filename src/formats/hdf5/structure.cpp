#include "formats/hdf5/structure.hpp"

#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/hdf5/dataset.hpp"
#include "formats/hdf5/file.hpp"
#include "formats/hdf5/memory_file.hpp"
#include "formats/tensor/tensor_ranges.hpp"

namespace hortator::formats {
namespace {

// HDF5 has no empty strings, so a string is stored with one zero byte more.
Type text_type(std::size_t length) {
  constexpr auto task = "make the type of a text";
  auto type = Type(check(H5Tcopy(H5T_C_S1), task));
  check(H5Tset_size(type.get(), length + 1), task);
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), task);
  return type;
}

void write(hid_t object, const std::string& name, const Type& type, const void* data) {
  const auto task = "write the attribute " + text::quote(name);
  const auto scalar = Space(check(H5Screate(H5S_SCALAR), task));
  const auto attribute =
      Attribute(check(H5Acreate2(object, name.c_str(), type.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT), task));
  check(H5Awrite(attribute.get(), type.get(), data), task);
}

Type number_type(hid_t predefined) { return Type(check(H5Tcopy(predefined), "copy an HDF5 type")); }

void write_value(hid_t object, const std::string& name, std::int64_t value) {
  write(object, name, number_type(H5T_STD_I64LE), &value);
}
void write_value(hid_t object, const std::string& name, double value) {
  write(object, name, number_type(H5T_IEEE_F64LE), &value);
}
void write_value(hid_t object, const std::string& name, const std::string& value) {
  write(object, name, text_type(value.size()), value.c_str());
}

PropertyList group_list() {
  const Hdf5Lock lock;
  auto list = PropertyList(check(H5Pcreate(H5P_GROUP_CREATE), "make a group creation list"));
  check(H5Pset_obj_track_times(list.get(), false), "leave times out");  // so that equal states give equal files
  return list;
}

PropertyList link_list() {
  const Hdf5Lock lock;
  constexpr auto task = "make a link creation list";
  auto list = PropertyList(check(H5Pcreate(H5P_LINK_CREATE), task));
  check(H5Pset_char_encoding(list.get(), H5T_CSET_UTF8), task);
  return list;
}

PropertyList layout_list() {
  const Hdf5Lock lock;
  constexpr auto task = "make a dataset creation list";
  auto list = PropertyList(check(H5Pcreate(H5P_DATASET_CREATE), task));
  check(H5Pset_layout(list.get(), H5D_CONTIGUOUS), task);
  check(H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY), task);
  check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), task);
  check(H5Pset_obj_track_times(list.get(), false), task);
  return list;
}

bool speaks_for_itself(at::ScalarType type) {
  return type == at::kFloat || type == at::kDouble || at::isIntegralType(type, /*includeBool=*/false);
}

void select(const Space& space, const TensorBlock& box) {
  if (box.begin.empty()) return;
  const std::vector<hsize_t> begin(box.begin.begin(), box.begin.end());
  const std::vector<hsize_t> count(box.count.begin(), box.count.end());
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, begin.data(), nullptr, count.data(), nullptr),
        "select a part of a dataset");
}

/// Adds a mapping for each box of the tensor that the part fills; in the part they are contiguous.
void map_part(const PropertyList& mapping, const ViewedTensor& tensor, const ViewedTensor::FileDataset& part) {
  auto next = std::int64_t{0};
  for (const auto& box : boxes_of(tensor.spec.shape, part.elements)) {
    const auto whole = space_of(tensor.spec);
    const auto there = space_of(part.spec);
    select(whole, box);
    // Parts are whole rows of the tensor or flat, so each box is one box there, too.
    select(there, boxes_of(part.spec.shape, {next, next + box.elements()}).front());
    next += box.elements();
    check(H5Pset_virtual(mapping.get(), whole.get(), part.file.c_str(), tensor.name.c_str(), there.get()),
          "map the dataset " + text::quote(tensor.name));
  }
}

// In a function of its own: a file with open groups stays open, so they must be closed first.
void add_all(const File& file, const std::vector<ViewedTensor>& tensors) {
  const Hdf5Lock lock;
  StructureWriter out(file);
  for (const auto& tensor : tensors) {
    const auto mapping = PropertyList(check(H5Pcreate(H5P_DATASET_CREATE), "make a dataset creation list"));
    check(H5Pset_obj_track_times(mapping.get(), false), "leave times out");
    for (const auto& part : tensor.parts) map_part(mapping, tensor, part);
    out.add_virtual(tensor.name, tensor.spec, mapping);
  }
}

}  // namespace

void write_attribute(hid_t object, const std::string& name, const SmallValue& value) {
  const Hdf5Lock lock;
  std::visit([&](const auto& plain) { write_value(object, name, plain); }, value);
}

Space space_of(const TensorSpec& spec) {
  if (spec.shape.empty()) return Space(check(H5Screate(H5S_SCALAR), "make a scalar space"));
  const std::vector<hsize_t> sizes(spec.shape.begin(), spec.shape.end());
  return Space(check(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), "make a space"));
}

StructureWriter::StructureWriter(const File& file)
    : file_(file), groups_(group_list()), links_(link_list()), layout_(layout_list()) {}

const Type& StructureWriter::type(at::ScalarType scalar) {
  const auto known = types_.find(scalar);
  return known != types_.end() ? known->second : types_.emplace(scalar, file_type(scalar)).first->second;
}

const Group& StructureWriter::group(const std::string& folder) {
  const auto holds = [&](const std::string& path) {
    return path.empty() || folder == path || folder.starts_with(path + "/");
  };
  if (open_.empty()) open_.emplace_back("", root_group(file_));
  while (!holds(open_.back().first)) open_.pop_back();
  while (open_.back().first != folder) {
    const auto& [path, parent] = open_.back();
    const auto begin = path.empty() ? 0 : path.size() + 1;
    const auto next = folder.substr(0, folder.find('/', begin));
    const auto name = next.substr(begin);
    const auto task = "make the group " + text::quote(next);
    const bool exists = check(H5Lexists(parent.get(), name.c_str(), H5P_DEFAULT), task) > 0;
    const auto id = exists ? H5Gopen2(parent.get(), name.c_str(), H5P_DEFAULT)
                           : H5Gcreate2(parent.get(), name.c_str(), links_.get(), groups_.get(), H5P_DEFAULT);
    open_.emplace_back(next, Group(check(id, task)));
  }
  return open_.back().second;
}

void StructureWriter::create(const std::string& name, const TensorSpec& spec, const PropertyList& layout) {
  const auto place = place_of(name);
  const auto space = space_of(spec);
  last_.clear();
  last_.emplace_back(check(H5Dcreate2(group(place.folder).get(), place.name.c_str(), type(spec.type).get(), space.get(),
                                      links_.get(), layout.get(), H5P_DEFAULT),
                           "create the dataset " + text::quote(name)));
  if (!speaks_for_itself(spec.type)) add_to_last("torch_dtype", std::string(type_name(spec.type)));
}

StoredTensor StructureWriter::add(const std::string& name, const TensorSpec& spec) {
  const Hdf5Lock lock;
  create(name, spec, layout_);
  if (spec.elements() == 0) return {.spec = spec};
  const auto offset = H5Dget_offset(last_.back().get());
  if (offset == HADDR_UNDEF)
    throw_hdf5_error("place the dataset " + text::quote(name), std::source_location::current());
  return {.spec = spec, .offset = static_cast<std::int64_t>(offset)};
}

void StructureWriter::add_virtual(const std::string& name, const TensorSpec& spec, const PropertyList& mapping) {
  const Hdf5Lock lock;
  create(name, spec, mapping);
}

void StructureWriter::add(const std::string& name, const SmallValue& value) {
  const Hdf5Lock lock;
  const auto place = place_of(name);
  write_attribute(group(place.folder).get(), place.name, value);
}

void StructureWriter::add_to_last(const std::string& attribute, const SmallValue& value) {
  write_attribute(last_.back().get(), attribute, value);
}

void write_view(const std::filesystem::path& path, const std::vector<ViewedTensor>& tensors) {
  MemoryFile memory;
  auto file = create_file(memory);
  add_all(file, tensors);
  file.close("write a view of several files");
  auto written = RawFile::create(path);
  memory.copy_to(written);
  written.sync();
  written.close();
}

}  // namespace hortator::formats
