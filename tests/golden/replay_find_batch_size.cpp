// The search for a batch size that fits into memory, and the exceptions that count as out of memory.
#include <hortator/training/find_batch_size.hpp>

#include "accelerator/batch_size/out_of_memory.hpp"
#include "core/text/text.hpp"
#include "replay.hpp"

namespace hortator::golden {
namespace {

bool is_find_batch_size(const json& file) {
  const auto kind = file.at("cases").front().value("kind", "");
  return kind == "search" || kind == "is_oom";
}

Outcome judge_search(const json& one) {
  Accelerator accelerator;
  const auto fits_up_to = one.at("fits_up_to").get<std::int64_t>();
  std::vector<std::int64_t> tried;
  const auto search = [&] {
    return find_executable_batch_size(accelerator, {.start = one.at("start")}, [&](std::int64_t batch_size) {
      tried.push_back(batch_size);
      if (batch_size > fits_up_to) throw std::runtime_error("CUDA out of memory. Tried to allocate");
    });
  };
  const auto same_sizes = [&] {
    return one.contains("tried") ? compare("what was tried", tried, one.at("tried")) : equal();
  };
  try {
    const auto found = search();
    if (!one.contains("result")) return differs(text::concat("found ", found, "; Accelerate fails"));
    const auto same = compare("the result", found, one.at("result"));
    return same.difference.empty() ? same_sizes() : same;
  } catch (const Error& error) {
    if (!one.contains("error")) return differs(text::concat("failed: ", error.what()));
    return same_sizes();
  }
}

Outcome judge_find_batch_size(const json& one, const json&) {
  if (one_of(one, "kind", {"search", "is_oom"}) == "search") return judge_search(one);
  return compare("whether it is about memory", accelerator::speaks_of_memory(one.at("message").get<std::string>()),
                 one.at("retry"));
}

}  // namespace

Format find_batch_size() {
  return {.name = "find_batch_size",
          .recognises = is_find_batch_size,
          .world = [](const json& one) { return one.at("kind") == "search" ? 1 : 0; },
          .judge = judge_find_batch_size};
}

}  // namespace hortator::golden
