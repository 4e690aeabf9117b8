#include "parallel/tensor/pickling.hpp"

#include <torch/csrc/jit/serialization/pickler.h>

#include <hortator/error.hpp>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/text/text.hpp"
#include "parallel/tensor/divided_tensor.hpp"

namespace hortator::parallel {
namespace {

using Metadata = std::unordered_map<std::string, bool>;

void refuse_divided(const at::Tensor& tensor) {
  if (!is_divided(tensor)) return;
  throw UsageError({.what = text::concat("torch::save got a tensor that is divided among ranks; this rank's part is [",
                                         text::join(tensor.sizes()), "]"),
                    .why = "it sees one rank, whose part is not the whole tensor",
                    .hint = "use accelerator.save_model() or save_state(), or call it within "
                            "accelerator.summon_full_parameters(model)"});
}

}  // namespace

// The pickler asks these functions about each tensor that it writes or reads, for what a back end keeps with it.
void refuse_pickling(c10::DeviceType type) {
  static std::mutex mutex;
  static std::set<c10::DeviceType> known;
  const std::scoped_lock lock(mutex);
  if (!known.insert(type).second) return;
  auto& functions = torch::jit::GetBackendMetaSerialization()[static_cast<std::size_t>(type)];
  const auto former = functions;
  functions = std::pair<torch::jit::BackendMetaPtr, torch::jit::BackendMetaPtr>(
      [former](const at::Tensor& tensor, Metadata& metadata) {
        refuse_divided(tensor);
        if (former) former->first(tensor, metadata);
      },
      [former](const at::Tensor& tensor, Metadata& metadata) {
        if (former) former->second(tensor, metadata);
      });
}

}  // namespace hortator::parallel
