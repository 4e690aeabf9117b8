// Watchdog: the questions to other ranks and nodes when it suspects a stall.
#include <algorithm>
#include <set>

#include "core/text/text.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/watchdog/main_stack.hpp"
#include "runtime/watchdog/watchdog.hpp"

namespace hortator::runtime {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Shared file systems show a new file late.
milliseconds time_for_answers(milliseconds step) { return 12 * step + 1000ms; }

}  // namespace

// Waits until each rank of the node has published its status and stack, or the time for that is over.
std::vector<RankRecord> Watchdog::ask_node() {
  board_.ask();
  publish(stack_of_main_thread(time_for_a_stack));
  std::vector<std::uint64_t> before;
  for (int rank = 0; rank < board_.size(); ++rank) before.push_back(board_.beats(rank));
  const auto fresh = [&](const RankRecord& slot) {
    // Two beats: the first may have been under way when we asked.
    return slot.life >= RankLife::traced ||
           board_.beats(slot.local_rank) >= before[static_cast<std::size_t>(slot.local_rank)] + 2;
  };
  const auto end = steady_clock::now() + 3 * step_ + 2 * time_for_a_stack;
  while (true) {
    auto slots = board_.read();
    const bool all = std::ranges::all_of(slots, fresh);
    if (all || steady_clock::now() > end || !rest(std::min(step_, milliseconds(50)))) return slots;
    look();
    board_.publish(slot_);
  }
}

Watchdog::View Watchdog::ask_everybody() {
  View view{.slots = {}, .note = board_.blindness()};
  if (topology_.nodes == 1) {
    view.slots = ask_node();
    return view;
  }
  const auto channel = files();
  // The rank that reports the failed run has removed the files already and ends the job now.
  const auto is_over = [] { return is_failure_claimed(current_run().folder, current_run().id); };
  if (is_over()) return {};
  const auto claim = channel.announce(topology_.node);
  if (claim == Claim::won && is_over()) {
    channel.remove(topology_.nodes);
    return {};
  }
  view.slots = ask_node();
  if (claim == Claim::won) {
    view.is_announced = true;
    collect_answers(channel, view);
  } else if (claim == Claim::lost) {
    // Another node collects the answers, and then ends the job unless there is no stall.
    if (channel.announcer() != topology_.node) channel.answer(topology_.node, to_json(view.slots));
    const auto end = steady_clock::now() + 2 * time_for_answers(step_);
    while (channel.announcer() && steady_clock::now() < end) {
      if (!rest(step_)) return {};
      look();
      board_.publish(slot_);
    }
    if (!channel.announcer()) return {};
    channel.remove(topology_.nodes);
    view.note = "the node that asked the others has gone";
  } else {
    view.note = text::concat("the other nodes cannot be asked: ", current_run().folder.string(), " cannot be written");
  }
  return view;
}

void Watchdog::collect_answers(const StallFiles& files, View& view) {
  std::set<int> open;
  for (int node = 0; node < topology_.nodes; ++node) {
    if (node != topology_.node) open.insert(node);
  }
  const auto end = steady_clock::now() + time_for_answers(step_);
  while (true) {
    for (auto node = open.begin(); node != open.end();) {
      const auto answer = files.answer_of(*node);
      const auto slots = answer ? slots_from_json(*answer) : std::vector<RankRecord>();
      view.slots.insert(view.slots.end(), slots.begin(), slots.end());
      node = slots.empty() ? std::next(node) : open.erase(node);
    }
    if (open.empty() || steady_clock::now() > end || !rest(std::min(step_, milliseconds(200)))) break;
  }
  view.silent_nodes.assign(open.begin(), open.end());
}

}  // namespace hortator::runtime
