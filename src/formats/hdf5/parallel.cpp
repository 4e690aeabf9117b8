#include "formats/hdf5/parallel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/text/text.hpp"
#include "formats/hdf5/dataset.hpp"
#include "formats/hdf5/file.hpp"
#include "formats/tensor/tensor_ranges.hpp"
#include "mpi/native.hpp"

namespace hortator::formats {
namespace {

constexpr std::int64_t max_bytes_per_transfer = std::int64_t{1} << 30;

void write_box(const Dataset& dataset, const Type& type, const TensorBlock& box, const void* data) {
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

// MpiIoHints for MPI-IO: ROMIO must not fill gaps by reading and writing under file locks, which some mounts do not
// have.
class MpiIoHints {
 public:
  MpiIoHints() {
    mpi::check(MPI_Info_create(&info_), "MPI_Info_create");
    mpi::check(MPI_Info_set(info_, "romio_ds_write", "disable"), "MPI_Info_set");
  }
  ~MpiIoHints() { MPI_Info_free(&info_); }
  MpiIoHints(const MpiIoHints&) = delete;
  MpiIoHints& operator=(const MpiIoHints&) = delete;

  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

bool is_predefined(MPI_Errhandler handler) { return handler == MPI_ERRORS_RETURN || handler == MPI_ERRORS_ARE_FATAL; }

const std::function<void(const std::string&)>* failure_callback = nullptr;

void on_file_failure(MPI_File* file, int* code, ...) {
  const int system_error = errno;
  if (*file == MPI_FILE_NULL || failure_callback == nullptr) return;  // opening failed, which HDF5 reports
  std::array<char, MPI_MAX_ERROR_STRING> message{};
  int length = 0;
  MPI_Error_string(*code, message.data(), &length);
  (*failure_callback)(text::concat("MPI-IO failed: ", message.data(),
                                   " (the system's last error was: ", std::strerror(system_error), ")"));
}

}  // namespace

// A file inherits the handler that the null file has when it is opened.
MpiFileFailures::MpiFileFailures(const std::function<void(const std::string& problem)>& fail) {
  failure_callback = &fail;
  MPI_Errhandler ours = MPI_ERRHANDLER_NULL;
  mpi::check(MPI_File_create_errhandler(on_file_failure, &ours), "MPI_File_create_errhandler");
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  mpi::check(MPI_File_get_errhandler(MPI_FILE_NULL, &before), "MPI_File_get_errhandler");
  before_ = mpi::as_number(before);
  mpi::check(MPI_File_set_errhandler(MPI_FILE_NULL, ours), "MPI_File_set_errhandler");
}

// MPICH does not count references to the null file's handler, and closing a file frees its handler. So we never free
// ours: a few bytes leak in each save.
MpiFileFailures::~MpiFileFailures() {
  auto before = mpi::as_handle<MPI_Errhandler>(before_);
  MPI_File_set_errhandler(MPI_FILE_NULL, before);
  if (!is_predefined(before)) MPI_Errhandler_free(&before);
  failure_callback = nullptr;
}

File create_file_together(const mpi::Communicator& comm, const std::filesystem::path& path) {
  const Hdf5Lock lock;
  const auto access = access_list_for_writing();
  const auto creation = creation_list();
  const MpiIoHints hints;
  check(H5Pset_fapl_mpio(access.get(), mpi::native(comm), hints.get()), "use MPI-IO");
  check(H5Pset_coll_metadata_write(access.get(), true), "write structure together");
  check(H5Pset_alignment(access.get(), hsize_t{1} << 20, 4096), "align datasets");
  return File(
      check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), text::concat("create ", path)));
}

void write_elements(const File& file, const std::string& name, const TensorSpec& spec, core::Range elements,
                    const void* data) {
  const Hdf5Lock lock;
  const auto type = file_type(spec.type);
  const auto element = spec.element_bytes();
  const auto dataset = open_dataset(file, name);
  const auto* from = static_cast<const std::byte*>(data);
  const auto max_elements = max_bytes_per_transfer / element;
  for (auto begin = elements.begin; begin < elements.end; begin += max_elements) {
    for (const auto& box : boxes_of(spec.shape, {begin, std::min(begin + max_elements, elements.end)})) {
      write_box(dataset, type, box, from);
      from += box.elements() * element;
    }
  }
}

}  // namespace hortator::formats
