#include <hortator/error.hpp>
#include <hortator/parallel/synchronize_batch_norms.hpp>

#include "parallel/batch_norm/interception.hpp"
#include "parallel/batch_norm/marked_norms.hpp"

namespace hortator::detail {
namespace {

[[noreturn]] void throw_no_owner() {
  throw UsageError({.what = "synchronize_batch_norms got a BatchNorm that no std::shared_ptr owns",
                    .why = "operators could call it after it was destroyed",
                    .hint = "use the holder torch::nn::BatchNorm2d instead of BatchNorm2dImpl, or std::make_shared"});
}

}  // namespace

std::int64_t synchronize_batch_norms(torch::nn::Module& module) {
  // The module itself may be an object that no shared_ptr owns.
  auto parts = module.modules(/*include_self=*/false);
  const auto self = module.weak_from_this().lock();
  if (self != nullptr) parts.push_back(self);
  if (self == nullptr && parallel::is_batch_norm(module)) throw_no_owner();
  std::erase_if(parts, [](const auto& part) { return !parallel::is_batch_norm(*part); });
  if (!parts.empty()) parallel::intercept_marked_norms();
  for (const auto& norm : parts) parallel::MarkedNorms::instance().add(norm);
  return static_cast<std::int64_t>(parts.size());
}

std::vector<std::string> unsynchronized_batch_norms(const torch::nn::Module& module) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, const torch::nn::Module& part) {
    if (parallel::is_batch_norm(part) && !parallel::MarkedNorms::instance().contains(part)) names.push_back(name);
  };
  add("", module);
  for (const auto& part : module.named_modules("", /*include_self=*/false)) add(part.key(), *part.value());
  return names;
}

}  // namespace hortator::detail
