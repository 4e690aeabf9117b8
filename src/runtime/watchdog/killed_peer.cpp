#include "runtime/watchdog/killed_peer.hpp"

#include <algorithm>
#include <csignal>
#include <string>

#include "core/signal_name.hpp"
#include "core/text/text.hpp"
#include "runtime/ending/last_signal.hpp"

namespace hortator::runtime {
namespace {

bool is_alive(const NodeRank& rank) { return rank.record.life < RankLife::vanished; }

bool was_killed(const NodeRank& rank) {
  return rank.record.life == RankLife::vanished && rank.last_signal != SIGTERM && rank.last_signal != has_reported;
}

std::string cause(const NodeRank& rank) {
  if (rank.last_signal == 0)
    return "Killed by signal 9 (SIGKILL), often the kernel's out-of-memory killer, or ended at once: by _exit(), "
           "MPI_Abort() or a signal that was not recorded (a stack overflow in a second thread, SIGXCPU)";
  return text::concat("Killed by signal ", rank.last_signal, " (", core::signal_name(rank.last_signal), ')');
}

std::string last_seen(const RankRecord& record) {
  auto text = text::concat("; last seen in the phase: ", to_string(record.phase));
  if (record.wait) text += text::concat(", in ", record.wait->name, " #", record.wait->sequence);
  return text;
}

}  // namespace

bool has_killed_peer(const std::vector<NodeRank>& node) { return std::ranges::any_of(node, was_killed); }

std::optional<Failure> killed_peer(const std::vector<NodeRank>& node, int own) {
  const auto killed = std::ranges::find_if(node, was_killed);
  const auto first = std::ranges::find_if(node, is_alive);
  if (killed == node.end() || first == node.end() || first->record.rank != own) return {};
  const auto& record = killed->record;
  return Failure{.problem = cause(*killed) + last_seen(record),
                 .party = Party{.rank = record.rank, .host = record.host, .pid = record.pid},
                 .exit_code = 128 + (killed->last_signal == 0 ? SIGKILL : killed->last_signal),
                 .kind = "killed",
                 .signal = killed->last_signal == 0 ? SIGKILL : killed->last_signal};
}

}  // namespace hortator::runtime
