#include "parallel/pipeline/work/stages_of_modules.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <exception>
#include <hortator/detail/stages.hpp>
#include <hortator/error.hpp>
#include <map>
#include <mutex>
#include <string>

#include "core/text/text.hpp"
#include "interception/operator_handlers.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "parallel/pipeline/work/stage_work.hpp"

namespace hortator {
namespace parallel {
namespace {

struct Known {
  const StageMap* map;
  StageRanks* ranks;
};

struct Table {
  std::mutex mutex;
  std::map<const torch::nn::Module*, Known> known;
};

Table& table() {
  static auto* const all = new Table;  // never destroyed: models may outlive static objects
  return *all;
}

Known find(const torch::nn::Module& module) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().known.find(&module);
  return found == table().known.end() ? Known{} : found->second;
}

}  // namespace

StagesOfModule::StagesOfModule(const torch::nn::Module& module, const StageMap& map, StageRanks& ranks)
    : module_(&module) {
  const std::lock_guard lock(table().mutex);
  table().known[module_] = {.map = &map, .ranks = &ranks};
}

StagesOfModule::~StagesOfModule() {
  const std::lock_guard lock(table().mutex);
  table().known.erase(module_);
}

void agree(const StageWork& work, const mpi::Communicator& host) {
  if (mpi::all_reduce(host, work.has_failed() ? 1 : 0, mpi::Op::max) == 0) return;
  mpi::all_or_none(host, [&] {
    if (work.error()) std::rethrow_exception(work.error());
  });
  throw Error({.what = "A stage of the pipeline has failed"});
}

at::Tensor from_last(const at::Tensor& tensor, const RankGroup& ranks, c10::Device device) {
  const int last = ranks.size() - 1;
  const bool is_last = ranks.index() == last;
  auto whole = is_last && tensor.defined() ? interception::whole_values(tensor).detach().contiguous() : at::Tensor();
  std::string spec;
  if (whole.defined()) spec = text::concat(static_cast<int>(whole.scalar_type()), ",", text::join(whole.sizes(), ","));
  spec = mpi::broadcast(ranks.host, spec, last);
  if (spec.empty()) return {};
  if (!is_last) {
    const auto fields = text::split(spec, ',');
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 1; i < fields.size(); ++i) {
      if (!fields[i].empty()) sizes.push_back(std::stoll(fields[i]));
    }
    const auto type = static_cast<at::ScalarType>(std::stoi(fields.front()));
    whole = at::empty(sizes, at::TensorOptions().dtype(type).device(device));
  }
  ranks.communicator_of(whole).broadcast(whole, last).wait();
  return whole;
}

}  // namespace parallel

bool detail::forward_through_stages(const torch::nn::Module& module, const std::function<void()>& run,
                                    const std::vector<at::Tensor*>& results) {
  using namespace parallel;
  const auto known = find(module);
  if (known.ranks == nullptr || current_pass() != nullptr) return false;
  if (at::GradMode::is_enabled()) {
    throw UsageError({.what = "A model whose layers are on several ranks was called where gradients are computed",
                      .why = "forward goes through the stages at once, and backward could not",
                      .hint = "use at::NoGradGuard, or accelerator.pipeline_step() to train"});
  }
  auto& stages = *known.ranks;
  StageWork work(&stages, known.map, {.forward = [&](int) { return run(), at::Tensor(); }, .on_failure = {}});
  std::vector<StageAction> plan;
  for (int stage = stages.ranks.index(); stage < stages.shape.stages(); stage += stages.shape.ranks)
    plan.push_back({.kind = StageAction::Kind::forward, .stage = stage, .micro_batch = 0});
  work.run(plan);
  agree(work, stages.ranks.host);
  for (auto* result : results) *result = from_last(*result, stages.ranks, stages.links.device());
  return true;
}

}  // namespace hortator
