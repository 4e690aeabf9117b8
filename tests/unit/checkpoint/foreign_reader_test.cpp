// The file belongs to everybody: HDF5's own tools and its parallel driver read it without us.
#include <hdf5.h>

#include <cstdlib>
#include <fstream>

#include "checkpoint/save.hpp"
#include "io/hdf5_handle.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;

namespace {
std::string output_of(const std::string& command, const std::filesystem::path& to) {
  if (std::system((command + " >" + to.string() + " 2>&1").c_str()) != 0) return "";
  std::ostringstream words;
  words << std::ifstream(to).rdbuf();
  return words.str();
}
}  // namespace

TEST_CASE("h5dump shows each tensor as one dataset with its name, shape and type") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "h5dump");
  checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 2));
  if (comm.rank() != 0 || std::system("command -v h5dump >/dev/null") != 0) return;
  const auto file = (root / "checkpoint/state.h5").string();
  const auto header = output_of("h5dump -H " + file, root / "header");
  for (const auto* words :
       {"GROUP \"models\"", "DATASET \"fc1.weight\"", "H5T_IEEE_F32LE", "( 900, 1000 )", "ATTRIBUTE \"epoch\"",
        "DATASET \"strided\"", "( 1000, 600 )", "GROUP \"ranks\"", "16-bit little-endian floating-point"}) {
    CHECK_THAT(header, ContainsSubstring(words));
  }
  CHECK_THAT(output_of("h5dump -d /models/0/fc1.bias " + file, root / "bias"),
             ContainsSubstring("(0): 2, 3, 4, 5, 6, 7, 8"));
  CHECK_THAT(output_of("h5dump -a /name " + file, root / "name"), ContainsSubstring("variant 2"));
}

TEST_CASE("h5py reads every dataset and finds the same elements") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "read_by_python");
  const auto saved = snapshot(comm.rank(), 2);
  checkpoint::save(comm, root / "checkpoint", saved);
  const auto python = std::string("python3 -c 'import h5py; h5py.File' 2>/dev/null");
  if (comm.rank() != 0 || std::system(python.c_str()) != 0) return;
  std::ofstream(root / "read.py") << R"(
import sys, h5py, numpy
with h5py.File(sys.argv[1]) as file:
    names = []
    file.visititems(lambda name, thing: names.append(name) if isinstance(thing, h5py.Dataset) else None)
    for name in names:
        values = file[name][()]
        print(name, values.shape, numpy.asarray(values, dtype=numpy.float64).sum())
)";
  const auto words = output_of("python3 " + (root / "read.py").string() + " " + (root / "checkpoint/state.h5").string(),
                               root / "words");
  CHECK_THAT(words, ContainsSubstring("models/0/fc1.weight (900, 1000)"));
  const auto bias = saved.common.get<at::Tensor>("models/0/fc1.bias").to(at::kDouble).sum().item<double>();
  CHECK_THAT(words, ContainsSubstring("models/0/fc1.bias (7,) " + std::to_string(static_cast<int>(bias)) + ".0"));
  CHECK_THAT(words, ContainsSubstring("models/0/empty (0, 3) 0.0"));
  CHECK_THAT(words, ContainsSubstring("ranks/0/rng/cpu (3,) 0.0"));
}

TEST_CASE("all ranks read it together through HDF5's MPI driver") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "mpi_driver");
  const auto saved = snapshot(comm.rank(), 3);
  checkpoint::save(comm, root / "checkpoint", saved);
  const io::PropertyList access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_mpio(access.get(), comm.get(), MPI_INFO_NULL);
  const auto path = root / "checkpoint" / "state.h5";
  const io::File file(io::check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), "open"));
  const io::Dataset dataset(io::check(H5Dopen2(file.get(), "models/0/fc1.weight", H5P_DEFAULT), "open"));
  const auto weight = at::zeros({900, 1000});
  io::check(H5Dread(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, weight.mutable_data_ptr()), "read");
  CHECK(bitwise_equal(weight, saved.common.get<at::Tensor>("models/0/fc1.weight")));
}
