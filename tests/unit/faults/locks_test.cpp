// Parallel file systems are often mounted without file locks.
#include <ATen/ops/arange.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/read/verify.hpp"
#include "checkpoint/write/save.hpp"
#include "forks.hpp"
#include "formats/hdf5/structure.hpp"
#include "support/catch.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

void save_weight(const fs::path& folder, CheckpointWriter writer) {
  checkpoint::Snapshot state;
  state.common.put("weight", at::arange(5000));
  checkpoint::save(mpi::Communicator::world(), folder, state, {.writer = writer});
}

}  // namespace

TEST_CASE("checkpoints are written, viewed and verified on file systems without locks") {
  const auto root = test::fresh_folder();
  const auto folder = root / "checkpoint";
  const int file = open((root / "locked").c_str(), O_CREAT | O_RDWR, 0600);
  faults::arm(root.string(), {.kind = faults::Kind::no_locks});
  CHECK(flock(file, LOCK_EX) == -1);
  CHECK(errno == ENOLCK);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  CHECK(fcntl(file, F_SETLK, &whole) == -1);
  CHECK(errno == ENOLCK);
  close(file);
  CHECK(faults::disarm() == 2);  // the two above
  for (const auto writer : {CheckpointWriter::direct, CheckpointWriter::mpio}) {
    faults::arm(root.string(), {.kind = faults::Kind::no_locks});
    save_weight(folder, writer);
    const auto manifest = checkpoint::read_manifest(folder);
    CHECK(checkpoint::verify(folder, manifest, [](std::int64_t /*bytes*/) {}).empty());
    CHECK(at::equal(checkpoint::Reader(folder).read("weight"), at::arange(5000)));
    const auto& spec = manifest.datasets.at("weight").spec;
    fs::remove(root / "view.h5");
    formats::write_view(
        root / "view.h5",
        {{.name = "weight", .spec = spec, .parts = {{.file = "state.h5", .spec = spec, .elements = {0, 5000}}}}});
    // MPI-IO may try to lock, and continues without.
    const auto asked = faults::disarm();
    if (writer == CheckpointWriter::direct) CHECK(asked == 0);
  }
}
