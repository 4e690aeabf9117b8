// Every writer and every number of files gives the same datasets.
#include "checkpoint/read/reader.hpp"
#include "checkpoint/read/verify.hpp"
#include "checkpoint/write/save.hpp"
#include "formats/hdf5/dataset.hpp"
#include "formats/hdf5/file.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::Reader;

namespace {

checkpoint::Snapshot large(int rank) {
  auto made = snapshot(rank, 3);
  made.common.put("large/rows", at::arange(3 << 20).to(at::kFloat).reshape({3 << 10, 1 << 10}));
  made.common.put("large/ragged", at::arange(5'000'001).to(at::kBFloat16));
  made.common.put("large/strided", at::arange(3 << 20).to(at::kInt).reshape({2, 1 << 9, 3 << 10}).permute({2, 0, 1}));
  return made;
}

/// Assignments of ranks to files: as to nodes, and in turn.
std::vector<std::vector<std::size_t>> dealings(int ranks) {
  std::vector<std::size_t> each(static_cast<std::size_t>(ranks));
  std::vector<std::size_t> in_turn = each;
  std::vector<std::size_t> halves = each;
  for (std::size_t rank = 0; rank < each.size(); ++rank) {
    each[rank] = rank;
    in_turn[rank] = rank % 2;
    halves[rank] = 2 * rank / each.size();
  }
  return {{}, each, in_turn, halves};
}

/// Checks that HDF5 without Hortator finds each tensor as one dataset.
void check_view(const std::filesystem::path& folder, const checkpoint::Snapshot& saved) {
  const auto file = formats::open_file(folder / "view.h5");
  for (const auto& [name, value] : saved.common.values()) {
    const auto* tensor = std::get_if<at::Tensor>(&value);
    if (tensor == nullptr) continue;
    INFO(name);
    const auto dataset = formats::open_dataset(file, name);
    const auto found = at::zeros(tensor->sizes(), tensor->scalar_type());
    const auto type = formats::file_type(tensor->scalar_type());
    if (found.numel() > 0)
      formats::check(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, found.mutable_data_ptr()),
                     "read");
    CHECK(bitwise_equal(found, tensor->contiguous()));
  }
}

void check_same(const mpi::Communicator& comm, const std::filesystem::path& folder, const checkpoint::Snapshot& saved) {
  const Reader reader(comm, folder);
  for (const auto& [name, value] : saved.common.values()) {
    INFO(name);
    if (const auto* tensor = std::get_if<at::Tensor>(&value))
      CHECK(bitwise_equal(reader.read(name), tensor->contiguous()));
  }
  CHECK(bitwise_equal(reader.own(comm.rank()).get<at::Tensor>("rng/cpu"), saved.own.get<at::Tensor>("rng/cpu")));
  CHECK(checkpoint::verify(folder, reader.manifest(), [](std::int64_t) {}).empty());
  if (reader.manifest().files.size() > 1 && comm.rank() == 0) check_view(folder, saved);
  mpi::barrier(comm);
}

}  // namespace

TEST_CASE("one file or several, written past HDF5 or through it: the same datasets with the same checksums") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "writers");
  const auto saved = large(comm.rank());
  std::map<std::string, std::vector<std::uint32_t>> checksums;
  for (const auto& file_of : dealings(comm.size())) {
    for (const auto writer : {CheckpointWriter::direct, CheckpointWriter::mpio}) {
      INFO((writer == CheckpointWriter::mpio ? "mpio" : "direct"));
      checkpoint::save(comm, root / "checkpoint", saved, {.writer = writer, .file_of = file_of, .step = 5});
      check_same(comm, root / "checkpoint", saved);
      const auto manifest = checkpoint::read_manifest(root / "checkpoint");
      CHECK(manifest.step == 5);
      for (const auto& [name, dataset] : manifest.datasets) {
        if (!checksums.contains(name)) checksums[name] = dataset.blocks;
        CHECK(checksums[name] == dataset.blocks);
      }
      mpi::barrier(comm);
    }
  }
}
