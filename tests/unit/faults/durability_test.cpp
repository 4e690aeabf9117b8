// What a power failure leaves. A disk keeps bytes that were flushed, and names whose folder was flushed after they were
// given. No system call after a checkpoint has got its name may be one that its bytes still needed.
#include <ATen/ops/full.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/background_save.hpp"
#include "checkpoint/write/save.hpp"
#include "disk.hpp"
#include "mpi/collectives.hpp"
#include "support/catch.hpp"
#include "support/faults/faults.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

/// The paths as one text, for messages.
std::string text_of(const std::set<fs::path>& paths) {
  std::string all;
  for (const auto& path : paths) all += path.filename().string() + " ";
  return all;
}

struct Way {
  CheckpointWriter writer = CheckpointWriter::direct;
  bool in_background = false;
  bool in_files = false;  ///< one file per rank, and the view that shows them as one
};

checkpoint::Snapshot version(int number) {
  checkpoint::Snapshot made;
  made.common.put("weight", at::full({1000, 30}, number));
  made.common.put("bias", at::full({30}, number));
  return made;
}

void save(const mpi::Communicator& comm, const fs::path& folder, int number, const Way& way) {
  checkpoint::SaveOptions options = {.writer = way.writer};
  for (int rank = 0; way.in_files && rank < comm.size(); ++rank)
    options.file_of.push_back(static_cast<std::size_t>(rank));
  if (!way.in_background) return static_cast<void>(checkpoint::save(comm, folder, version(number), options));
  checkpoint::BackgroundSave saves;
  saves.start(comm, folder, version(number), options);
  saves.wait(comm);
}

/// This rank's calls while all ranks save over an older checkpoint.
std::vector<faults::Call> calls_of_save(const mpi::Communicator& comm, const fs::path& root, const Way& way) {
  mpi::barrier(comm);
  if (comm.rank() == 0) fs::remove_all(root);
  if (comm.rank() == 0) fs::create_directories(root);
  mpi::barrier(comm);
  save(comm, root / "checkpoint", 1, way);
  faults::arm(root.string(), {.kind = faults::Kind::record});
  save(comm, root / "checkpoint", 2, way);
  faults::disarm();
  return faults::recorded();
}

}  // namespace

TEST_CASE("after a power failure at any moment the older or the newer checkpoint is complete on the disk") {
  const auto comm = mpi::Communicator::world();
  const auto root = fs::absolute("durable_disk");
  const auto target = root / "checkpoint";
  for (const auto& way : {Way{}, Way{.in_background = true}, Way{.writer = CheckpointWriter::mpio},
                          Way{.in_files = true}, Way{.writer = CheckpointWriter::mpio, .in_files = true}}) {
    INFO((way.writer == CheckpointWriter::mpio ? "MPI-IO" : "direct")
         << (way.in_background ? ", beside the run" : "") << (way.in_files ? ", a file each" : ""));
    test::Disk disk;
    int published = 0;
    int removed = 0;
    int writes = 0;
    for (const auto& call : calls_of_save(comm, root, way)) {
      INFO(call.what << ' ' << call.path << ' ' << call.to);
      const bool publishes = call.what == "rename" && call.to == target;
      const bool removes_old = call.what == "remove" && call.path.find(".gone-") != std::string::npos;
      if (publishes) CHECK(text_of(disk.loses_of(call.path)) == "");
      if (removes_old) CHECK(text_of(disk.loses_of(root)) == "");
      disk.follow(call);
      published += publishes ? 1 : 0;
      removed += removes_old ? 1 : 0;
      writes += call.what == "write" ? 1 : 0;
    }
    CHECK(published == (comm.rank() == 0 ? 1 : 0));
    CHECK((removed > 0) == (comm.rank() == 0));
    CHECK(writes > 0);
    CHECK(text_of(disk.unflushed()) == "");  // also of ranks that publish nothing
    mpi::barrier(comm);
  }
}
