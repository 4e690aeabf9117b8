#include "parallel/pipeline/stage_pass.hpp"

#include <hortator/error.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <utility>

#include "core/text/text.hpp"

namespace hortator {
namespace parallel {
namespace {

thread_local StagePass* current = nullptr;

}  // namespace

void StagePass::begin(std::size_t layers) {
  const auto count = static_cast<std::int64_t>(layers);
  if (!stage_.of_model) {
    stage_.layers = {.begin = 0, .end = count};
    return;
  }
  if (std::exchange(is_begun_, true)) {
    throw UsageError({.what = "The layers of a pipeline were run twice for one micro-batch",
                      .why = "a stage passes each micro-batch to the next stage once",
                      .hint = "call the model once in the function that pipeline_step() gets, with all inputs in one "
                              "batch"});
  }
  if (count == *stage_.of_model) return;
  throw UsageError({.what = text::concat("PipelineLayers got ", text::count(static_cast<int>(layers), "layer"),
                                         ", and pipeline_layers() has named ", *stage_.of_model),
                    .why = "stages were cut by the names",
                    .hint = "let both have the same layers, in the same order"});
}

void StagePass::begin_layer(std::int64_t layer) const {
  if (border_.seed) border_.seed(layer);
}

StageTensors StagePass::enter(const std::function<StageTensors()>& first) {
  if (!stage_.is_first) return border_.receive();
  begin_layer(-1);
  return first();
}

void StagePass::leave(const StageTensors& results) {
  if (stage_.is_last) return begin_layer(stage_.layers.end);
  border_.send(results);
  throw StageEnd();
}

StagePass* current_pass() { return current; }

PassScope::PassScope(StagePass& pass) : before_(std::exchange(current, &pass)) {}
PassScope::~PassScope() { current = before_; }

}  // namespace parallel

PipelineLayers::PipelineLayers(std::size_t layers) : pass_(parallel::current_pass()), last_(layers) {
  if (pass_ == nullptr) return;
  pass_->begin(layers);
  first_ = static_cast<std::size_t>(pass_->stage().layers.begin);
  last_ = static_cast<std::size_t>(pass_->stage().layers.end);
}

std::size_t PipelineLayers::Iterator::operator*() const {
  if (pass_ != nullptr) pass_->begin_layer(static_cast<std::int64_t>(at_));
  return at_;
}

bool PipelineLayers::has_all() const { return pass_ == nullptr || (pass_->stage().is_first && pass_->stage().is_last); }

bool PipelineLayers::is_first() const { return pass_ == nullptr || pass_->stage().is_first; }

at::Tensor PipelineLayers::enter(const std::function<at::Tensor()>& begin) {
  return enter_all([&] { return std::vector{begin()}; }).at(0);
}

std::vector<at::Tensor> PipelineLayers::enter_all(const std::function<std::vector<at::Tensor>()>& begin) {
  return pass_ == nullptr ? begin() : pass_->enter(begin);
}

void PipelineLayers::leave(const at::Tensor& result) { leave(std::vector{result}); }

void PipelineLayers::leave(const std::vector<at::Tensor>& results) {
  if (pass_ != nullptr) pass_->leave(results);
}

}  // namespace hortator
