#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/chat/value.hpp"

namespace hortator::models::chat {

/// The variables of a template, of a loop's pass or of a macro's call.
struct Scope {
  std::map<std::string, Value> names = {};
  const Scope* parent = nullptr;

  Value find(const std::string& name) const;
};

/// A template that is being rendered.
class Rendering {
 public:
  Scope* scope = nullptr;
  std::string out = {};

  /// Counts a step. Throws once there are too many: a template cannot run for ever.
  void step();
  /// Around a macro's call: throws if calls are nested too deeply.
  void enter();
  void leave() { --calls_; }

 private:
  std::size_t steps_ = 0, calls_ = 0;
};

enum class Flow { on, next_pass, leave_loop };

using Expression = std::function<Value(Rendering&)>;
using Statement = std::function<Flow(Rendering&)>;
using Block = std::vector<Statement>;

Flow run(const Block& block, Rendering& rendering);
/// What a block prints.
std::string text_of(const Block& block, Rendering& rendering);

/// Reads a template. Throws UsageError with the line of what is not supported.
Block parse(std::string_view source);

// The filters, tests, methods and functions of templates. Each throws UsageError for an unknown name.
Value filtered(const std::string& name, const Value& value, const CallArguments& arguments);
bool tested(const std::string& name, const Value& value, const CallArguments& arguments);
Value method_of(const Value& value, const std::string& name);  ///< undefined if there is none
std::map<std::string, Value> functions();

}  // namespace hortator::models::chat
