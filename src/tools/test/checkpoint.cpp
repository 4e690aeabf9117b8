#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "runtime/world.hpp"
#include "tools/test/checks.hpp"

namespace hortator::tools::installation {
namespace {

constexpr std::int64_t layers = 8;
constexpr std::int64_t rows = 1021;
constexpr std::int64_t columns = 257;

std::string layer(std::int64_t i) { return text::concat("models/0/layer", i); }

at::Tensor content(std::int64_t i) {
  return at::arange(rows * columns, at::TensorOptions(at::kFloat)).add(static_cast<double>(i)).view({rows, columns});
}

checkpoint::Snapshot snapshot_of(int rank) {
  checkpoint::Snapshot snapshot;
  for (std::int64_t i = 0; i < layers; ++i) snapshot.common.put(layer(i), content(i));
  snapshot.own.put("number", static_cast<std::int64_t>(rank));
  return snapshot;
}

}  // namespace

std::string check_checkpoint(Accelerator& accelerator, const std::filesystem::path& folder, CheckpointWriter writer) {
  const auto& comm = accelerator.world().comm();
  const auto saved = checkpoint::save(comm, folder / "checkpoint", snapshot_of(comm.rank()), {.writer = writer});
  const checkpoint::Reader reader(comm, saved);
  bool is_right = true;
  for (std::int64_t i = 0; i < layers; ++i) is_right = is_right && at::equal(reader.read(layer(i)), content(i));
  require_on_all_ranks(comm, is_right, text::concat("what was read from ", saved, " is not what was written"));
  const auto number = reader.own(comm.rank()).get<std::int64_t>("number");
  require_on_all_ranks(comm, number == comm.rank(),
                       text::concat("rank ", comm.rank(), " got what belongs to rank ", number));
  return text::concat(units::bytes(static_cast<std::uint64_t>(layers * rows * columns * 4)),
                      " written, committed and read in ", folder.parent_path().string());
}

}  // namespace hortator::tools::installation
