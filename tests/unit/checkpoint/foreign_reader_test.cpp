// HDF5's own tools and its parallel driver read the files without Hortator.
#include <hdf5.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>

#include "checkpoint/write/save.hpp"
#include "core/text/text.hpp"
#include "formats/hdf5/handle.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "mpi/native.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using namespace hortator::testing;

namespace {
std::string output_of(const std::string& command, const std::filesystem::path& to) {
  if (std::system((command + " >" + to.string() + " 2>&1").c_str()) != 0) return "";
  return test::content_of(to);
}
}  // namespace

TEST_CASE("h5dump shows each tensor as one dataset with its name, shape and type") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "h5dump");
  checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 2));
  if (comm.rank() != 0 || std::system("command -v h5dump >/dev/null") != 0) return;
  const auto file = (root / "checkpoint/state.h5").string();
  const auto header = output_of("h5dump -H " + file, root / "header");
  for (const auto* text :
       {"GROUP \"models\"", "DATASET \"fc1.weight\"", "H5T_IEEE_F32LE", "( 900, 1000 )", "ATTRIBUTE \"epoch\"",
        "DATASET \"strided\"", "( 1000, 600 )", "GROUP \"ranks\"", "16-bit little-endian floating-point"}) {
    CHECK_THAT(header, ContainsSubstring(text));
  }
  CHECK_THAT(output_of("h5dump -d /models/0/fc1.bias " + file, root / "bias"),
             ContainsSubstring("(0): 2, 3, 4, 5, 6, 7, 8"));
  CHECK_THAT(output_of("h5dump -a /name " + file, root / "name"), ContainsSubstring("variant 2"));
}

// The expected values for h5py.sh: the tensors of this state as doubles, or pairs of doubles, with numpy's type names.
TEST_CASE("a state of all types, and what another reader must find in it", "[.for_h5py]") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "for_h5py");
  auto saved = snapshot(comm.rank(), 2);
  const std::map<at::ScalarType, std::string> types = {{at::kBool, "bool"},
                                                       {at::kByte, "uint8"},
                                                       {at::kChar, "int8"},
                                                       {at::kUInt16, "uint16"},
                                                       {at::kShort, "int16"},
                                                       {at::kUInt32, "uint32"},
                                                       {at::kInt, "int32"},
                                                       {at::kUInt64, "uint64"},
                                                       {at::kLong, "int64"},
                                                       {at::kHalf, "float16"},
                                                       {at::kFloat, "float32"},
                                                       {at::kDouble, "float64"},
                                                       {at::kBFloat16, "wider"},
                                                       {at::kFloat8_e5m2, "wider"},
                                                       {at::kFloat8_e4m3fn, "wider"},
                                                       {at::kComplexFloat, "complex64"},
                                                       {at::kComplexDouble, "complex128"}};
  for (const auto& [type, name] : types)
    saved.common.put("types/" + std::string(formats::type_name(type)),
                     at::arange(2000).remainder(14).to(type).view({40, 50}));
  std::vector<std::size_t> own_file(static_cast<std::size_t>(comm.size()));
  std::iota(own_file.begin(), own_file.end(), 0);
  checkpoint::save(comm, root / "one", saved);
  checkpoint::save(comm, root / "several", saved, {.file_of = own_file});
  if (comm.rank() != 0) return;
  std::filesystem::create_directory(root / "expected");
  std::ofstream index(root / "expected" / "index");
  int number = 0;
  for (const auto& [name, value] : saved.common.values()) {
    const auto* tensor = std::get_if<at::Tensor>(&value);
    if (tensor == nullptr) continue;
    const auto type = tensor->scalar_type();
    const auto wide = tensor->to(at::isComplexType(type) ? at::kComplexDouble : at::kDouble).contiguous();
    write_file(root / "expected" / std::to_string(number),
               std::string(static_cast<const char*>(wide.const_data_ptr()), wide.nbytes()));
    index << number++ << '\t' << name << '\t' << types.at(type) << '\t' << text::join(tensor->sizes().vec(), ",")
          << '\n';
  }
}

TEST_CASE("all ranks read it together through HDF5's MPI driver") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "mpi_driver");
  const auto saved = snapshot(comm.rank(), 3);
  checkpoint::save(comm, root / "checkpoint", saved);
  const formats::PropertyList access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_mpio(access.get(), mpi::native(comm), MPI_INFO_NULL);
  const auto path = root / "checkpoint" / "state.h5";
  const formats::File file(formats::check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), "open"));
  const formats::Dataset dataset(formats::check(H5Dopen2(file.get(), "models/0/fc1.weight", H5P_DEFAULT), "open"));
  const auto weight = at::zeros({900, 1000});
  formats::check(H5Dread(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, weight.mutable_data_ptr()),
                 "read");
  CHECK(bitwise_equal(weight, saved.common.get<at::Tensor>("models/0/fc1.weight")));
}
