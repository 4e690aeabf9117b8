#include <algorithm>
#include <deque>
#include <hortator/parallel/split_between_processes.hpp>
#include <hortator/training/answers.hpp>
#include <map>

#include "accelerator/answers/answer_batches.hpp"
#include "accelerator/answers/answer_journal.hpp"
#include "core/activity/activity.hpp"
#include "core/call_site.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "observe/progress/progress_bar.hpp"
#include "runtime/world.hpp"

namespace hortator::detail {
namespace {

using Numbers = std::vector<std::int64_t>;
using Answers = std::vector<std::pair<std::int64_t, std::string>>;

/// A rank's answers and its failures.
struct Delivery {
  Answers answers = {};
  Numbers failed = {};       ///< the prompts that cannot be answered
  std::string problem = {};  ///< the first one; empty if there is none
  auto fields() { return std::tie(answers, failed, problem); }
};

std::uint64_t fingerprint_of(const std::vector<PromptFacts>& prompts) {
  std::uint64_t all = prompts.size();
  for (const auto& prompt : prompts) all = core::mix(all, prompt.fingerprint);
  return all;
}

void validate(const AnswerOptions& options) {
  if (options.batch_size < 1 || options.max_batch_length < 0) {
    throw UsageError({.what = text::concat("A batch of ", options.batch_size, " prompts and a length of ",
                                           options.max_batch_length, " is not valid"),
                      .hint = "use a batch_size from 1 and a max_batch_length from 0 (no limit)"});
  }
}

std::string shown(const Numbers& prompts) {
  constexpr std::size_t max_shown = 8;
  const Numbers first(prompts.begin(),
                      prompts.begin() + static_cast<std::ptrdiff_t>(std::min(max_shown, prompts.size())));
  return text::join(first) + (prompts.size() > max_shown ? ", ..." : "");
}

Problem problem_of(const Delivery& delivery, std::size_t answered, std::size_t prompts, bool kept) {
  const auto where = delivery.failed.empty() ? std::string() : text::concat(" on prompts ", shown(delivery.failed));
  return {.what = text::concat("Answering failed", where, ": ", delivery.problem),
          .why = text::concat(answered, " of ", prompts, " prompts are answered"),
          .hint = kept ? "the same call resumes from there"
                       : "hortator::IncompleteAnswers has their answers; AnswerOptions::keep outlives the run"};
}

}  // namespace

std::uint64_t fingerprint(std::string_view bytes) { return core::hash(bytes); }

void check_answer_count(std::size_t prompts, std::size_t answers) {
  if (prompts == answers) return;
  throw UsageError(
      {.what = text::concat("The function returned ", text::count(static_cast<long long>(answers), "answer"), " to ",
                            text::count(static_cast<long long>(prompts), "prompt")),
       .why = "answers belong to prompts by their place in the batch"});
}

struct Answering::Impl {
  const State state;
  const std::vector<PromptFacts>& prompts;
  const AnswerOptions options;
  Delivery mine = {};
  std::optional<accelerator::AnswerJournal> journal = {};

  const mpi::Communicator& comm() const { return state.world().comm(); }

  // Whether other ranks compute the same batches with this one. They may wait for it where it fails.
  bool shares_batches() const {
    return split_position(state.process_index(), state.num_processes()).world < state.num_processes();
  }

  // Only rank 0 reads the folder; it delivers the answers found there with its own.
  Numbers open_prompts() {
    std::map<std::int64_t, std::string> kept;
    mpi::all_or_none(comm(), [&] {
      if (journal && state.is_main_process()) kept = journal->read(prompts);
    });
    Numbers open;
    for (std::int64_t prompt = 0; prompt < static_cast<std::int64_t>(prompts.size()); ++prompt) {
      if (!kept.contains(prompt)) open.push_back(prompt);
    }
    if (journal) decode(mpi::broadcast(comm(), std::string_view(encode(open))), open);
    mine.answers.assign(std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()));
    return open;
  }

  void keep(const Numbers& batch, std::vector<std::string> answers) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (journal) journal->write(batch[i], prompts[static_cast<std::size_t>(batch[i])], answers[i]);
      mine.answers.emplace_back(batch[i], std::move(answers[i]));
    }
    if (journal) journal->flush();
  }

  std::deque<Numbers> batches = {};

  // Answers the next batch. One that fails is halved: it did not fit into memory, or one of its prompts cannot be
  // answered, which costs only that one. Returns how many prompts are settled.
  std::int64_t answer_next(const AnswerBatch& answer_batch) {
    const auto batch = std::move(batches.front());
    batches.pop_front();
    std::vector<std::string> answers;
    try {
      answers = answer_batch(batch);
    } catch (const std::exception& error) {
      if (shares_batches()) throw;
      if (batch.size() == 1) {
        mine.failed.push_back(batch.front());
        note(error);
        return 1;
      }
      const auto half = batch.begin() + static_cast<std::ptrdiff_t>((batch.size() + 1) / 2);
      batches.emplace_front(half, batch.end());
      batches.emplace_front(batch.begin(), half);
      return 0;
    }
    keep(batch, std::move(answers));
    return std::ssize(batch);
  }

  void note(const std::exception& error) {
    if (!mine.problem.empty()) return;
    mine.problem = std::string(error.what()).empty() ? "an exception without a message" : error.what();
  }

  // The bar counts this rank's prompts, on one rank of each node: all ranks take about the same time.
  std::unique_ptr<ProgressSink> start_progress() const {
    std::size_t share = 0;
    for (const auto& batch : batches) share += batch.size();
    auto bar =
        observe::make_progress(state.is_local_main_process() ? observe::Audience::people : observe::Audience::nobody);
    bar->start("answering", static_cast<std::int64_t>(share), 0);
    return bar;
  }
};

Answering::Answering(const State& state, const std::vector<PromptFacts>& prompts, const AnswerOptions& options)
    : impl_(std::make_unique<Impl>(Impl{.state = state, .prompts = prompts, .options = options})) {
  const CallSite site(__builtin_return_address(0));
  const auto& comm = impl_->comm();
  mpi::all_or_none(comm, [&] { validate(options); });
  if (!mpi::equal_on_all(comm, fingerprint_of(prompts))) {
    throw UsageError({.what = "The ranks have different prompts",
                      .why = "each answers its share of those that all have",
                      .hint = "read them on all ranks, or send them with broadcast_object_list()"});
  }
  if (!options.keep.empty()) impl_->journal.emplace(options.keep);
  const auto batches = accelerator::batches_of(state.split_between_processes(impl_->open_prompts()), prompts, options);
  impl_->batches.assign(batches.begin(), batches.end());
}

Answering::~Answering() = default;

void Answering::run(const AnswerBatch& answer) {
  const activity::PhaseScope phase(activity::Phase::one_side_first);  // answers may take long
  auto& batches = impl_->batches;
  const auto bar = impl_->start_progress();
  try {
    if (impl_->journal && !batches.empty()) impl_->journal->open(impl_->state.process_index());
    while (!batches.empty()) {
      for (auto settled = impl_->answer_next(answer); settled > 0; --settled) bar->advance();
    }
  } catch (const std::exception& error) {  // answers cannot be kept: further ones would be lost, too
    if (impl_->shares_batches()) throw;
    impl_->note(error);
  }
  bar->finish();
  if (impl_->journal) impl_->journal->close();
}

Answering::Outcome Answering::gather() {
  const CallSite site(__builtin_return_address(0));
  const auto& comm = impl_->comm();
  const auto encoded = mpi::all_gather(comm, std::string_view(encode(impl_->mine)));
  Outcome outcome;
  outcome.answers.resize(impl_->prompts.size());
  std::optional<Delivery> failed;
  std::size_t answered = 0;
  for (int rank = 0; rank < comm.size(); ++rank) {
    Delivery delivery;
    decode(encoded[static_cast<std::size_t>(rank)], delivery);
    answered += delivery.answers.size();
    for (auto& [prompt, answer] : delivery.answers)
      outcome.answers[static_cast<std::size_t>(prompt)] = std::move(answer);
    if (delivery.problem.empty() || failed) continue;
    outcome.rank = rank;
    failed = std::move(delivery);
  }
  if (failed) {
    outcome.problem = problem_of(*failed, answered, impl_->prompts.size(), impl_->journal.has_value());
  } else if (impl_->journal && impl_->state.is_main_process()) {
    impl_->journal->remove();
  }
  return outcome;
}

}  // namespace hortator::detail
