#include "paging/interception/interception_check.hpp"

#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "paging/interception/claims.hpp"
#include "paging/interception/paged_key.hpp"
#include "paging/interception/storage_state.hpp"

namespace hortator::paging {
namespace {

/// Lends one storage its bytes while an operator uses it.
class Lender final : public StorageProvider {
 public:
  explicit Lender(at::Storage storage) : storage_(std::move(storage)) {
    claim(storage_, {.provider = this});
    take_memory(storage_, "absent");
  }
  ~Lender() override { disclaim(storage_); }
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

  void enter(int /*number*/, Access /*access*/) override {
    ++entries;
    if (inside_++ == 0) lend_memory(storage_, reinterpret_cast<std::byte*>(values_));
  }
  void leave(int /*number*/) noexcept override {
    if (--inside_ == 0) take_memory(storage_, "absent");
  }
  void hand_over(int /*number*/, Content /*content*/) override {}

  int entries = 0;

 private:
  at::Storage storage_;
  float values_[2] = {3, 5};
  int inside_ = 0;
};

void expect(bool holds, const char* what) {
  if (holds) return;
  throw Error({.what = text::concat("Parameters cannot be paged with this LibTorch (", TORCH_VERSION, "): ", what),
               .why = text::concat("operators are intercepted by the dispatch key ", c10::toString(paged_key)),
               .hint = "use LibTorch 2.11 to 2.15, or train without offloading and sharding of parameters"});
}

void try_out() {
  const c10::InferenceMode ordinary(false);  // whatever the caller's mode
  const c10::AutoGradMode with_gradients(true);
  auto weight = at::ones({2}, at::kFloat).requires_grad_();
  auto input = at::ones({2}, at::kFloat).requires_grad_();
  Lender lender(weight.storage());
  add_key(weight);
  const auto view = weight.view({2, 1});
  expect(lender.entries == 0 && carries_key(view), "a view does not inherit the key, or reads");
  const auto product = at::mul(input, weight);
  expect(lender.entries == 1, "an operator is not intercepted");
  expect(!carries_key(product), "a result has the key");
  product.sum().backward();
  expect(lender.entries == 2, "backward is not intercepted");
  const bool is_right = product.const_data_ptr<float>()[1] == 5 && input.grad().const_data_ptr<float>()[0] == 3;
  expect(is_right, "an operator computes a wrong result");
}

}  // namespace

void check_interception() {
  try {
    try_out();
  } catch (const c10::Error& error) {
    expect(false, error.what_without_backtrace());
  }
}

}  // namespace hortator::paging
