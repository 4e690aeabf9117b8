// The memory that a save needs. A separate program, because memory left by other tests would hide it.
#include <ATen/ops/full.h>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/background_save.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"
#include "support/memory.hpp"

using namespace hortator;
using namespace hortator::testing;
using test::extra_memory;
using test::mebibyte;

namespace {

checkpoint::Snapshot state(std::int64_t bytes) {
  checkpoint::Snapshot made;
  for (int i = 0; i < 8; ++i) made.common.put("layer" + std::to_string(i), at::full({bytes / 32}, i + 0.5));
  return made;
}

}  // namespace

TEST_CASE(
    "a save takes 64 MiB beside the state, an asynchronous one a copy of the rank's part, a load almost nothing") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "cost");
  const auto total = 512 * mebibyte;
  const auto share = total / comm.size();
  const auto saved = state(total);
  checkpoint::save(comm, root / "warm", saved);
  CHECK(extra_memory([&] { checkpoint::save(comm, root / "sync", saved); }) < 64 * mebibyte);
  CHECK(extra_memory([&] {
          const checkpoint::Reader reader(root / "sync");
          for (const auto& [name, value] : saved.common.values()) reader.read_into(name, std::get<at::Tensor>(value));
        }) < 32 * mebibyte);
  checkpoint::BackgroundSave saves;
  CHECK(extra_memory([&] {
          for (int i = 0; i < 3; ++i) saves.start(comm, root / "async", saved, {});
          saves.wait(comm);
        }) < share + 64 * mebibyte);
  mpi::barrier(comm);
  if (comm.rank() == 0) std::filesystem::remove_all(root);
}
