#include "formats/hdf5/view.hpp"

#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/hdf5/file.hpp"
#include "formats/hdf5/memory_file.hpp"
#include "formats/hdf5/structure.hpp"
#include "formats/hdf5/type.hpp"
#include "formats/tensor/boxes.hpp"

namespace hortator::formats {
namespace {

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
