#include "interception/registration.hpp"

#include <torch/library.h>

#include <hortator/error.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::interception {
namespace {

std::unique_ptr<torch::Library> library_of(const char* operators, c10::DispatchKey key) {
  return std::make_unique<torch::Library>(torch::Library::IMPL, operators, std::make_optional(key), __FILE__, __LINE__);
}

torch::CppFunction function_of(c10::BoxedKernel kernel) {
  return torch::CppFunction::makeFromBoxedKernel(std::move(kernel));
}

}  // namespace

void intercept_all(c10::DispatchKey key, c10::BoxedKernel kernel, std::string_view refusal) {
  auto library = library_of("_", key);
  try {
    library->fallback(function_of(std::move(kernel)));
  } catch (const c10::Error& error) {
    throw Error({.what = text::concat(refusal, ": ", error.what_without_backtrace()),
                 .why = text::concat("operators are intercepted by the dispatch key ", c10::toString(key),
                                     ", which another library of this process uses")});
  }
  [[maybe_unused]] const auto* for_ever = library.release();
}

void intercept_operators(c10::DispatchKey key, c10::BoxedKernel kernel, const std::vector<std::string>& operators) {
  auto library = library_of("aten", key);
  for (const auto& name : operators) library->impl(name.c_str(), function_of(kernel));
  [[maybe_unused]] const auto* for_ever = library.release();
}

}  // namespace hortator::interception
