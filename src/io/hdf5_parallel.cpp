#include "io/hdf5_parallel.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "io/boxes.hpp"
#include "io/hdf5_dataset.hpp"
#include "io/hdf5_file.hpp"
#include "io/hdf5_type.hpp"

namespace hortator::io {
namespace {

constexpr std::int64_t most_bytes_a_transfer = std::int64_t{1} << 30;

void write_box(const Dataset& dataset, const Type& type, const Box& box, const void* data) {
  constexpr auto task = "write a part of a dataset";
  const auto in_file = Space(check(H5Dget_space(dataset.get()), task));
  const auto count = static_cast<hsize_t>(box.elements());
  const auto in_memory = Space(check(H5Screate_simple(1, &count, nullptr), task));
  if (!box.begin.empty()) {
    const std::vector<hsize_t> begin(box.begin.begin(), box.begin.end());
    const std::vector<hsize_t> counts(box.count.begin(), box.count.end());
    check(H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, begin.data(), nullptr, counts.data(), nullptr), task);
  }
  check(H5Dwrite(dataset.get(), type.get(), in_memory.get(), in_file.get(), H5P_DEFAULT, data), task);
}

}  // namespace

File create_file_together(const mpi::Communicator& comm, const std::filesystem::path& path) {
  const Hdf5Lock lock;
  const auto access = access_list_for_writing();
  const auto creation = creation_list();
  check(H5Pset_fapl_mpio(access.get(), comm.get(), MPI_INFO_NULL), "use MPI-IO");
  check(H5Pset_coll_metadata_write(access.get(), true), "write structure together");
  check(H5Pset_alignment(access.get(), hsize_t{1} << 20, 4096), "align datasets");
  return File(
      check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), text::concat("create ", path)));
}

void write_elements(const File& file, const std::string& name, const TensorSpec& spec, shard::Range elements,
                    const void* data) {
  const Hdf5Lock lock;
  const auto type = file_type(spec.type);
  const auto element = static_cast<std::int64_t>(c10::elementSize(spec.type));
  const auto dataset = open_dataset(file, name);
  const auto* from = static_cast<const std::byte*>(data);
  const auto most = most_bytes_a_transfer / element;
  for (auto begin = elements.begin; begin < elements.end; begin += most) {
    for (const auto& box : boxes_of(spec.shape, {begin, std::min(begin + most, elements.end)})) {
      write_box(dataset, type, box, from);
      from += box.elements() * element;
    }
  }
}

}  // namespace hortator::io
