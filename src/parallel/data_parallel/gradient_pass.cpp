#include "parallel/data_parallel/gradient_pass.hpp"

#include <c10/core/GradMode.h>

#include <span>

#include "mpi/collectives.hpp"
#include "parallel/data_parallel/gradient_faults.hpp"

namespace hortator::parallel {

bool GradientPass::begin() {
  const bool is_first = !std::exchange(reached_, true);
  if (is_first) parallel_.common_pass.open();
  end_.call([this] { finish_unasked(); }, parallel_.pass);
  return is_first;
}

// Plain loss.backward(): no caller finishes all models together.
void GradientPass::finish_unasked() {
  if (reached_ && !is_announced()) parallel_.common_pass.agree();
  finish();
}

void GradientPass::finish() {
  if (!reached_) return;
  const at::NoGradGuard no_grad;
  reduce();
  if (after_reduction_) after_reduction_();
}

void GradientPass::end() {
  parallel_.common_pass.close();
  reached_ = false;
  end_.forget();
}

std::vector<float> GradientPass::encode(StepSignals signals) const {
  if (parallel_.votes != nullptr) signals.votes = parallel_.votes->ballot();
  return signals.encode(layout());
}

StepSignals GradientPass::decode(const std::vector<float>& message) const {
  auto all = StepSignals::decode(message, layout());
  if (parallel_.votes != nullptr) parallel_.votes->apply_verdict(all.votes);
  return all;
}

void GradientPass::add_by_host(std::vector<float>& message) const {
  mpi::all_reduce(parallel_.host, std::span(message), MPI_SUM);
}

void GradientPass::require_complete(const StepSignals& all, const std::vector<std::string>& missing) const {
  if (!parallel_.options.find_unused_parameters && all.missing) throw_missing(parallel_.host, missing);
}

}  // namespace hortator::parallel
