#include "accelerator/weights/divided_loading.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <functional>
#include <optional>
#include <utility>

#include "mpi/agree.hpp"

namespace hortator::accelerator {
namespace {

/// What this rank has of a divided parameter: its part, or a slice of that.
class OwnElements {
 public:
  OwnElements(const step::ModelCore& model, const parallel::DividedModule::DividedParameter& divided)
      : ranks_(model.divided()->ranks()), divided_(divided) {
    if (model.sharded() != nullptr) sharded_ = model.sharded()->find(divided.parameter);
    of_part_ = sharded_ ? sharded_.owned() : core::Range{0, divided.parameter.numel()};
  }

  /// Reads no more of the stored tensor than is needed to find them; all of one that is padded.
  void read(const weights::WeightSource& source, const std::string& stored) const {
    if (divided_.division.padding > 0) {
      const auto whole = new_whole();
      weights::fill(source, {{.stored = stored, .tensor = whole}});
      return take_from(whole);
    }
    const auto runs = parallel::runs_of(divided_.part, divided_.division);
    const auto cover = parallel::cover_of(runs, of_part_, ranks_.index(), ranks_.size());
    if (cover.size() == 0) return;
    const auto values = new_values({cover.size()});
    weights::fill(source, {{.stored = stored, .tensor = values, .elements = cover}});
    put(ranks_.own_elements(values, runs, of_part_));
  }

  at::Tensor new_whole() const {
    return new_values(parallel::whole_sizes(divided_.part, divided_.division, ranks_.size()));
  }
  void take_from(const at::Tensor& whole) const {
    const auto part = ranks_.part_of(whole, divided_.division).flatten();
    put(part.narrow(0, of_part_.begin, of_part_.size()));
  }

 private:
  at::Tensor new_values(at::IntArrayRef sizes) const {
    const auto& target = sharded_ ? sharded_.slice() : divided_.parameter;
    return at::empty(sizes, at::TensorOptions().dtype(target.scalar_type()));
  }
  void put(const at::Tensor& values) const {
    const at::NoGradGuard no_grad;
    const parallel::PartsOnly each_rank_has;
    (sharded_ ? sharded_.slice() : divided_.parameter.detach().view({-1})).copy_(values);
  }

  const parallel::TensorRanks& ranks_;
  const parallel::DividedModule::DividedParameter& divided_;
  parallel::FlatParameter sharded_ = {};  ///< empty if this rank has the whole part
  core::Range of_part_ = {};
};

}  // namespace

std::vector<weights::Filling> load_divided(const Loading& loading, const step::ModelCore& model, Channels& channels,
                                           bool each_reads) {
  std::vector<std::pair<std::string, OwnElements>> divided;
  std::vector<weights::Filling> others;
  for (const auto& filling : loading.fillings()) {
    const auto* found = model.divided()->find(filling.tensor);
    found == nullptr ? others.push_back(filling)
                     : void(divided.emplace_back(filling.stored, OwnElements(model, *found)));
  }
  const auto& host = channels.host();
  if (each_reads) {
    mpi::all_or_none(host, [&] {
      for (const auto& [stored, own] : divided) own.read(loading.source(), stored);
    });
    return others;
  }
  for (const auto& [stored, own] : divided) {
    std::vector<weights::Filling> whole = {{.stored = stored}};
    std::function<void()> fill;
    mpi::all_or_none(host, [&] {
      whole.front().tensor = own.new_whole();
      fill = weights::filling_together(channels.communicator_of(whole.front().tensor), loading.source(), whole);
    });
    mpi::all_or_none(host, [&] {
      fill();
      own.take_from(whole.front().tensor);
    });
  }
  return others;
}

}  // namespace hortator::accelerator
