#include "tools/checkpoint/weights_file.hpp"

#include <map>

#include "formats/file/raw_file.hpp"
#include "formats/file/replacement.hpp"
#include "formats/safetensors/writer.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "tools/checkpoint/byte_bar.hpp"

namespace hortator::tools::checkpoints {

namespace fs = std::filesystem;

std::int64_t bytes_of(const weights::WeightSource& source) {
  std::int64_t bytes = 0;
  for (const auto& name : source.names()) bytes += source.spec(name).bytes();
  return bytes;
}

observe::Audience audience_of(const mpi::Communicator& comm) {
  return comm.rank() == 0 ? observe::Audience::people : observe::Audience::nobody;
}

void write_safetensors(const mpi::Communicator& comm, const weights::WeightSource& source, const fs::path& path) {
  std::map<std::string, formats::TensorSpec> specs;
  for (const auto& name : source.names()) specs.emplace(name, source.spec(name));
  const fs::path staged = path.string() + ".new-" + mpi::broadcast(comm, formats::replacement_id());
  try {
    ByteBar bar("export", bytes_of(source) / comm.size(), audience_of(comm));
    formats::write_safetensors(
        comm, {{.path = staged, .plan = formats::plan_safetensors(specs)}},
        [&](const std::string& name) { return source.tensor(name); }, [&](std::int64_t bytes) { bar.advance(bytes); });
    mpi::all_or_none(comm, [&] {
      source.require_unchanged();
      if (comm.rank() != 0) return;
      formats::rename(staged, path);
      formats::sync_folder(path.parent_path());
    });
  } catch (...) {
    std::error_code ignored;
    if (comm.rank() == 0) fs::remove(staged, ignored);
    throw;
  }
}

}  // namespace hortator::tools::checkpoints
