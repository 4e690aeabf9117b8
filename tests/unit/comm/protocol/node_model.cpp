#include "node_model.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <unordered_set>

namespace hortator::test::protocol {
namespace {

constexpr int max_ranks = 4;
constexpr std::uint8_t half_written = 255;

enum class Action {
  fill,          // the caller writes its operand
  wait_free,     // NodeBoard::post: for the entry's last collective
  begin_post,    //
  end_post,      //
  arrive,        //
  test_arrived,  // NodeCommunicator::advance: jumps if not all have arrived
  test_done,     // jumps if this rank's part is done
  wait_arrived,  //
  read_posts,    // jumps if a rank has refused
  begin_window,  // reads the slice of all ranks
  end_window,    // writes the result to all ranks
  begin_stage,   //
  end_stage,     //
  meet,          //
  wait_met,      //
  read_stages,   // of all ranks, whole
  begin_slice,   // reads the slice of all ranks
  end_slice,     // writes the result to this rank's
  read_slices,   // the result from its owners
  mark_done,     //
  wait_done,     //
  use,           // the caller reads the result
  end,
};
constexpr std::array<std::string_view, 23> names = {
    "fill",        "wait_free",    "begin_post", "end_post",     "arrive",      "test_arrived",
    "test_done",   "wait_arrived", "read_posts", "begin_window", "end_window",  "begin_stage",
    "end_stage",   "meet",         "wait_met",   "read_stages",  "begin_slice", "end_slice",
    "read_slices", "mark_done",    "wait_done",  "use",          "end"};

struct Step {
  Action action;
  std::uint8_t number;       // of the collective, meeting or turn
  std::uint8_t target = 0;   // of a jump
  std::uint8_t content = 0;  // what is written or expected; a result has the next number
  bool is_refused = false;
};

// The steps of one rank. The rank that refuses completes what it has started at once, to throw; the others later.
class Program {
 public:
  Program(const Model& model, bool refuses) : rules_(model.rules) {
    for (const auto& group : model.groups) {
      auto first = calls_.size();
      for (const auto call : group) {
        start(call, first);
        if (call == Call::refused && refuses) first = complete_from(first);
      }
      complete_from(first);
    }
    add({Action::end, 0});
  }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  struct Planned {
    Call call;
    std::uint8_t turn;     // the first one
    std::uint8_t meeting;  // the first one
  };

  std::size_t add(Step step) {
    steps_.push_back(step);
    return steps_.size() - 1;
  }
  void jump_here(const std::vector<std::size_t>& jumps) {
    for (const auto jump : jumps) steps_[jump].target = static_cast<std::uint8_t>(steps_.size());
  }
  static std::uint8_t content_of(std::size_t number) { return static_cast<std::uint8_t>(2 * number); }
  static std::uint8_t number_of(std::size_t index) { return static_cast<std::uint8_t>(index + 1); }

  void start(Call call, std::size_t first) {
    calls_.push_back({call, turn_, meeting_});
    if (call == Call::staged) turn_ += 2;
    if (call == Call::slices) ++turn_;
    if (call == Call::staged || (call == Call::slices && rules_.meets_after_reducing)) {
      meeting_ += 2;
    } else if (call == Call::slices) {
      ++meeting_;
    }
    const auto number = number_of(calls_.size() - 1);
    if (call == Call::window) add({Action::fill, number, 0, content_of(number)});
    if (rules_.frees_posts_late) add({Action::wait_free, number});
    if (!rules_.arrives_after_posting) add({Action::arrive, number});
    add({Action::begin_post, number});
    add({Action::end_post, number});
    if (rules_.arrives_after_posting) add({Action::arrive, number});
    advance(first);
  }

  // Begins with the oldest call that is not done, and ends at the first one whose part would wait.
  void advance(std::size_t first) {
    std::vector<std::size_t> leave;
    for (auto index = first; index < calls_.size(); ++index) {
      const auto number = number_of(index);
      const auto is_done = add({Action::test_done, number});
      leave.push_back(add({Action::test_arrived, number}));
      leave.push_back(read_posts(index));
      if (calls_[index].call != Call::window) {
        leave.push_back(is_done);
        break;
      }
      part(index);
      jump_here({is_done});
    }
    jump_here(leave);
  }

  std::size_t complete_from(std::size_t first) {
    for (; first < calls_.size(); ++first) complete(first);
    return first;
  }

  void complete(std::size_t index) {
    const auto number = number_of(index);
    const auto is_done = add({Action::test_done, number});
    if (rules_.waits_for_arrival) add({Action::wait_arrived, number});
    const auto is_refused = read_posts(index);
    part(index);
    jump_here({is_done});
    if (rules_.waits_for_done) add({Action::wait_done, number});
    if (calls_[index].call == Call::window) add({Action::use, number, 0, content_of(number)});
    const auto over = add({Action::test_done, number});  // always jumps here
    jump_here({is_refused});
    add({Action::mark_done, number});
    jump_here({over});
  }

  std::size_t read_posts(std::size_t index) {
    return add({Action::read_posts, number_of(index), 0, 0, calls_[index].call == Call::refused});
  }

  void meet(std::uint8_t meeting) {
    add({Action::meet, meeting});
    if (rules_.meets_before_reading) add({Action::wait_met, meeting});
  }

  void part(std::size_t index) {
    const auto number = number_of(index);
    const auto& planned = calls_[index];
    if (!rules_.done_after_part) add({Action::mark_done, number});
    if (planned.call == Call::window) {
      add({Action::begin_window, number, 0, content_of(number)});
      add({Action::end_window, number, 0, content_of(number)});
    }
    auto turn = planned.turn;
    auto meeting = planned.meeting;
    for (int block = 0; planned.call == Call::staged && block < 2; ++block, ++turn) {
      stage(turn);
      meet(++meeting);
      add({Action::read_stages, half(turn), 0, content_of(turn + 1U)});
    }
    if (planned.call == Call::slices) {
      stage(turn);
      meet(++meeting);
      add({Action::begin_slice, half(turn), 0, content_of(turn + 1U)});
      add({Action::end_slice, half(turn), 0, content_of(turn + 1U)});
      if (rules_.meets_after_reducing) meet(++meeting);
      add({Action::read_slices, half(turn), 0, content_of(turn + 1U)});
    }
    if (rules_.done_after_part) add({Action::mark_done, number});
  }

  std::uint8_t half(std::uint8_t turn) const { return rules_.alternates_halves ? turn % 2 : 0; }
  void stage(std::uint8_t turn) {
    add({Action::begin_stage, half(turn), 0, content_of(turn + 1U)});
    add({Action::end_stage, half(turn), 0, content_of(turn + 1U)});
  }

  Rules rules_;
  std::vector<Planned> calls_;
  std::vector<Step> steps_;
  std::uint8_t turn_ = 0;
  std::uint8_t meeting_ = 0;
};

enum class Life : std::uint8_t { running, finished, left, heard, killed };

// The counters and memory of one rank. Plain bytes, from which the state's hash is computed.
struct RankState {
  std::uint8_t step = 0;
  Life life = Life::running;
  std::uint8_t arrived = 0;
  std::uint8_t done = 0;
  std::uint8_t met = 0;
  std::array<std::uint8_t, Model::kept> posts{};
  std::array<std::array<std::uint8_t, max_ranks>, 2> stage{};   // by half and slice
  std::array<std::array<std::uint8_t, max_ranks>, 2> window{};  // by tensor and slice
};
using State = std::array<RankState, max_ranks>;

std::uint64_t hash_of(const State& state) {
  static_assert(sizeof(State) % 4 == 0);
  std::array<std::uint32_t, sizeof(State) / 4> numbers{};
  std::memcpy(numbers.data(), state.data(), sizeof(State));
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  for (const auto number : numbers) {
    hash = (hash ^ number) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

class Explorer {
 public:
  explicit Explorer(const Model& model) : model_(model), ranks_(static_cast<std::size_t>(model.ranks)) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) steps_.push_back(Program(model, rank + 1 == ranks_).steps());
  }

  Exploration run() {
    State first{};
    visit(first, {});
    while (!open_.empty() && found_.broken.empty()) {
      const auto state = open_.back().state;
      const auto trace = open_.back().trace;
      open_.pop_back();
      expand(state, trace);
    }
    found_.states = static_cast<long>(seen_.size());
    return found_;
  }

 private:
  struct Open {
    State state;
    std::size_t trace;
  };
  struct Entered {
    std::size_t from;
    std::uint8_t rank;
    std::uint8_t step;
  };

  void visit(const State& state, Entered entered) {
    if (!seen_.insert(hash_of(state)).second) return;
    history_.push_back(entered);
    open_.push_back({state, history_.size() - 1});
  }

  void fail(std::string_view what, std::size_t rank, std::size_t trace) {
    found_.broken = "rank " + std::to_string(rank) + ": " + std::string(what) + "; the steps before:";
    std::string steps;
    for (int shown = 0; trace != 0 && shown < 60; trace = history_[trace].from, ++shown) {
      const auto& step = steps_[history_[trace].rank][history_[trace].step];
      steps = ' ' + std::to_string(history_[trace].rank) + ':' +
              std::string(names[static_cast<std::size_t>(step.action)]) + std::to_string(step.number) + steps;
    }
    found_.broken += steps;
  }

  void expand(const State& state, std::size_t trace) {
    bool moves = false;
    const bool is_whole = std::all_of(state.begin(), state.begin() + model_.ranks, [](const RankState& rank) {
      return rank.life == Life::running || rank.life == Life::finished;
    });
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const auto& mine = state[rank];
      if (mine.life != Life::running) continue;
      const Entered entered{trace, static_cast<std::uint8_t>(rank), mine.step};
      if (is_whole && model_.fault != Fault::none) {
        State after = state;
        after[rank].life = model_.fault == Fault::abandoned ? Life::left : Life::killed;
        visit(after, entered);
      }
      const auto& step = steps_[rank][mine.step];
      if (waits(step) && hears_abort(state)) {
        State after = state;
        after[rank].life = Life::heard;
        visit(after, entered);
        moves = true;
      }
      if (!can_run(state, step)) continue;
      moves = true;
      State after = state;
      if (const auto problem = run(after, rank, step); !problem.empty()) return fail(problem, rank, trace);
      visit(after, entered);
    }
    if (!moves) end(state, trace);
  }

  // No rank can move.
  void end(const State& state, std::size_t trace) {
    const auto count = [&](Life life) {
      return std::count_if(state.begin(), state.begin() + model_.ranks,
                           [=](const RankState& rank) { return rank.life == life; });
    };
    const auto killed = count(Life::killed);
    const auto left = count(Life::left);
    const auto blocked = count(Life::running);
    found_.faults += killed + left;
    found_.blocked += blocked > 0 ? 1 : 0;
    found_.finished += count(Life::finished) == model_.ranks ? 1 : 0;
    if (blocked > 0 && killed == 0) fail("waits for ever, though no rank was killed", 0, trace);
    if (count(Life::heard) > 0 && left == 0) fail("throws that a rank has left, but none has", 0, trace);
  }

  bool all(const State& state, std::uint8_t RankState::*counter, int number) const {
    return std::all_of(state.begin(), state.begin() + model_.ranks,
                       [=](const RankState& rank) { return rank.*counter >= number; });
  }

  static bool waits(const Step& step) {
    return step.action == Action::wait_free || step.action == Action::wait_arrived || step.action == Action::wait_met ||
           step.action == Action::wait_done;
  }

  bool hears_abort(const State& state) const {
    return model_.rules.looks_for_aborts && std::any_of(state.begin(), state.begin() + model_.ranks,
                                                        [](const auto& rank) { return rank.life == Life::left; });
  }

  bool can_run(const State& state, const Step& step) const {
    if (step.action == Action::wait_free) return all(state, &RankState::done, step.number - Model::kept);
    if (step.action == Action::wait_arrived) return all(state, &RankState::arrived, step.number);
    if (step.action == Action::wait_met) return all(state, &RankState::met, step.number);
    if (step.action == Action::wait_done) return all(state, &RankState::done, step.number);
    return true;
  }

  using Memory = std::array<std::array<std::uint8_t, max_ranks>, 2> RankState::*;

  // Whether slice `slice` of all ranks, or all slices of one rank, has `content`.
  bool slice_is(const State& state, Memory memory, std::size_t half, std::size_t slice, int content) const {
    return std::all_of(state.begin(), state.begin() + model_.ranks,
                       [=](const RankState& rank) { return (rank.*memory)[half][slice] == content; });
  }
  void write_own(RankState& rank, Memory memory, std::size_t half, std::uint8_t content) const {
    std::fill_n((rank.*memory)[half].begin(), ranks_, content);
  }

  // Runs a step that need not wait. Returns the property that it breaks.
  std::string run(State& state, std::size_t rank, const Step& step) {
    auto& mine = state[rank];
    const std::size_t entry = step.number % Model::kept;
    const std::size_t tensor = step.number % 2;
    const auto result = static_cast<std::uint8_t>(step.content + 1);
    bool jumps = false;
    switch (step.action) {
      case Action::fill:
        write_own(mine, &RankState::window, tensor, step.content);
        break;
      case Action::begin_post:
        mine.posts[entry] = half_written;
        break;
      case Action::end_post:
        mine.posts[entry] = step.number;
        break;
      case Action::arrive:
        mine.arrived = step.number;
        break;
      case Action::mark_done:
        mine.done = step.number;
        break;
      case Action::meet:
        mine.met = step.number;
        break;
      case Action::test_arrived:
        jumps = !all(state, &RankState::arrived, step.number);
        break;
      case Action::test_done:
        jumps = mine.done >= step.number;
        break;
      case Action::read_posts:
        for (std::size_t peer = 0; peer < ranks_; ++peer)
          if (state[peer].posts[entry] != step.number) return "reads another collective's post";
        jumps = step.is_refused;
        break;
      case Action::begin_window:
        if (!slice_is(state, &RankState::window, tensor, rank, step.content)) return "reduces what is not the operand";
        for (std::size_t peer = 0; peer < ranks_; ++peer) state[peer].window[tensor][rank] = half_written;
        break;
      case Action::end_window:
        for (std::size_t peer = 0; peer < ranks_; ++peer) state[peer].window[tensor][rank] = result;
        break;
      case Action::use:
        for (std::size_t slice = 0; slice < ranks_; ++slice)
          if (mine.window[tensor][slice] != result) return "uses a result that is not complete";
        break;
      case Action::begin_stage:
        write_own(mine, &RankState::stage, step.number, half_written);
        break;
      case Action::end_stage:
        write_own(mine, &RankState::stage, step.number, step.content);
        break;
      case Action::read_stages:
        for (std::size_t slice = 0; slice < ranks_; ++slice)
          if (!slice_is(state, &RankState::stage, step.number, slice, step.content))
            return "reads another turn's block";
        break;
      case Action::begin_slice:
        if (!slice_is(state, &RankState::stage, step.number, rank, step.content)) return "reduces another turn's block";
        mine.stage[step.number][rank] = half_written;
        break;
      case Action::end_slice:
        mine.stage[step.number][rank] = result;
        break;
      case Action::read_slices:
        for (std::size_t peer = 0; peer < ranks_; ++peer)
          if (state[peer].stage[step.number][peer] != result) return "reads a slice that is not reduced";
        break;
      case Action::end:
        mine.life = Life::finished;
        return {};
      default:
        break;
    }
    mine.step = jumps ? step.target : static_cast<std::uint8_t>(mine.step + 1);
    return {};
  }

  const Model& model_;
  std::size_t ranks_;
  std::vector<std::vector<Step>> steps_;    // of each rank
  std::unordered_set<std::uint64_t> seen_;  // hashes: of ten million states, two are equal once in 300,000 explorations
  std::vector<Entered> history_;
  std::vector<Open> open_;
  Exploration found_;
};

}  // namespace

Exploration explore(const Model& model) { return Explorer(model).run(); }

}  // namespace hortator::test::protocol
