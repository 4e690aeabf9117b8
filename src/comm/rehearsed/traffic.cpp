#include "comm/rehearsed/traffic.hpp"

#include <algorithm>
#include <mutex>

namespace hortator::comm {
namespace {

struct Notes {
  std::mutex mutex;
  std::vector<Traffic> all;
};

Notes& notes() {
  static auto& notes = *new Notes;
  return notes;
}

}  // namespace

std::uint64_t sent_bytes(const std::string& verb, std::uint64_t bytes, int ranks) {
  if (ranks < 2 || verb == "barrier") return 0;
  const auto others = static_cast<std::uint64_t>(ranks - 1);
  const auto share = bytes / static_cast<std::uint64_t>(ranks) * others;
  if (verb == "all_reduce") return 2 * share;
  return verb == "broadcast" ? bytes : share;
}

void note_traffic(const std::vector<int>& members, const std::string& verb, std::uint64_t bytes, std::uint64_t sent) {
  const std::lock_guard lock(notes().mutex);
  auto& all = notes().all;
  auto found =
      std::ranges::find_if(all, [&](const Traffic& one) { return one.verb == verb && one.members == members; });
  if (found == all.end()) found = all.insert(all.end(), {.members = members, .verb = verb});
  ++found->calls;
  found->bytes += bytes;
  found->sent += sent;
}

std::vector<Traffic> noted_traffic() {
  const std::lock_guard lock(notes().mutex);
  return notes().all;
}

void forget_traffic() {
  const std::lock_guard lock(notes().mutex);
  notes().all.clear();
}

}  // namespace hortator::comm
