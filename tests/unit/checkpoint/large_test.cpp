// More than 2 GiB a rank, where counts of 32 bits end: 2.2 GiB in one tensor, by both writers. `ctest -L long`.
#include <ATen/ops/arange.h>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;

TEST_CASE("2.2 GiB a rank make the round trip") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "large");
  const auto elements = static_cast<std::int64_t>(2.2 * (1 << 28)) / 1000 * 1000 * comm.size();
  for (const auto writer : {CheckpointWriter::direct, CheckpointWriter::mpio}) {
    // Generated on each rank from the index, so that no rank needs more memory than the tensor itself.
    const auto tensor = at::arange(elements, at::kInt).view({-1, 1000});
    checkpoint::Snapshot saved;
    saved.common.put("large", tensor);
    checkpoint::save(comm, root / "checkpoint", saved, {.writer = writer});
    tensor.zero_();
    const checkpoint::Reader reader(comm, root / "checkpoint");
    reader.read_into("large", tensor);
    const auto flat = tensor.view({-1});
    for (std::int64_t begin = 0; begin < elements; begin += 1 << 24) {
      const auto end = std::min(begin + (1 << 24), elements);
      if (!flat.narrow(0, begin, end - begin).equal(at::arange(begin, end, at::kInt))) FAIL_CHECK("from " << begin);
    }
    mpi::barrier(comm);
  }
  if (comm.rank() == 0) std::filesystem::remove_all(root);
}
