#include <algorithm>
#include <hortator/training/find_batch_size.hpp>

#include "accelerator/batch_size/out_of_memory.hpp"
#include "accelerator/channels/channels.hpp"
#include "accelerator/training/training.hpp"
#include "comm/abandoned.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::detail {
namespace {

using accelerator::is_out_of_memory;

enum class Outcome : std::int32_t { fits, out_of_memory, freed };

/// A rank's report to the others after a try.
struct Report {
  Outcome outcome = Outcome::fits;
  std::uint64_t host_collectives = 0;
  std::int64_t next = 0;
};

// In floating point, as in Hugging Face Accelerate.
std::int64_t nine_tenths(std::int64_t batch_size) {
  return static_cast<std::int64_t>(0.9 * static_cast<double>(batch_size));
}

[[noreturn]] void throw_none_fits(std::int64_t start, int culprit) {
  throw Error({.what = text::concat("No batch size fits into memory, from ", start, " down"),
               .why = "every size that was tried ran out of it",
               .hint = "use a smaller model, or recompute activations"})
      .on_rank(culprit);
}

}  // namespace

/// Lets the ranks meet after a try on a communicator of its own, whatever collective the others are still in.
struct BatchSizeSearch::Round {
  explicit Round(const mpi::Communicator& host) : comm(host.duplicate()) {}

  std::vector<Report> meet(const Report& mine, std::optional<std::chrono::milliseconds> patience,
                           std::string_view backend) const {
    auto all = mpi::all_gather_within(comm, mine, patience);
    if (all) return *std::move(all);
    throw Error(
        {.what = "Only this rank has run out of memory",
         .why = text::concat("the others wait for it in a collective of the ", backend,
                             " back end, which they cannot leave"),
         .hint =
             "start with a batch size that fits on all ranks; on one node the back ends node and nccl can continue"});
  }

  mpi::Communicator comm;
};

BatchSizeSearch::BatchSizeSearch(Accelerator& accelerator, BatchSizeOptions options)
    : accelerator_(accelerator), options_(std::move(options)), batch_size_(options_.start) {
  const auto& host = accelerator::Training::of(accelerator).host();
  mpi::same_on_all(host, std::to_string(batch_size_), "the first batch size");
  round_ = std::make_unique<Round>(host);
  if (!options_.next) options_.next = nine_tenths;
  if (batch_size_ < 1) throw_none_fits(options_.start, 0);
}

BatchSizeSearch::~BatchSizeSearch() = default;

bool BatchSizeSearch::attempt(const std::function<void()>& body) {
  auto& training = accelerator::Training::of(accelerator_);
  Report mine;
  bool others_are_free = true;
  try {
    body();
  } catch (...) {
    const bool was_freed = comm::is_abandoned(std::current_exception());
    const bool no_memory = is_out_of_memory(std::current_exception());
    others_are_free = training.abandon(no_memory ? "it is out of memory" : "an exception has ended its work");
    if (!no_memory && !was_freed) throw;
    mine.outcome = no_memory ? Outcome::out_of_memory : Outcome::freed;
  }
  mine.host_collectives = training.host().membership().entered();
  mine.next = options_.next(batch_size_);
  const bool waits_at_will = others_are_free || mine.outcome == Outcome::fits;
  const auto all = round_->meet(mine, waits_at_will ? std::nullopt : std::optional(options_.patience),
                                training.channels.device_communicator().name());
  const auto is = [](Outcome outcome) { return [=](const Report& report) { return report.outcome == outcome; }; };
  if (std::all_of(all.begin(), all.end(), is(Outcome::fits))) return true;

  const int culprit = static_cast<int>(std::find_if(all.begin(), all.end(), is(Outcome::out_of_memory)) - all.begin());
  const auto in_step = [&](const Report& report) { return report.host_collectives == all[0].host_collectives; };
  if (!std::all_of(all.begin(), all.end(), in_step)) {
    throw Error({.what = "Some ranks ran out of memory between two agreements of all ranks",
                 .why = "their collectives would no longer match",
                 .hint = "start with a smaller batch size"})
        .on_rank(culprit);
  }
  training.start_afresh();
  mpi::barrier(round_->comm);  // or one could abandon again while others still make their communicators
  go_down(all[0].next, culprit);
  return false;
}

void BatchSizeSearch::go_down(std::int64_t proposed, int culprit) {
  if (proposed >= batch_size_) {
    throw UsageError({.what = text::concat("next(", batch_size_, ") is ", proposed),
                      .why = "the search would never end",
                      .hint = "return a smaller batch size"});
  }
  const auto tried = std::exchange(batch_size_, proposed);
  if (batch_size_ < 1) throw_none_fits(options_.start, culprit);
  log::info("batch size ", tried, " does not fit: out of memory on rank ", culprit, "; trying ", batch_size_);
}

}  // namespace hortator::detail
