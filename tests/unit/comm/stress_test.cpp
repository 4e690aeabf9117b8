// Random collectives on the ranks of a node: random types, sizes, memory and numbers under way, ranks that are late,
// that pass what the others do not, and that leave. Every result is checked; all numbers are exact in every type.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <deque>
#include <hortator/error.hpp>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/abandoned.hpp"
#include "comm/shm/communicator.hpp"
#include "mpi/collectives.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::ReduceOp;

namespace {

constexpr std::int64_t max_elements = 700;  // in a part
constexpr std::size_t staging = 4096;       // so that most operands take several blocks

/// The operand of rank `rank` in the collective `seed`: small whole numbers.
at::Tensor operand(long seed, int rank, std::int64_t elements, at::ScalarType type) {
  auto tensor = at::empty({elements}, at::kLong);
  auto* values = tensor.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < elements; ++i) values[i] = (i * 7 + rank * 3 + seed) % 5;
  return tensor.to(type);
}

at::Tensor reduced(long seed, int ranks, std::int64_t elements, at::ScalarType type, ReduceOp op) {
  auto result = operand(seed, 0, elements, at::kLong);
  for (int rank = 1; rank < ranks; ++rank) {
    const auto other = operand(seed, rank, elements, at::kLong);
    result = op == ReduceOp::sum ? result + other : op == ReduceOp::max ? result.maximum(other) : result.minimum(other);
  }
  return result.to(type);
}

class Stress {
 public:
  explicit Stress(unsigned seed)
      : world_(mpi::Communicator::world()), all_(seed), own_(seed + 1000U + static_cast<unsigned>(world_.rank())) {}

  long wrong() const { return wrong_; }
  long refused() const { return refused_; }
  long abandoned() const { return abandoned_; }
  const std::string& first_wrong() const { return first_wrong_; }

  void run(long collectives) {
    while (number_ < collectives) {
      mpi::barrier(world_);
      comm::NodeCommunicator communicator(world_.duplicate(), staging);
      windows_.clear();
      for (const auto type : types) windows_[type] = allocate(communicator, type);
      const auto end = std::min(collectives, number_ + pick(all_, 200, 1500));
      if (pick(all_, 0, 1) == 0 || communicator.size() == 1) {
        while (number_ < end) one(communicator);
        while (!open_.empty()) finish();
      } else {
        until_one_leaves(communicator, end);
      }
    }
  }

 private:
  static constexpr std::array types = {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kBFloat16, at::kHalf};

  struct Open {
    comm::Work work;
    at::Tensor result;
    at::Tensor expected;
    std::string what;
  };

  static long pick(std::mt19937& random, long from, long to) {
    return std::uniform_int_distribution<long>(from, to)(random);
  }
  std::array<at::Tensor, 4> allocate(comm::Communicator& communicator, at::ScalarType type) const {
    std::array<at::Tensor, 4> tensors;
    for (auto& tensor : tensors) tensor = communicator.allocate(max_elements * world_.size(), type);
    return tensors;
  }

  void be_late() {
    const auto how = pick(own_, 0, 400);
    if (how == 0) std::this_thread::sleep_for(std::chrono::microseconds(pick(own_, 1, 500)));
    if (how < 20) sched_yield();
  }

  /// A tensor in the window that no collective under way uses, or in private memory.
  at::Tensor memory(std::int64_t elements, at::ScalarType type) {
    if (pick(all_, 0, 1) == 0) return at::full({elements}, -1, type);
    return windows_.at(type)[static_cast<std::size_t>(started_) % 4].narrow(0, 0, elements);
  }

  /// Starts one collective, the same on all ranks, and finishes some that are under way.
  void one(comm::Communicator& communicator) {
    ++number_;
    be_late();
    if (pick(all_, 0, 150) == 0) return refuse(communicator);
    start(communicator);
    // A window is used again four collectives later.
    while (open_.size() > 3 || (!open_.empty() && pick(own_, 0, 2) > 0)) finish();
    if (pick(all_, 0, 40) == 0) communicator.barrier();
  }

  void start(comm::Communicator& communicator) {
    ++started_;
    const auto type = types[static_cast<std::size_t>(pick(all_, 0, types.size() - 1))];
    const auto elements = pick(all_, 0, 3) == 0 ? pick(all_, 0, 8) : pick(all_, 1, max_elements);
    const auto verb = pick(all_, 0, 3);
    const auto op = std::array{ReduceOp::sum, ReduceOp::max, ReduceOp::min}[static_cast<std::size_t>(pick(all_, 0, 2))];
    const int ranks = world_.size();
    const int rank = world_.rank();
    const auto what = "collective " + std::to_string(number_) + ", kind " + std::to_string(verb);
    if (verb == 0) {
      auto tensor = memory(elements, type);
      tensor.copy_(operand(number_, rank, elements, type));
      auto work = communicator.all_reduce(tensor, op);
      open_.push_back({std::move(work), tensor, reduced(number_, ranks, elements, type, op), what});
    } else if (verb == 1) {
      auto input = memory(elements * ranks, type);
      input.copy_(operand(number_, rank, elements * ranks, type));
      auto output = at::full({elements}, -1, type);
      auto work = communicator.reduce_scatter(output, input, op);
      const auto whole = reduced(number_, ranks, elements * ranks, type, op);
      open_.push_back({std::move(work), output, whole.narrow(0, elements * rank, elements), what});
    } else if (verb == 2) {
      auto output = memory(elements * ranks, type);
      auto work = communicator.all_gather(output, operand(number_, rank, elements, type));
      std::vector<at::Tensor> parts;
      for (int peer = 0; peer < ranks; ++peer) parts.push_back(operand(number_, peer, elements, type));
      open_.push_back({std::move(work), output, at::cat(parts), what});
    } else {
      const auto root = static_cast<int>(pick(all_, 0, ranks - 1));
      auto tensor = memory(elements, type);
      tensor.copy_(operand(number_, rank, elements, type));
      auto work = communicator.broadcast(tensor, root);
      open_.push_back({std::move(work), tensor, operand(number_, root, elements, type), what});
    }
  }

  void finish() {
    auto first = std::move(open_.front());
    open_.pop_front();
    be_late();
    first.work.wait();
    if (at::equal(first.result, first.expected)) return;
    ++wrong_;
    if (first_wrong_.empty()) first_wrong_ = first.what;
  }

  /// One rank passes another size, or a tensor that cannot be sent: all throw, and the next collective works.
  void refuse(comm::Communicator& communicator) {
    const auto culprit = pick(all_, 0, world_.size() - 1);
    const bool is_bad = pick(all_, 0, 1) == 0;
    const bool is_mine = culprit == world_.rank();
    if (world_.size() == 1) return;
    try {
      if (is_mine && is_bad) {
        communicator.broadcast(at::ones({3}), world_.size()).wait();
      } else {
        communicator.broadcast(at::ones({is_mine && !is_bad ? 4 : 3}), 0).wait();
      }
      ++wrong_;
      first_wrong_ += " no error in collective " + std::to_string(number_);
    } catch (const UsageError&) {
      ++refused_;
    }
  }

  /// One rank leaves at some moment; each of the others throws its name.
  void until_one_leaves(comm::NodeCommunicator& communicator, long end) {
    const auto who = static_cast<int>(pick(all_, 0, world_.size() - 1));
    const auto after = pick(all_, 0, 3);
    bool has_thrown = false;
    try {
      while (number_ < end) one(communicator);
      leave(communicator, who == world_.rank() ? after : -1);
    } catch (const comm::Abandoned& error) {
      has_thrown = error.rank() == who;
    }
    if (has_thrown == (who == world_.rank())) {
      ++wrong_;
      first_wrong_ += " leaving before collective " + std::to_string(number_);
    }
    ++abandoned_;
    open_.clear();
    resume_together();
  }

  /// Returns after `after` further collectives, or throws when another rank does.
  void leave(comm::NodeCommunicator& communicator, long after) {
    for (long i = 0; i < 8; ++i) {
      if (i == after) return static_cast<void>(communicator.abandon("leaves"));
      ++number_;
      start(communicator);
      finish();
      communicator.barrier();
    }
  }

  /// Ranks have come to different collectives: they continue with the same random numbers.
  void resume_together() {
    number_ = mpi::all_reduce(world_, number_, mpi::Op::max);
    started_ = number_;
    all_.seed(static_cast<unsigned>(number_));
  }

  mpi::Communicator world_;
  std::mt19937 all_;  ///< the same numbers on all ranks
  std::mt19937 own_;
  std::map<at::ScalarType, std::array<at::Tensor, 4>> windows_;
  std::deque<Open> open_;
  long number_ = 0;
  long started_ = 0;
  long wrong_ = 0;
  long refused_ = 0;
  long abandoned_ = 0;
  std::string first_wrong_;
};

void check(long collectives, unsigned seed) {
  Stress stress(seed);
  stress.run(collectives);
  INFO("seed " << seed);
  CHECK(stress.first_wrong() == "");
  CHECK(stress.wrong() == 0);
  if (mpi::Communicator::world().size() == 1) return;
  CHECK(stress.refused() > 0);
  CHECK(stress.abandoned() > 0);
}

}  // namespace

TEST_CASE("random collectives with late, different and leaving ranks have the right results or errors", "[pool]") {
  check(3000, 1);
}

TEST_CASE("a million random collectives have", "[.][million]") {
  for (unsigned seed = 2; seed < 22; ++seed) check(50'000, seed);
}
