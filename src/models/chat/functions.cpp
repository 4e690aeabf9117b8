// The functions of chat templates.
#include <chrono>
#include <ctime>

#include "core/text/text.hpp"
#include "models/chat/arguments.hpp"
#include "models/chat/program.hpp"

namespace hortator::models::chat {
namespace {

Value range_of(const CallArguments& arguments) {
  constexpr std::int64_t most = 100'000;
  std::vector<std::int64_t> bounds;
  for (const auto& one : arguments.positional) bounds.push_back(integer_of(one, "range"));
  if (bounds.empty() || bounds.size() > 3) fail("range: expected one to three whole numbers");
  const auto begin = bounds.size() > 1 ? bounds[0] : 0, end = bounds.size() > 1 ? bounds[1] : bounds[0];
  const auto step = bounds.size() > 2 ? bounds[2] : 1;
  if (step == 0) fail("range: expected a step that is not 0");
  auto all = Json::array();
  for (auto i = begin; step > 0 ? i < end : i > end;) {
    if (static_cast<std::int64_t>(all.size()) >= most) fail(text::concat("range: expected at most ", most, " numbers"));
    all.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return all;
}

Value now(const CallArguments& arguments) {
  const auto seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  localtime_r(&seconds, &parts);
  constexpr std::size_t longest = 256;
  std::string text(longest, '\0');
  text.resize(std::strftime(text.data(), text.size(), string_argument(arguments, 0, "format", "").c_str(), &parts));
  return Json(text);
}

}  // namespace

std::map<std::string, Value> functions() {
  return {{"range", Value::of_function(range_of)},
          {"strftime_now", Value::of_function(now)},
          {"dict", Value::of_function([](const CallArguments& arguments) {
             auto all = Json::object();
             for (const auto& one : arguments.positional) {
               if (!one.is_plain() || !one.json.is_object()) fail("dict: expected an object, or names with values");
               for (const auto& [name, value] : one.json.items()) all[name] = value;
             }
             for (const auto& name : arguments.order) all[name] = arguments.named.at(name).json;
             return Value(all);
           })},
          {"namespace", Value::of_function([](const CallArguments& arguments) {
             auto value = Value::of_namespace();
             *value.names = arguments.named;
             return value;
           })},
          {"raise_exception", Value::of_function([](const CallArguments& arguments) -> Value {
             fail(text::concat("it refuses these messages: ", string_argument(arguments, 0, "message", "")));
           })}};
}

}  // namespace hortator::models::chat
