#include "comm/nccl/alarm.hpp"

#include "core/log.hpp"
#include "runtime/identity/shared_name.hpp"

namespace hortator::comm {

std::shared_ptr<NcclAlarm> NcclAlarm::over(const mpi::Communicator& world) {
  if (world.node().size() < world.size()) return nullptr;
  try {
    return std::make_shared<NcclAlarm>(world);
  } catch (const Error& error) {  // thrown by all ranks; collectives work without it
    if (world.rank() == 0) log::warn("A rank that leaves a collective cannot release the others: ", error.what());
    return nullptr;
  }
}

NcclAlarm::NcclAlarm(const mpi::Communicator& node)
    : rank_(node.rank()), memory_(node, node, sizeof(RankSlot), runtime::shared_name("alarm")) {}

void NcclAlarm::ring(std::string_view reason) noexcept {
  if (has_rung_.test_and_set()) return;
  auto& mine = slot(rank_);
  reason.copy(mine.reason.data(), mine.reason.size() - 1);  // the last byte stays zero
  int nobody = 0;
  slot(0).first.compare_exchange_strong(nobody, rank_ + 1, std::memory_order_acq_rel);
}

std::optional<Abandoned> NcclAlarm::first_reason() const {
  const int first = slot(0).first.load(std::memory_order_acquire);
  if (first == 0) return std::nullopt;
  return abandoned_by(first - 1, slot(first - 1).reason.data());
}

}  // namespace hortator::comm
