#include "parallel/data_parallel/gradient_pass.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <iterator>
#include <span>

#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "parallel/data_parallel/gradient_faults.hpp"
#include "parallel/pace/step_times.hpp"

namespace hortator::parallel {

bool GradientPass::begin() {
  drop_interrupted();
  const bool is_first = !std::exchange(reached_, true);
  if (is_first && std::exchange(learns_again_, false)) learn_again();
  if (is_first) parallel_->common_pass.open([this] { return fault(); });
  if (is_first && parallel_->times != nullptr) parallel_->times->begin_model();
  end_.call([this] { finish_unasked(); }, [this] { interrupt(); }, parallel_->pass);
  if (is_first && on_begin_) on_begin_();
  return is_first;
}

// Plain loss.backward(): no caller finishes all models together.
void GradientPass::finish_unasked() {
  if (parallel_->times != nullptr) parallel_->times->note_computed();
  if (reached_ && !is_announced()) parallel_->common_pass.agree();
  finish();
}

void GradientPass::finish() {
  if (!reached_) return;
  const at::NoGradGuard no_grad;
  reduce();
  if (after_reduction_) after_reduction_();
}

void GradientPass::interrupt() {
  if (parallel_->pass.keeps_failed()) return;
  interrupted_among_ = &parallel_->host;
  if (reached_) release();
}

void GradientPass::drop_interrupted() {
  if (interrupted_among_ == nullptr) return;
  const bool lacks_ranks = is_announced();  // those without batches were interrupted by nothing
  if (lacks_ranks ? started() > 0 : !mpi::equal_on_all(*interrupted_among_, started())) {
    throw UsageError({.what = "Backward was called after an exception that has ended the last pass at different places",
                      .why = "ranks wait for gradients of that pass which others have not sent",
                      .hint = "let an exception that is not thrown in the same place on all ranks end the program"});
  }
  const at::NoGradGuard no_grad;
  drop();
  interrupted_among_ = nullptr;
  end();
}

void GradientPass::reduce_among(const DataParallel* binding) {
  parallel_ = binding != nullptr ? binding : &all_;
  learns_again_ = true;
}

void GradientPass::end() {
  parallel_->common_pass.close();
  if (reached_ && parallel_->times != nullptr) parallel_->times->end_model();
  reached_ = false;
  end_.forget();
}

bool GradientPass::may_send_early() const {
  return !parallel_->options.find_unused_parameters ||
         parallel_->common_pass.comes_first(/*finishes_all=*/parallel_->pass.outermost() != no_graph_task);
}

std::size_t GradientPass::message_size() const {
  return layout().size() + (parallel_->times != nullptr ? parallel_->times->message_size() : 0);
}

std::vector<float> GradientPass::encode(StepSignals signals) const {
  if (parallel_->votes != nullptr) signals.votes = parallel_->votes->ballot();
  auto message = signals.encode(layout());
  if (parallel_->times != nullptr) std::ranges::copy(parallel_->times->report(), std::back_inserter(message));
  return message;
}

StepSignals GradientPass::decode(const std::vector<float>& message) const {
  const auto signals = std::span(message).first(std::min(message.size(), layout().size()));
  auto all = StepSignals::decode(signals, layout());
  if (parallel_->times != nullptr) parallel_->times->receive(std::span(message).subspan(signals.size()));
  if (parallel_->votes != nullptr) parallel_->votes->apply_verdict(all.votes);
  return all;
}

void GradientPass::add_by_host(std::vector<float>& message) const {
  mpi::all_reduce(parallel_->host, std::span(message), mpi::Op::sum);
}

std::string GradientPass::fault() const {
  if (parallel_->options.find_unused_parameters) return "";
  const auto names = unsent();
  return names.empty() ? "" : to_string(missing_gradients(text::join(names)));
}

void GradientPass::require_complete(const StepSignals& all, const std::vector<std::string>& missing) const {
  if (!parallel_->options.find_unused_parameters && all.missing) throw_missing(parallel_->host, missing);
}

}  // namespace hortator::parallel
