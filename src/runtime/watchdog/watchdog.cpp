#include "runtime/watchdog/watchdog.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "core/activity/activity.hpp"
#include "core/activity/note.hpp"
#include "core/process.hpp"
#include "core/text/text.hpp"
#include "core/thread.hpp"
#include "mpi/environment.hpp"
#include "runtime/ending/failure.hpp"
#include "runtime/ending/last_signal.hpp"
#include "runtime/identity/ending_file.hpp"
#include "runtime/identity/run_folder.hpp"
#include "runtime/watchdog/killed_peer.hpp"
#include "runtime/watchdog/living.hpp"
#include "runtime/watchdog/main_stack.hpp"
#include "runtime/watchdog/peer_watch.hpp"
#include "runtime/watchdog/process.hpp"

namespace hortator::runtime {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int looks_until_quiet = 4;
constexpr std::size_t max_note = 1000;  // the board has a few pages for each rank

milliseconds step_of(const Watchdog::Settings& settings) {
  return std::clamp(settings.limit / 20, 20ms, settings.in_debug_mode ? 50ms : 5000ms);
}
// Shared file systems show a new file late. The larger the job, the slower they are, and the less they should be
// loaded.
milliseconds files_step_of(milliseconds step) { return 2 * step; }
milliseconds time_for_answers(milliseconds step) { return 12 * step + 1000ms; }

double in_seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

StallLimits patience_of(const Watchdog::Settings& settings) {
  const StallLimits usual;
  const double limit = in_seconds(settings.limit);
  return {.limit = limit,
          .for_the_gone = std::min(limit, usual.for_the_gone),
          .for_a_circle = std::min(limit, settings.in_debug_mode ? 0.3 : usual.for_a_circle)};
}

}  // namespace

Watchdog::Watchdog(const mpi::Communicator& world, const mpi::Communicator& node, const Topology& topology,
                   const Settings& settings)
    : topology_(topology),
      family_(world.membership().family()),
      run_(settings.run),
      patience_(patience_of(settings)),
      asks_early_(settings.in_debug_mode && topology.nodes > 1),
      step_(step_of(settings)),
      process_(getpid()),
      own_rank_(world.rank()),
      board_(node),
      clock_(family_, 2 * step_ + 250ms),
      beats_(static_cast<std::size_t>(board_.size())),
      quiet_looks_(static_cast<std::size_t>(board_.size())) {
  slot_.rank = own_rank_;
  slot_.local_rank = board_.own();
  slot_.host = mpi::host_name();
  slot_.pid = process_;
  if (const auto facts = core::process_facts(process_)) slot_.start = facts->start;
  prepare_stacks();
  last_look_ = steady_clock::now();
  next_files_look_ = last_look_;
  look();
  publish({});
  add_last_signal(board_.own_last_signal());
  add_living(this);
  watch_for_killed_peers();
  thread_ = core::start_without_signals("hortator-watch", [this] { watch(); });
}

Watchdog::~Watchdog() {
  if (remove_living(this)) leave();
}

void Watchdog::leave() {
  // A forked child does not have the thread, and is not the rank.
  if (process_ != getpid()) return thread_.detach();
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  // The watchdog's own thread ends the process when it aborts the job.
  if (thread_.get_id() == std::this_thread::get_id()) return thread_.detach();
  thread_.join();
  look();
  slot_.life = RankLife::left;
  publish({});
  remove_last_signal(board_.own_last_signal());
}

void Watchdog::leave_early() {
  leave();
  if (process_ != getpid() || mpi::is_aborting() || !mpi::is_usable()) return;
  if (!was_reported_before_exit()) {
    runtime::report({.problem =
                         "the program has left by exit() while its State or Accelerator was in use (the other ranks "
                         "wait for it, and MPI was not finalised). Return from main, or throw an exception",
                     .kind = "exit"});
  }
  // Not every launcher treats a rank that has not finalised MPI as failed: MPICH's does not.
  if (current_run().world_size > 1) mpi::abort_job(EXIT_FAILURE);
}

void Watchdog::report_killed_peer(bool launcher_reports) const {
  std::vector<NodeRank> node;
  for (auto& record : board_.read()) {
    const int last_signal = board_.last_signal(record.local_rank);
    node.push_back({.record = std::move(record), .last_signal = last_signal});
  }
  if (!has_killed_peer(node)) return;
  write_flight();
  if (launcher_reports) return;
  if (const auto failure = killed_peer(node, own_rank_)) runtime::report(*failure);
}

bool Watchdog::rest(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return ends_; });
}

void Watchdog::watch() {
  while (rest(step_)) {
    look();
    answer_questions();
    if (topology_.nodes > 1) answer_other_nodes();
    consider();
  }
}

void Watchdog::look() {
  const auto now = steady_clock::now();
  const auto view = activity::view_with_device();
  clock_.look(view, now - last_look_);
  last_look_ = now;
  slot_.phase = view.phase;
  slot_.has_one_thread = std::ranges::count_if(view.threads, [](const auto& thread) { return thread.visit > 0; }) == 1;
  slot_.wait.reset();
  if (const auto& longest = clock_.longest()) {
    const auto& operation = longest->operation;
    slot_.wait = {.name = operation.name.text(),
                  .bytes = operation.bytes,
                  .communicator = operation.communicator,
                  .sequence = operation.sequence,
                  .size = operation.size,
                  .seconds = longest->waited.count()};
  }
  slot_.note = activity::note();
  slot_.note.resize(std::min(slot_.note.size(), max_note));
  slot_.outside_seconds = clock_.outside().count();
  slot_.device.reset();
  const auto device = activity::on_device();
  if (device && device->operation.family == family_) {
    slot_.device = {.name = device->operation.name.text(),
                    .communicator = device->operation.communicator,
                    .sequence = device->operation.sequence,
                    .is_its_turn = device->is_its_turn};
  }
  slot_.standings.clear();
  for (const auto& [communicator, family, entered] : view.progress) {
    if (family == family_) slot_.standings.push_back({.communicator = communicator, .entered = entered});
  }
}

void Watchdog::publish(std::vector<std::string> stack) {
  slot_.stack = std::move(stack);
  board_.publish(slot_);
}

// A rank that a debugger holds or that is in a patient phase is not interrupted by the signal for its stack: it is not
// reported as a culprit.
void Watchdog::answer_questions() {
  if (!board_.take_question()) {
    board_.publish(slot_);  // with the stack of the last time, if there was one
    return;
  }
  write_flight();
  const bool at_peace = !slot_.wait && activity::is_patient(slot_.phase);
  const bool traced = life_of(slot_.pid, slot_.start) == RankLife::traced;
  publish(at_peace || traced ? std::vector<std::string>() : stack_of_main_thread(time_for_a_stack));
}

StallFiles Watchdog::files() const { return {current_run().folder, run_}; }

// The first rank of the node whose watchdog is awake.
bool Watchdog::leads_node() {
  bool first = true;
  for (int rank = 0; rank < board_.own(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    const auto beats = board_.beats(rank);
    const bool heard = std::exchange(beats_[i], beats) != beats;
    quiet_looks_[i] = heard ? 0 : quiet_looks_[i] + 1;
    first = first && quiet_looks_[i] >= looks_until_quiet;
  }
  return first;
}

void Watchdog::answer_other_nodes() {
  const auto now = steady_clock::now();
  if (!leads_node() || now < next_files_look_) return;
  next_files_look_ = now + files_step_of(step_);
  const auto announcer = files().announcer();
  if (!announcer || *announcer == topology_.node || files().answer_of(topology_.node)) return;
  files().answer(topology_.node, to_json(ask_node()));
}

bool Watchdog::still_waits(std::uint64_t visit) const {
  const auto view = activity::view_with_device();
  return std::ranges::any_of(view.threads, [&](const auto& thread) { return thread.visit == visit && thread.inside; });
}

void Watchdog::consider() {
  const auto waiting = clock_.longest();
  if (!waiting) {
    next_attempt_ = 0;
    return;
  }
  const double waited = waiting->waited.count();
  if (waited < std::max(next_attempt_, patience_.shortest())) return;
  const auto here = board_.read();
  if (!find_stall(here, patience_) && !(asks_early_ && somebody_waits_for_unknown(here))) return;
  // A rank that was late, and has left meanwhile, looks like one that is gone: the wait for it may just be ending.
  if (!rest(std::min(step_, milliseconds(100))) || !still_waits(waiting->visit)) return;
  const auto view = ask_everybody();
  const auto stall = find_stall(view.slots, patience_);
  if (stall && still_waits(waiting->visit) && rest(0ms)) report(*stall, view);
  if (view.is_announced) files().remove(topology_.nodes);
  next_attempt_ = waited + patience_.for_the_gone;
}

void Watchdog::report(const Stall& stall, const View& view) {
  // Where no file decides which rank reports, the first rank that waits does.
  const auto& ranks = stall.sides.front().ranks;
  const auto position = std::ranges::count_if(ranks, [&](const RankRecord* slot) { return slot->rank < slot_.rank; });
  std::this_thread::sleep_for(std::min<long>(position, 10) * 50ms);
  const auto message = describe(stall, view.silent_nodes, view.note);
  runtime::report(
      {.problem = message.problem,
       .where = message.where,
       .party = Party{.rank = message.culprit->rank, .host = message.culprit->host, .pid = message.culprit->pid},
       .details = message.details,
       .exit_code = stalled_exit_code,
       .kind = "stall",
       .type = message.type});
  if (view.is_announced) files().remove(topology_.nodes);
  mpi::abort_job(stalled_exit_code);
}

// Questions to other ranks and nodes, when a stall is suspected.

// Waits until each rank of the node has published its status and stack, or the time for that is over.
std::vector<RankRecord> Watchdog::ask_node() {
  board_.ask();
  write_flight();
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
