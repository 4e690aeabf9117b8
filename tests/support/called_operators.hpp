#pragma once

#include <ATen/record_function.h>

#include <memory>
#include <string>
#include <vector>

namespace hortator::test {

/// Records the names of the LibTorch operators that this thread calls in this scope, as "aten::empty". Not nestable.
class CalledOperators {
 public:
  CalledOperators() {
    list().clear();
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
          list().emplace_back(call.name());
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
  }
  ~CalledOperators() { at::removeCallback(handle_); }
  CalledOperators(const CalledOperators&) = delete;
  CalledOperators& operator=(const CalledOperators&) = delete;

  const std::vector<std::string>& names() const { return list(); }

 private:
  static std::vector<std::string>& list() {
    thread_local std::vector<std::string> names;
    return names;
  }
  at::CallbackHandle handle_ = 0;
};

}  // namespace hortator::test
